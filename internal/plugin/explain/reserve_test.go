// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/overview"
	. "github.com/evenkeel/evenkeel/internal/plugin/explain"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// office has MachineDeployments z1 and z2 with four replicas each, and the Reserve "office" that
// has two ready machines in each.
func office() *world {
	w := &world{overview.Objects{At: now}}
	for _, name := range []string{"z1", "z2"} {
		plain := fixture.MachineDeployment(name, 4)
		d := &v1alpha1.MachineDeployment{ObjectMeta: plain.ObjectMeta}
		d.Spec.StockMachineDeploymentSpec = plain.Spec
		d.UID = types.UID(name)
		d.Annotations = map[string]string{v1alpha1.RequestedExcessAnnotation: "office=2"}
		w.Deployments = append(w.Deployments, d)
		w.hold(d, 2, 2)
	}
	w.Reserves = []*autoscaling.Reserve{reserveNamed("office", 4)}
	w.Reserves[0].Status = autoscaling.ReserveStatus{
		Pools: []autoscaling.ReservePoolStatus{{Name: "z1", DesiredReplicas: 2}, {Name: "z2", DesiredReplicas: 2}}, DesiredReplicas: 4,
		Conditions: []metav1.Condition{{Type: autoscaling.ConditionReady, Status: metav1.ConditionTrue, Reason: "Complete", Message: "4 of 4"}},
	}
	return w
}

// hold gives a MachineDeployment this many machines in reserve, in place of those that it has.
func (w *world) hold(d *v1alpha1.MachineDeployment, exist, ready int) {
	set, machines := fixture.Spares(d, exist, ready)
	w.Sets = append(slices.DeleteFunc(w.Sets, func(s *mcm.MachineSet) bool { return s.UID == set.UID }), set)
	w.Machines = append(slices.DeleteFunc(w.Machines, func(m *mcm.Machine) bool { return metav1.IsControlledBy(m, set) }), machines...)
}

func reserveNamed(name string, replicas int32) *autoscaling.Reserve {
	r := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name}}
	r.Spec = autoscaling.ReserveSpec{Pools: autoscaling.ReservePools{Names: []string{"z1", "z2"}}, Replicas: replicas}
	return r
}

func (w *world) reserve() string {
	GinkgoHelper()
	a, err := Reserve(w.Objects, "office")
	Expect(err).NotTo(HaveOccurred())
	return text(a)
}

