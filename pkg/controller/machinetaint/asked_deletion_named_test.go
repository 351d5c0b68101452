// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

// slowDown has each patch of a MachineDeployment by the controller take ten seconds before it takes effect, until end is called.
func (a *alone) slowDown() (end func()) {
	var ended atomic.Bool
	a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
		if !ended.Load() && r.User == controllerUser && r.Verb == "patch" && r.Resource == "machinedeployments" {
			return 10 * time.Second, 0
		}
		return 0, 0
	})
	return func() { ended.Store(true) }
}

var _ = Describe("What the controller answers the lens about deletions", func() {
	It("a machine that serves does not go in addition to one that was named (I3)", func() {
		onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.patch(`{"spec":{"replicas":2},"metadata":{"annotations":{%q:"a~%s"}}}`, machineutils.TriggerDeletionByMCM, time.Now().UTC().Format(time.RFC3339))
			a.patchSet(`{"spec":{"replicas":3}}`)
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("b")).To(Satisfy(apierrors.IsConflict), "two serve without a, and two are needed")
			Expect(a.refusesDeletion("a")).To(Succeed())
		})
	})

	DescribeTable("a machine in reserve that was named goes once replicas are restored for it, though more than these serve", func(late func(a *alone) (end func())) {
		onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ask := func() error {
				_, ended, err := a.taint.Guards().Remove(fixture.Namespace, "d")
				if err == nil {
					ended(apierrors.NewConflict(mcmapi.Resource("machines"), "d", nil))
				}
				return err
			}
			end := late(a)
			a.patch(`{"spec":{"replicas":1},"metadata":{"annotations":{%q:"d~%s"}}}`, machineutils.TriggerDeletionByMCM, time.Now().UTC().Format(time.RFC3339))
			time.Sleep(time.Second)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(1)))
			_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), "d", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"1",%q:"now"}}}`, machineutils.MachinePriority, machineutils.MarkedForDeletionTime), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(ask()).To(Satisfy(apierrors.IsConflict))
			end()
			time.Sleep(time.Minute)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(2)))
			Expect(ask()).To(Succeed())
		})
	},
		Entry("while the controller does not see its name", func(a *alone) func() {
			a.Hold("machinedeployments", controllerUser)
			return func() { a.Release("machinedeployments", controllerUser) }
		}),
		Entry("while it cannot restore them", func(a *alone) func() {
			return a.slowDown()
		}),
		Entry("while it cannot restore them for machines that join no cluster", func(a *alone) func() {
			for _, name := range []string{"a", "b", "c", "d"} {
				a.reports(name, `{"currentStatus":{"phase":"Available"}}`)
			}
			return a.slowDown()
		}),
	)

	It("a machine in reserve that was named stays until the controller sees it, and replicas are restored for it (I3)", func() {
		onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.Hold("machines", controllerUser)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(context.Background(), "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			late := a.machine(set, true)
			a.patch(`{"spec":{"replicas":1,"excessReplicas":2},"metadata":{"annotations":{%q:"%s~%s"}}}`, machineutils.TriggerDeletionByMCM, late, time.Now().UTC().Format(time.RFC3339))
			time.Sleep(time.Second)
			Expect(a.refusesDeletion(late)).To(Satisfy(apierrors.IsConflict))
			a.Release("machines", controllerUser)
			time.Sleep(time.Minute)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(2)))
			Expect(a.refusesDeletion(late)).To(Succeed())
		})
	})

	DescribeTable("a machine that serves stays while replicas are still to be restored for one of the reserve that was named",
		func(happens func(a *alone) (end func())) {
			onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
				a.wrote(0)
				end := a.slowDown()
				a.patch(`{"spec":{"replicas":1},"metadata":{"annotations":{%q:"c~%s"}}}`, machineutils.TriggerDeletionByMCM, time.Now().UTC().Format(time.RFC3339))
				a.patchSet(`{"spec":{"replicas":1}}`)
				time.Sleep(time.Second)
				defer happens(a)()
				time.Sleep(time.Second)
				Expect(a.deployment().Spec.Replicas).To(Equal(int32(1)))
				Expect(a.refusesDeletion("a")).To(Satisfy(apierrors.IsConflict))
				end()
				time.Sleep(time.Minute)
				Expect(a.deployment().Spec.Replicas).To(Equal(int32(2)))
				Expect(a.refusesDeletion("a")).To(Satisfy(apierrors.IsConflict))
				a.patch(`{"spec":{"replicas":1}}`)
				time.Sleep(time.Second)
				Expect(a.refusesDeletion("a")).To(Succeed(), "nothing is to be restored any more")
			})
		},
		Entry("and is there", func(*alone) func() { return func() {} }),
		Entry("also in a process that has just started", func(a *alone) func() { return a.start(machinetaint.Options{}) }),
		Entry("and has gone", func(a *alone) func() {
			Expect(a.stock.MachineV1alpha1().Machines(fixture.Namespace).Delete(context.Background(), "c", metav1.DeleteOptions{})).To(Succeed())
			a.patch(`{"metadata":{"annotations":{%q:null}}}`, machineutils.TriggerDeletionByMCM)
			return func() {}
		}),
	)

	DescribeTable("a machine that serves goes although another one was named, if more serve than replicas with those that are to be restored",
		func(named string) {
			onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
				a.wrote(0)
				a.slowDown()
				a.patch(`{"spec":{"replicas":1},"metadata":{"annotations":{%q:"%s~%s"}}}`, machineutils.TriggerDeletionByMCM, named, time.Now().UTC().Format(time.RFC3339))
				a.patchSet(`{"spec":{"replicas":1}}`)
				time.Sleep(time.Second)
				Expect(a.refusesDeletion("a")).To(Succeed())
			})
		},
		Entry("and one of the reserve counts once", "d"),
		Entry("and one that serves does not count", "c"),
	)

	It("a machine in reserve that was named goes at once where replicas include the reserve, though more than these serve", func() {
		onItsOwn(4, 1, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"spec":{"replicas":5,"excessReplicas":2},"metadata":{"annotations":{%q:"Inclusive",%q:"2,counted=2,replicas=5"}}}`, api.AccountingAnnotation, api.AppliedExcessAnnotation)
			a.wrote(0)
			Expect(a.applied()).To(Equal("2,counted=2,replicas=5"))
			a.patch(`{"metadata":{"annotations":{%q:"e~%s"}}}`, machineutils.TriggerDeletionByMCM, time.Now().UTC().Format(time.RFC3339))
			a.wrote(0)
			Expect(a.refusesDeletion("e")).To(Succeed())
		})
	})

	It("a machine in reserve that was named stays until replicas are restored for those that these do not include", func() {
		onItsOwn(4, 3, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			end := a.slowDown()
			a.patch(`{"spec":{"replicas":5},"metadata":{"annotations":{%q:"Inclusive",%q:"3,counted=1,replicas=5"}}}`, api.AccountingAnnotation, api.AppliedExcessAnnotation)
			now := time.Now().UTC().Format(time.RFC3339)
			a.patch(`{"spec":{"replicas":3},"metadata":{"annotations":{%q:"e~%s,f~%s"}}}`, machineutils.TriggerDeletionByMCM, now, now)
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("e")).To(Satisfy(apierrors.IsConflict))
			for _, name := range []string{"e", "f"} {
				Expect(a.stock.MachineV1alpha1().Machines(fixture.Namespace).Delete(context.Background(), name, metav1.DeleteOptions{})).To(Succeed())
			}
			a.patch(`{"metadata":{"annotations":{%q:null}}}`, machineutils.TriggerDeletionByMCM)
			end()
			time.Sleep(time.Minute)
			Expect(pool.Workload(a.deployment(), a.deployment().Spec.Replicas)).To(BeEquivalentTo(4))
		})
	})

	It("a machine in reserve that was named goes at once from a frozen MachineSet, which must lose machines", func() {
		onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			ctx, machines, sets := context.Background(), a.stock.MachineV1alpha1().Machines(fixture.Namespace), a.stock.MachineV1alpha1().MachineSets(fixture.Namespace)
			a.Hold("machinedeployments", controllerUser)
			a.patch(`{"spec":{"replicas":1},"metadata":{"annotations":{%q:"d~%s"}}}`, machineutils.TriggerDeletionByMCM, time.Now().UTC().Format(time.RFC3339))
			_, err := machines.Patch(ctx, "d", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"1",%q:"now"}}}`, machineutils.MachinePriority, machineutils.MarkedForDeletionTime), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("d")).To(Satisfy(apierrors.IsConflict))
			_, err = sets.Patch(ctx, "pool-1", types.MergePatchType, []byte(`{"metadata":{"labels":{"freeze":"True"}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("d")).To(Succeed())
			a.Release("machinedeployments", controllerUser)
		})
	})
})
