// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"context"
	"fmt"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/keep"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

// refusesCreation returns why another machine must not be created now.
func (a *alone) refusesCreation() error {
	key := types.NamespacedName{Namespace: fixture.Namespace, Name: "pool"}
	return a.taint.Superfluous(view.Creation{Deployment: key, Machine: &mcmapi.Machine{}})
}

var _ = Describe("What the controller answers the lens about creations", func() {
	key := types.NamespacedName{Namespace: fixture.Namespace, Name: "pool"}

	It("a machine is born in reserve where excess is applied and enough serve", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			mark := a.taint.ReserveMark(view.Creation{Deployment: key})
			Expect(mark).NotTo(BeNil())
			Expect(mark.Taints).To(ConsistOf(corev1.Taint{Key: api.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}))
			Expect(mark.Annotations).To(HaveLen(2))
			a.patch(`{"spec":{"replicas":5}}`)
			a.wrote(0)
			Expect(a.taint.ReserveMark(view.Creation{Deployment: key})).To(BeNil(), "three serve and five are wanted")
			inFlight := []view.InProgress{{Name: "x"}, {Name: ""}}
			Expect(a.taint.ReserveMark(view.Creation{Deployment: key, InProgress: inFlight})).NotTo(BeNil(), "with those on their way it is five")
			Expect(a.taint.ReserveMark(view.Creation{Deployment: key, InProgress: []view.InProgress{{Name: "a"}, {Name: "b"}}})).To(BeNil(), "which the store shows already")
			Expect(a.taint.Seen(a.Writes()[0].ResourceVersion)).To(BeTrue())
			Expect(a.taint.Seen("999999")).To(BeFalse())
		})
	})

	It("serves from birth where no excess is applied", func() {
		onItsOwn(2, 0, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			Expect(a.taint.ReserveMark(view.Creation{Deployment: key})).To(BeNil())
			Expect(a.taint.ReserveMark(view.Creation{Deployment: types.NamespacedName{Namespace: "x", Name: "y"}})).To(BeNil())
		})
	})

	It("no machine of the reserve is created while those that leave take its place up to max (I1)", func() {
		onItsOwn(4, 2, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{%q:"1:6:1"}}}`, api.BoundsAnnotation)
			a.wrote(0)
			a.deleteSlowly("f")
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Annotations).To(HaveKeyWithValue(api.AppliedExcessAnnotation, "1,max=6"))

			By("raising replicas, while the controller is late to lower the excess")
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Writes() {
					before = time.Hour
				}
				return before, 0
			})
			a.patch(`{"spec":{"replicas":5}}`)
			time.Sleep(time.Second)
			Expect(a.refusesCreation()).To(Satisfy(apierrors.IsConflict), "five are there, and one leaves")
			a.patch(`{"spec":{"replicas":6}}`)
			time.Sleep(time.Second)
			Expect(a.refusesCreation()).To(Satisfy(apierrors.IsConflict), "workload waits for a machine of the reserve that leaves")
			_, err = a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), "f", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(a.refusesCreation()).To(Succeed())

			By("deleting a machine that serves, which may take hours to drain")
			a.deleteSlowly("a")
			Expect(a.refusesCreation()).To(Succeed(), "workload does not wait for that one")
		})
	})

	It("a machine is created at once in the place of one that serves and leaves, where all the reserve is dedicated, also at max (law 19)", func() {
		onItsOwn(3, 1, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{%q:"1:4:1",%q:"shop=1"}}}`, api.BoundsAnnotation, api.DedicatedAnnotation)
			a.wrote(0)
			Expect(a.refusesCreation()).To(Satisfy(apierrors.IsConflict), "three serve, and one is dedicated")
			a.deleteSlowly("a") // it may take hours to drain
			Expect(a.taint.ReserveMark(view.Creation{Deployment: key})).To(BeNil(), "a new machine would serve")
			Expect(a.refusesCreation()).To(Succeed())
			Expect(a.taint.Superfluous(view.Creation{Deployment: key, Machine: &mcmapi.Machine{}, InProgress: []view.InProgress{{}}})).To(Satisfy(apierrors.IsConflict), "one is enough")
		})
	})

	It("no machine is created beyond max in the place of a dedicated one whose deletion the controller has yet to see (I1)", func() {
		onItsOwn(4, 1, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{%q:"1:5:1",%q:"shop=1"}}}`, api.BoundsAnnotation, api.DedicatedAnnotation)
			a.wrote(0)
			a.patch(`{"spec":{"replicas":3}}`)
			a.deleteSlowly("a")
			a.Hold("machines", controllerUser)
			a.deleteSlowly("e")
			time.Sleep(time.Second)
			Expect(a.refusesCreation()).To(MatchError(ContainSubstring("3 machines stay and 2 leave, and there are to be 4")))
		})
	})

	It("no machine is created in the place of one of the reserve whose deletion the controller has yet to see (I1)", func() {
		onItsOwn(5, 1, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"spec":{"excessReplicas":0},"metadata":{"annotations":{%q:"1:6"}}}`, api.BoundsAnnotation)
			time.Sleep(time.Hour) // until nothing is remembered of it, as in a process that has just started
			Expect(a.applied()).To(BeEmpty())
			a.Hold("machines", controllerUser)
			a.deleteSlowly("f")
			a.patch(`{"spec":{"replicas":6}}`)
			time.Sleep(time.Second)
			Expect(a.refusesCreation()).To(MatchError(ContainSubstring("5 machines stay and 1 leave, and there are to be 6")))
			a.Release("machines", controllerUser)
			time.Sleep(time.Second)
			Expect(a.refusesCreation()).To(Satisfy(apierrors.IsConflict))
			a.Hold("machines", lensUser)
			_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), "f", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(a.refusesCreation()).To(Succeed(), "it is gone, whatever machine-controller-manager's store shows")
		})
	})

	DescribeTable("a machine whose deletion the controller has yet to see is one of the reserve if its priority is that of a victim (I1)", func(priority int, there bool, created bool) {
		onItsOwn(5, 0, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{%q:"1:6"}}}`, api.BoundsAnnotation)
			set, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Get(context.Background(), "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			if there {
				a.machine(set, false)
			}
			a.wrote(0)
			a.Hold("machines", controllerUser)
			if !there {
				a.machine(set, false)
			}
			_, err = a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), "f", types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"annotations":{"machinepriority.machine.sapcloud.io":"%d"}}}`, priority), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			a.deleteSlowly("f")
			a.patch(`{"spec":{"replicas":6}}`)
			time.Sleep(time.Second)
			Expect(a.taint.Superfluous(view.Creation{Deployment: key, Machine: &mcmapi.Machine{}}) == nil).To(Equal(created))
		})
	},
		Entry("a victim that did not have its mark before", 2, true, false),
		Entry("a victim that was not there before", 2, false, false),
		Entry("one that serves", 3, true, true),
		Entry("one that serves and was not there before", 3, false, true),
		Entry("one that is named", 1, true, true),
	)

	It("no machine is created for a rollout that only the controller still sees", func() {
		onItsOwn(4, 2, machinetaint.Options{}, func(a *alone) {
			ctx, sets := context.Background(), a.stock.MachineV1alpha1().MachineSets(fixture.Namespace)
			a.wrote(0)
			Expect(a.refusesCreation()).To(Satisfy(apierrors.IsConflict))
			set, err := sets.Get(ctx, "pool-1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			next := &mcmapi.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "pool-2", Namespace: set.Namespace, Labels: set.Labels, OwnerReferences: set.OwnerReferences}, Spec: set.Spec}
			next.Spec.Replicas = 1
			_, err = sets.Create(ctx, next, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(a.refusesCreation()).To(Succeed())
			a.Hold("machinesets", controllerUser)
			_, err = sets.Patch(ctx, "pool-2", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(time.Second)
			Expect(a.refusesCreation()).To(Satisfy(apierrors.IsConflict))
		})
	})

	DescribeTable("machines that leave take the place of new ones up to max (I1)", func(staying, leaving, leavingReserve, workload int, full bool) {
		const limit = 6
		Expect(machinetaint.Full(staying, leaving, leavingReserve, workload, limit)).To(Equal(full))
	},
		Entry("none leaves, and there is room", 5, 0, 0, 4, false),
		Entry("none leaves, and there is no room", 6, 0, 0, 4, true),
		Entry("none leaves, and workload has what it needs", 6, 0, 0, 6, true),
		Entry("none leaves, and workload needs the last one", 5, 0, 0, 6, false),
		Entry("room for one more of the reserve", 4, 1, 1, 4, false),
		Entry("no room for one more of the reserve", 5, 1, 1, 4, true),
		Entry("nor where the one that leaves serves", 5, 1, 0, 4, true),
		Entry("nor where workload has exactly what it needs", 5, 1, 0, 5, true),
		Entry("workload waits for a machine of the reserve", 5, 1, 1, 6, true),
		Entry("workload does not wait for one that serves", 5, 1, 0, 6, false),
		Entry("workload waits for those of the reserve alone", 4, 2, 1, 6, false),
		Entry("workload beyond max waits for none", 5, 1, 1, 7, false),
	)

	It("no machine is created beyond what machine-controller-manager is shown, also before the controller sees that", func() {
		onItsOwn(4, 2, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.Hold("machinedeployments", controllerUser)
			a.patch(`{"spec":{"replicas":6}}`) // nothing adds the excess to what is shown here
			time.Sleep(time.Second)
			Expect(a.refusesCreation()).To(Satisfy(apierrors.IsConflict))
			a.patch(`{"spec":{"replicas":7}}`)
			time.Sleep(time.Second)
			Expect(a.refusesCreation()).To(Succeed())
		})
	})

	It("no machine is created beyond max before the excess falls to it (I1)", func() {
		onItsOwn(4, 2, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			Expect(a.applied()).To(Equal("2"))
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Writes() {
					before = time.Hour
				}
				return before, 0
			})
			a.patch(`{"spec":{"replicas":6},"metadata":{"annotations":{%q:"1:6"}}}`, api.BoundsAnnotation)
			time.Sleep(time.Second)
			Expect(a.refusesCreation()).To(Satisfy(apierrors.IsConflict), "six are there, and eight are shown")
			a.patch(`{"spec":{"replicas":7}}`)
			time.Sleep(time.Second)
			Expect(a.refusesCreation()).To(Succeed(), "workload beyond max waits for none")
		})
	})

	It("no machine is created in place of one that was named, in the moment before the excess is applied for which there was no room (I3)", func() {
		onItsOwn(6, 0, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{%q:"1:6:2"}}}`, api.BoundsAnnotation)
			a.wrote(0)
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Writes() {
					before = time.Hour
				}
				return before, 0
			})
			Expect(a.stock.MachineV1alpha1().Machines(fixture.Namespace).Delete(context.Background(), "a", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(time.Second)
			Expect(a.refusesCreation()).To(Succeed(), "workload needs it")
			a.patch(`{"spec":{"replicas":5}}`)
			time.Sleep(time.Second)
			Expect(a.refusesCreation()).To(Satisfy(apierrors.IsConflict))
			Expect(a.applied()).To(BeEmpty())
		})
	})

	It("a machine that leaves holds nothing back where there is no reserve", func() {
		onItsOwn(5, 0, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"metadata":{"annotations":{%q:"1:6"}}}`, api.BoundsAnnotation)
			a.wrote(0)
			a.deleteSlowly("a")
			Expect(a.taint.Superfluous(view.Creation{Deployment: key, Machine: &mcmapi.Machine{}, InProgress: []view.InProgress{{}}})).To(Succeed())
		})
	})

	It("no machine is created that was decided for an excess that has just been reduced to nothing", func() {
		onItsOwn(4, 2, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.patch(`{"spec":{"excessReplicas":0}}`)
			time.Sleep(time.Second)
			Expect(a.applied()).To(BeEmpty())
			Expect(a.refusesCreation()).To(Satisfy(apierrors.IsConflict))
			a.patch(`{"metadata":{"annotations":{%q:"1:6"}}}`, api.BoundsAnnotation)
			time.Sleep(time.Hour)
			Expect(a.refusesCreation()).To(Satisfy(apierrors.IsConflict), "while machines of the reserve are there")
			for _, name := range []string{"e", "f"} {
				Expect(a.stock.MachineV1alpha1().Machines(fixture.Namespace).Delete(context.Background(), name, metav1.DeleteOptions{})).To(Succeed())
			}
			a.wrote(0)
			Expect(a.refusesCreation()).To(Succeed(), "without a reserve, that is left to machine-controller-manager")
		})
	})
})