var _ = Describe("A Reserve is explained", func() {
	It("by what it requests, where, and that it is at rest", func() {
		a, err := Reserve(office().Objects, "office")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Title).To(Equal("Reserve office: Complete, 4 of 4 machines ready"))
		Expect(a.Facts).To(Equal([]Fact{
			{"Requests", "4 machines"}, {"z1", "2 requested, 2 exist, 2 ready"}, {"z2", "2 requested, 2 exist, 2 ready"}, {"Ready", "True, Complete: 4 of 4"},
		}))
		Expect(a.Why).To(Equal([]string{"It requests 4 machines: spec.replicas is 4.", "All desired machines are ready."}))
		Expect(a.Next).To(HaveExactElements(HavePrefix("It is at rest")))
	})

	DescribeTable("and shows",
		func(want string, change func(*world, *autoscaling.Reserve)) {
			w := office()
			change(w, w.Reserves[0])
			Expect(w.reserve()).To(ContainSubstring(want))
		},
		Entry("what an amount results in", "It requests 4 machines: spec.replicas 4 and spec.amount 20% result in 4 machines.", func(_ *world, r *autoscaling.Reserve) { r.Spec.Amount = "20%" }),
		Entry("what an amount in devices results in", "spec.replicas 4 and spec.amount devices.gpu=12 result in 6 machines", func(w *world, r *autoscaling.Reserve) {
			r.Spec.Amount = "devices.gpu=12"
			for _, name := range []string{"z1", "z2"} {
				i := slices.IndexFunc(w.Machines, func(m *mcm.Machine) bool { return m.OwnerReferences[0].Name == name+"-set" })
				metav1.SetMetaDataLabel(&w.Machines[i].ObjectMeta, mcm.NodeLabelKey, name)
				w.Nodes = append(w.Nodes, fixture.Node(name))
			}
			w.Devices = counted(2)
		}),
		Entry("which schedule is active, and until when", "Schedule day = 6 machines, active; ends in 7h (2026-11-21 19:00 UTC)", duty("0 7 * * *", "0 19 * * *", 6)),
		Entry("which numbers there are", "It requests 6 machines: spec.replicas is 4, the active schedule day results in 6 machines; the largest counts.", duty("0 7 * * *", "0 19 * * *", 6)),
		Entry("what changes next", "A schedule changes the number to 4 machines in 7h (2026-11-21 19:00 UTC).", duty("0 7 * * *", "0 19 * * *", 6)),
		Entry("which schedule is not active", "Schedule day = 6 machines, not active; starts in 43h (2026-11-23 07:00 UTC)", duty("0 7 * * MON", "0 19 * * MON", 6)),
		Entry("which schedule is suspended", "Schedule day = suspended", func(w *world, r *autoscaling.Reserve) {
			duty("0 7 * * *", "0 19 * * *", 6)(w, r)
			r.Spec.Schedules[0].Suspend = true
		}),
		Entry("that it is suspended", "spec.suspend is true, so no machines are requested.", func(_ *world, r *autoscaling.Reserve) { r.Spec.Suspend = true }),
		Entry("what the controller is about to write", "The request on MachineDeployment z1 is about to change from office=2 to none.", func(_ *world, r *autoscaling.Reserve) { r.Spec.Suspend = true }),
		Entry("what the condition is about to become", "The condition Ready is about to become Suspended: ", func(_ *world, r *autoscaling.Reserve) { r.Spec.Suspend = true }),
		Entry("that the field counts instead", "In z1, spec.excessReplicas counts with 3 machines, and not this Reserve with 2.", func(w *world, _ *autoscaling.Reserve) {
			w.Deployments[0].Spec.ExcessReplicas = ptr.To(int32(3))
		}),
		Entry("that the bounds count instead", "In z2, the excess in bounds counts with 2 machines, and not this Reserve with 2.", func(w *world, _ *autoscaling.Reserve) {
			w.Deployments[1].Annotations[v1alpha1.BoundsAnnotation] = "1:10:2"
		}),
		Entry("that the share of the pool counts instead", "In z1, the pool's excess counts with 4 machines, and not this Reserve with 2.", func(w *world, _ *autoscaling.Reserve) {
			w.Deployments[0].Annotations[v1alpha1.ShareAnnotation] = "4"
		}),
		Entry("that it counts itself", "In z1, this Reserve counts with 2 machines, and not spec.excessReplicas with 1 and Reserve zoo with 1.", func(w *world, _ *autoscaling.Reserve) {
			w.Deployments[0].Spec.ExcessReplicas = ptr.To(int32(1))
			w.Reserves = append(w.Reserves, reserveNamed("zoo", 2))
		}),
		Entry("that another Reserve counts", "In z2, Reserve zoo counts with 3 machines, and not this Reserve with 2.", func(w *world, _ *autoscaling.Reserve) {
			w.Reserves = append(w.Reserves, reserveNamed("zoo", 6))
		}),
		Entry("which settings are invalid", "The excess that MachineDeployment z1 itself requests is unknown: ", func(w *world, _ *autoscaling.Reserve) {
			w.Deployments[0].Annotations[v1alpha1.BoundsAnnotation] = "many"
		}),
		Entry("what to do where there is no room", "To change that: raise max in the bounds, select more MachineDeployments, or request less.", func(w *world, _ *autoscaling.Reserve) {
			for _, d := range w.Deployments {
				d.Annotations[v1alpha1.BoundsAnnotation] = "1:5"
			}
		}),
		Entry("what to do if growth lasts", "If it lasts: see the condition ReserveReady", func(w *world, _ *autoscaling.Reserve) { w.hold(w.Deployments[0], 2, 0) }),
		Entry("where machines cannot be created", "requested, 0 exist, 0 ready; machines cannot be created there now", func(w *world, _ *autoscaling.Reserve) {
			d := w.Deployments[1]
			w.hold(d, 0, 0)
			d.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: v1alpha1.ReserveReady, Status: mcm.ConditionFalse, Reason: "CannotBeMade"}}
		}),
		Entry("that it selects nothing", "correct names, labels or worker pools", func(_ *world, r *autoscaling.Reserve) { r.Spec.Pools.Names = []string{"z9"} }),
		Entry("how many machines its resources are", "result in 5 machines", func(w *world, r *autoscaling.Reserve) {
			r.Spec.Amount = "cpu=10"
			class := &mcm.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: w.Deployments[0].Spec.Template.Spec.Class.Name}}
			class.NodeTemplate = &mcm.NodeTemplate{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
			w.Classes = []*mcm.MachineClass{class}
		}),
		Entry("that the capacity of machines is unknown", "spec.amount cpu=10 result in an unknown number of machines", func(_ *world, r *autoscaling.Reserve) { r.Spec.Amount = "cpu=10" }),
		Entry("that no controller has reported on it", "No controller reports on it yet", func(_ *world, r *autoscaling.Reserve) { r.Status.Conditions = nil }),
		Entry("what could not be read", "Not everything could be read (nodes: no rights to list them)", func(w *world, _ *autoscaling.Reserve) { w.Missing = []string{"nodes: no rights to list them"} }),
		Entry("that buffers want it", "The controller of CapacityBuffers created it", func(_ *world, r *autoscaling.Reserve) {
			r.Labels = map[string]string{v1beta1.ReserveLabel: "true"}
		}),
		Entry("whose pods alone may use it", "Dedicated = shop", func(_ *world, r *autoscaling.Reserve) {
			r.Annotations = map[string]string{v1alpha1.DedicatedAnnotation: "shop=1"}
		}),
		Entry("what it has prepared", "Prepares = Deployment/web, registry.example/job:v1 of namespace shop", func(_ *world, r *autoscaling.Reserve) {
			r.Spec.Prepare = []autoscaling.Preparation{{Namespace: "shop", Workloads: []string{"Deployment/web"}, Images: []string{"registry.example/job:v1"}}}
		}),
		Entry("that it is being deleted", "Reserve office: being deleted", func(_ *world, r *autoscaling.Reserve) { r.DeletionTimestamp = ptr.To(formatPast(time.Second)) }),
	)

	It("without what other namespaces have", func() {
		w := office()
		other := reserveNamed("zoo", 9)
		other.Namespace = "other"
		w.Reserves = append(w.Reserves, other)
		Expect(w.reserve()).NotTo(ContainSubstring("zoo"))
	})

	It("unless there is none, or several", func() {
		w := office()
		_, err := Reserve(w.Objects, "gone")
		Expect(err).To(MatchError(ErrNotFound))
		other := reserveNamed("office", 9)
		other.Namespace = "other"
		w.Reserves = append(w.Reserves, other)
		_, err = Reserve(w.Objects, "office")
		Expect(err).To(MatchError(ErrAmbiguous))
	})
})

// duty gives a Reserve a schedule.
func duty(start, end autoscaling.CronText, replicas int32) func(*world, *autoscaling.Reserve) {
	return func(_ *world, r *autoscaling.Reserve) {
		r.Spec.Schedules = []autoscaling.ReserveSchedule{{Name: "day", Start: start, End: end, Replicas: &replicas}}
	}
}

// counted is how many devices each Node has.
type counted int

func (c counted) Count(string, string) (int, string) { return int(c), "" }
