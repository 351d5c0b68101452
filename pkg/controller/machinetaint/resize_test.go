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

var (
	errLost     = errors.New("connection reset by peer")
	errConflict = apierrors.NewConflict(mcmapi.Resource("any"), "one", errors.New("the object has been modified"))
)

var _ = Describe("A MachineSet that is shown with 4 replicas at version 8", func() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type resizes = machinetaint.Resizes

	DescribeTable("may ask for", func(writes func(*resizes), least, most int) {
		r := &resizes{}
		writes(r)
		Expect(r.Range("8", 4, now)).To(Equal([2]int{least, most}))
	},
		Entry("4 without a write", func(*resizes) {}, 4, 4),
		Entry("4 or more while it grows", func(r *resizes) { r.Begin(6) }, 4, 6),
		Entry("4 or fewer while it shrinks", func(r *resizes) { r.Begin(1) }, 1, 4),
		Entry("4 or more after it has grown", func(r *resizes) { r.Begin(6); r.End("9", nil, now) }, 4, 6),
		Entry("4 or fewer after it has shrunk", func(r *resizes) { r.Begin(1); r.End("9", nil, now) }, 1, 4),
		Entry("4 if a later version than that of the write is shown", func(r *resizes) { r.Begin(6); r.End("7", nil, now) }, 4, 4),
		Entry("4 after a conflict", func(r *resizes) { r.Begin(6); r.End("", errConflict, now) }, 4, 4),
		Entry("either while the outcome is unknown", func(r *resizes) { r.Begin(6); r.End("", errLost, now) }, 4, 6),
		Entry("either shortly before an unknown outcome is forgotten", func(r *resizes) { r.Begin(6); r.End("", errLost, now.Add(-2*time.Minute)) }, 4, 6),
		Entry("4 when an unknown outcome is forgotten", func(r *resizes) { r.Begin(6); r.End("", errLost, now.Add(-2*time.Minute-1)) }, 4, 4),
		Entry("either if a conflict follows an unknown outcome", func(r *resizes) { r.Begin(6); r.End("", errLost, now); r.Begin(6); r.End("", errConflict, now) }, 4, 6),
		Entry("either if a conflict follows a write that is not shown", func(r *resizes) { r.Begin(6); r.End("9", nil, now); r.Begin(1); r.End("", errConflict, now) }, 4, 6),
		Entry("all of them while a write follows one that is not shown", func(r *resizes) { r.Begin(6); r.End("9", nil, now); r.Begin(1) }, 1, 6),
		Entry("all of them if the outcome of one is unknown that follows one that is not shown", func(r *resizes) { r.Begin(6); r.End("9", nil, now); r.Begin(1); r.End("", errLost, now) }, 1, 6),
		Entry("4 if a conflict follows while the first write is still in progress", func(r *resizes) { r.Begin(6); r.Begin(6); r.End("7", nil, now); r.End("", errConflict, now) }, 4, 4),
		Entry("all of them if a write follows an unknown one", func(r *resizes) { r.Begin(6); r.End("", errLost, now); r.Begin(1) }, 1, 6),
		Entry("what the last one wrote if the outcome of the one before is known", func(r *resizes) { r.Begin(6); r.End("7", nil, now); r.Begin(1) }, 1, 4),
	)

	It("asks for what it is shown with from then on", func() {
		r := &resizes{}
		r.Begin(6)
		r.End("9", nil, now)
		Expect(r.Range("9", 6, now)).To(Equal([2]int{6, 6}))
		Expect(r.Range("10", 2, now)).To(Equal([2]int{2, 2}))
	})
})

var _ = Describe("A reduction of the machines that are shown", func() {
	It("counts at once", func() {
		visible, reduced := machinetaint.Reduced(time.Hour)
		Expect(visible).To(Equal(2))
		Expect(reduced).To(BeTrue())
	})

	DescribeTable("is remembered", func(want bool, later time.Duration, ends ...error) {
		visible, reduced := machinetaint.Reduced(later, ends...)
		Expect(visible).To(Equal(5), "the store shows what is stored by now")
		Expect(reduced).To(Equal(want))
	},
		Entry("after it took effect", true, time.Duration(0), nil),
		Entry("for two minutes", true, 2*time.Minute, nil),
		Entry("no longer", false, 2*time.Minute+1, nil),
		Entry("while its outcome is unknown", true, 2*time.Minute, errLost),
		Entry("not after a conflict", false, time.Duration(0), errConflict),
		Entry("not after a refusal", false, time.Duration(0), apierrors.NewBadRequest("no")),
		Entry("though a conflict follows", true, 2*time.Minute, nil, errConflict),
		Entry("though a refusal follows", true, 2*time.Minute, nil, apierrors.NewBadRequest("no")),
		Entry("no longer, though a conflict follows", false, 2*time.Minute+1, nil, errConflict),
		Entry("while its outcome is unknown, though a conflict follows", true, 2*time.Minute, errLost, errConflict),
	)
})

var _ = Describe("A deletion of a Machine that the store still shows", func() {
	gone := apierrors.NewNotFound(mcmapi.Resource("machines"), "m")

	DescribeTable("counts", func(want bool, later time.Duration, ends ...error) {
		Expect(machinetaint.Removed(later, ends...)).To(Equal(want))
	},
		Entry("while it is in progress, however long that takes", true, time.Hour),
		Entry("after it took effect", true, time.Hour, nil),
		Entry("after another client was faster", true, time.Hour, gone),
		Entry("after it took effect, though a conflict follows", true, time.Hour, nil, errConflict),
		Entry("after it took effect, though the outcome of another one is unknown", true, time.Hour, nil, errLost),
		Entry("for two minutes while its outcome is unknown", true, 2*time.Minute, errLost),
		Entry("no longer than that", false, 2*time.Minute+1, errLost),
		Entry("not after a conflict", false, time.Duration(0), errConflict),
		Entry("for two minutes while its outcome is unknown, though a conflict follows", true, 2*time.Minute, errLost, errConflict),
		Entry("no longer than that, though a conflict follows", false, 2*time.Minute+1, errLost, errConflict),
	)
})

var _ = Describe("A write of a MachineSet whose outcome is unknown, and that has no effect,", func() {
	It("holds up a smaller excess for two minutes, and no longer, though nothing else happens", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(context.Background(), "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			set.Spec.Replicas++
			ended, err := a.taint.Guards().Shrink(set)
			Expect(err).NotTo(HaveOccurred())
			ended(nil, errLost)
			a.patch(`{"spec":{"excessReplicas":0}}`)
			time.Sleep(time.Minute)
			Expect(a.applied()).To(Equal("1"), "the MachineSet may ask for one machine more")
			time.Sleep(2 * time.Minute)
			Expect(a.applied()).To(BeEmpty())
		})
	})
})