// withMachines returns a controller that sees a MachineDeployment with three replicas, an excess of two
// and these machines. All but the first three are in reserve.
func withMachines(exist, leaving int, change ...func(*api.MachineDeployment)) *machinetaint.Preview {
	GinkgoHelper()
	plain := fixture.MachineDeployment("a", 3)
	d := &api.MachineDeployment{ObjectMeta: plain.ObjectMeta, Spec: api.MachineDeploymentSpec{StockMachineDeploymentSpec: plain.Spec, ExcessReplicas: ptr.To[int32](2)}}
	d.UID, d.ResourceVersion, d.Annotations = "uid", "5", map[string]string{api.AppliedExcessAnnotation: "2,max=9"}
	for _, c := range change {
		c(d)
	}
	set, machines := fixture.Spares(d, exist+leaving, exist+leaving)
	for i, m := range machines {
		if m.UID = types.UID(m.Name); i < 3 {
			m.Annotations = nil
		}
		if i >= exist {
			m.DeletionTimestamp = &metav1.Time{}
		}
	}
	p, err := machinetaint.NewPreview(keep.Settings{}, true)
	Expect(err).NotTo(HaveOccurred())
	Expect(p.SetObjects(machinetaint.Objects{Deployments: []*api.MachineDeployment{d}, Sets: []*mcmapi.MachineSet{set}, Machines: machines}, time.Now())).To(Succeed())
	return p
}

