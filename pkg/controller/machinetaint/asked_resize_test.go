// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = Describe("What the controller answers the lens about resizes", func() {
	It("a MachineSet shrinks only by decision on the excess applied now", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(context.Background(), "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			ask := func(replicas int32, decidedFor string) error {
				after := set.DeepCopy()
				after.Spec.Replicas, after.Annotations = replicas, map[string]string{"deployment.kubernetes.io/desired-replicas": decidedFor}
				ended, err := a.taint.Guards().Shrink(after)
				if err == nil {
					ended(after, nil)
				}
				return err
			}
			Expect(ask(2, "2")).To(Satisfy(apierrors.IsConflict))
			Expect(ask(3, "2")).To(Succeed(), "that is no shrink")
			Expect(ask(2, "3")).To(Succeed(), "a rollout")
		})
	})

	It("a MachineSet does not grow by what was decided before the excess fell, nor does that fall below what is created", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(context.Background(), "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			grow := func(decidedFor string) (func(*mcmapi.MachineSet, error), error) {
				after := set.DeepCopy()
				after.Spec.Replicas, after.Annotations = 4, map[string]string{"deployment.kubernetes.io/desired-replicas": decidedFor}
				return a.taint.Guards().Shrink(after)
			}
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			ended, err := grow("3")
			Expect(err).NotTo(HaveOccurred())
			_, err = a.taint.Reduce(d, 2, 3)
			Expect(err).To(Satisfy(apierrors.IsConflict), "four may be asked for")
			ended(nil, apierrors.NewConflict(mcmapi.Resource("machinesets"), "pool-1", nil))
			above, err := a.taint.Reduce(d, 5, 9)
			Expect(err).NotTo(HaveOccurred())
			_, err = grow("4")
			Expect(err).To(Satisfy(apierrors.IsConflict), "three are shown by now")
			above(apierrors.NewConflict(mcmapi.Resource("machinedeployments"), "pool", nil))
			reduced, err := a.taint.Reduce(d, 2, 3)
			Expect(err).NotTo(HaveOccurred())
			_, err = grow("3")
			Expect(err).To(Satisfy(apierrors.IsConflict))
			reduced(errors.New("the connection broke"))
			a.patch(`{"metadata":{"annotations":{%q:null}},"spec":{"excessReplicas":0,"replicas":2}}`, api.AppliedExcessAnnotation)
			time.Sleep(time.Second) // both stores show that
			_, err = grow("4")
			Expect(err).To(Satisfy(apierrors.IsConflict), "what was read then may be written now")
			time.Sleep(3 * time.Minute)
			_, err = grow("4")
			Expect(err).NotTo(HaveOccurred())
		})
	})

	It("a MachineSet grows for replicas that so far only machine-controller-manager has been shown, also after the excess fell", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(context.Background(), "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			grow := func() error {
				after := set.DeepCopy()
				after.Spec.Replicas, after.Annotations = 6, map[string]string{"deployment.kubernetes.io/desired-replicas": "6"}
				_, err := a.taint.Guards().Shrink(after)
				return err
			}
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			reduced, err := a.taint.Reduce(d, 3, 3)
			Expect(err).NotTo(HaveOccurred())
			reduced(nil)
			Expect(grow()).To(Satisfy(apierrors.IsConflict))
			a.Hold("machinedeployments", controllerUser)
			a.patch(`{"spec":{"replicas":5}}`)
			time.Sleep(time.Second)
			Expect(grow()).To(Succeed())
		})
	})

	DescribeTable("a MachineSet does not grow again in a rollout before its last growth is counted",
		func(want bool, counted, replicas, old, present int32, surge string, excess int) {
			onItsOwn(3, excess, machinetaint.Options{}, func(a *alone) {
				a.wrote(0)
				ctx, sets := context.Background(), a.stock.MachineV1alpha1().MachineSets(fixture.Namespace)
				a.patch(`{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":%s,"maxUnavailable":1}}}}`, surge)
				first, err := sets.Patch(ctx, "pool-1", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, old), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
				_, err = sets.Patch(ctx, "pool-1", types.MergePatchType, fmt.Appendf(nil, `{"status":{"replicas":%d}}`, present), metav1.PatchOptions{}, "status")
				Expect(err).NotTo(HaveOccurred())
				second := &mcmapi.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "pool-2", OwnerReferences: first.OwnerReferences}, Spec: first.Spec}
				second.Spec.Replicas = 2
				_, err = sets.Create(ctx, second, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				second, err = sets.Patch(ctx, "pool-2", types.MergePatchType, fmt.Appendf(nil, `{"status":{"replicas":%d}}`, counted), metav1.PatchOptions{}, "status")
				Expect(err).NotTo(HaveOccurred())
				time.Sleep(time.Second)
				after := second.DeepCopy()
				after.Spec.Replicas, after.Annotations = replicas, map[string]string{"deployment.kubernetes.io/desired-replicas": fmt.Sprint(3 + excess)}
				_, err = a.taint.Guards().Shrink(after)
				if want {
					Expect(err).NotTo(HaveOccurred())
				} else {
					Expect(err).To(MatchError(ContainSubstring("are not counted yet")))
					Expect(err).To(Satisfy(apierrors.IsConflict))
				}
			})
		},
		Entry("beyond the total", false, int32(1), int32(3), int32(3), int32(3), "0", 2),
		Entry("beyond the total and the surge", false, int32(1), int32(4), int32(3), int32(3), "1", 2),
		Entry("beyond the total and a surge in percent", false, int32(1), int32(4), int32(3), int32(3), `"20%"`, 2),
		Entry("beyond the total, with a machine that leaves", false, int32(1), int32(3), int32(2), int32(3), "0", 2),
		Entry("beyond the total, with a machine that is still to be created", false, int32(1), int32(3), int32(3), int32(2), "0", 2),
		Entry("but within the surge", true, int32(1), int32(3), int32(3), int32(3), "1", 2),
		Entry("but within a surge in percent", true, int32(1), int32(3), int32(3), int32(3), `"20%"`, 2),
		Entry("but within the total", true, int32(1), int32(3), int32(2), int32(2), "0", 2),
		Entry("but its status counts them all", true, int32(2), int32(3), int32(3), int32(3), "0", 2),
		Entry("but there is no other", true, int32(1), int32(6), int32(0), int32(0), "0", 2),
		Entry("but without a reserve", true, int32(1), int32(3), int32(3), int32(3), "0", 0),
	)

	It("a MachineSet that is being resized may still ask for what it did", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx := context.Background()
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(ctx, "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			set.Spec.Replicas = 2
			_, err = a.taint.Guards().Shrink(set)
			Expect(err).NotTo(HaveOccurred())
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(ctx, "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			_, err = a.taint.Reduce(d, 2, 2)
			Expect(err).To(Satisfy(apierrors.IsConflict))
			_, err = a.taint.Reduce(d, 2, 3)
			Expect(err).NotTo(HaveOccurred())
		})
	})

	It("a MachineSet may still ask for what an earlier resize of unknown outcome asked for", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx := context.Background()
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(ctx, "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(ctx, "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			resize := func(replicas int32) (ended func(*mcmapi.MachineSet, error)) {
				after := set.DeepCopy()
				after.Spec.Replicas = replicas
				ended, err := a.taint.Guards().Shrink(after)
				Expect(err).NotTo(HaveOccurred())
				return ended
			}
			resize(4)(nil, errors.New("the connection broke"))
			resize(2)
			_, err = a.taint.Reduce(d, 2, 3)
			Expect(err).To(Satisfy(apierrors.IsConflict), "the first may have taken effect, and the second is under way")
			_, err = a.taint.Reduce(d, 2, 4)
			Expect(err).NotTo(HaveOccurred())
		})
	})

	It("a MachineSet no longer asks for what a resize of unknown outcome asked for, once no request can be under way", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx := context.Background()
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(ctx, "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(ctx, "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			set.Spec.Replicas = 4
			ended, err := a.taint.Guards().Shrink(set)
			Expect(err).NotTo(HaveOccurred())
			ended(nil, errors.New("the connection broke"))
			reduce := func() error { _, err := a.taint.Reduce(d, 2, 3); return err }
			time.Sleep(119 * time.Second)
			Expect(reduce()).To(Satisfy(apierrors.IsConflict))
			time.Sleep(2 * time.Second)
			Expect(reduce()).To(Succeed())
		})
	})
})