var _ = Describe("A creation", func() {
	atMost := func(bounds string) func(*api.MachineDeployment) {
		return func(d *api.MachineDeployment) { d.Annotations[api.BoundsAnnotation] = bounds }
	}
	without := func(d *api.MachineDeployment) { d.Spec.ExcessReplicas, d.Annotations = nil, map[string]string{} }

	DescribeTable("is refused if there are enough machines with those that are being created (V13)",
		func(exist, leaving int, inProgress []string, allowed bool, change ...func(*api.MachineDeployment)) {
			err := withMachines(exist, leaving, change...).Superfluous(fixture.Namespace, "a", inProgress...)
			if allowed {
				Expect(err).NotTo(HaveOccurred())
				return
			}
			Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		},
		Entry("one is missing", 4, 0, nil, true),
		Entry("none is missing", 5, 0, nil, false),
		Entry("the missing one is being created, and has no name yet", 4, 0, []string{""}, false),
		Entry("the missing one is being created, and cannot be seen yet", 4, 0, []string{"a-new"}, false),
		Entry("one that can be seen counts once", 4, 0, []string{"a-spare-3"}, true),
		Entry("two are missing, and one of them is being created", 3, 0, []string{""}, true),
		Entry("two are missing, and both are being created", 3, 0, []string{"", "a-new"}, false),
		Entry("one that leaves is replaced", 4, 1, nil, true),
		Entry("one of the reserve that leaves is not replaced at the maximum", 4, 1, nil, false, atMost("1:5:2")),
		Entry("nor if another annotation cannot be read", 4, 1, nil, false, atMost("1:5:2"), func(d *api.MachineDeployment) { d.Annotations[api.ShareAnnotation] = "many" }),
		Entry("one that leaves is replaced at the maximum while workload lacks one", 2, 3, nil, true, atMost("1:6:2")),
		Entry("workload lacks one, and it is being created at the maximum", 2, 3, []string{""}, false, atMost("1:6:2")),
		Entry("there is no excess, and no maximum", 9, 0, nil, true, without),
		Entry("the MachineDeployment does not exist", 9, 0, nil, true, func(d *api.MachineDeployment) { d.Name = "other" }),
	)

	DescribeTable("is decided on for the replicas that machine-controller-manager has seen, if these are later",
		func(exist int, version string, replicas int32, allowed bool) {
			p, seen := withMachines(exist, 0), fixture.MachineDeployment("a", replicas)
			seen.UID, seen.ResourceVersion = "uid", version
			Expect(p.SetSeen(seen)).To(Succeed())
			if err := p.Superfluous(fixture.Namespace, "a"); allowed {
				Expect(err).NotTo(HaveOccurred())
			} else {
				Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
			}
		},
		Entry("fewer replicas, and one machine is missing", 3, "7", int32(4), true),
		Entry("fewer replicas, and no machine is missing", 4, "7", int32(4), false),
		Entry("more replicas, and one machine is missing", 5, "7", int32(6), true),
		Entry("more replicas, in an earlier version", 5, "3", int32(6), false),
		Entry("fewer replicas, in an earlier version", 4, "3", int32(4), true),
	)
})
