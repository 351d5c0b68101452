// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = Describe("A view of a snapshot", func() {
	read := pool.Machine{Object: fixture.Machine("m", func(m *mcm.Machine) {
		m.Annotations = map[string]string{machine.ReserveAnnotation: "marked", machineutils.MachinePriority: "7"}
		m.Spec.ProviderID, m.Status.CurrentStatus.Phase = "virtual:///m", mcm.MachineRunning
	}), Set: "set", Pods: 2, Preserved: true, Named: true}

	It("has its numbers and its machines", func() {
		noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		v := reserve.ViewOf(pool.Snapshot{
			Now: noon, Replicas: 9, Workload: 3, Applied: pool.Applied{Excess: 2, Max: 8}, Machines: []pool.Machine{read},
			Wishes: pool.Wishes{Bounds: &machine.Bounds{Min: 1, Max: 7}}, Rollout: pool.Rollout{Set: "set", Replacing: true},
		})
		Expect(v.Machines).To(Equal([]reserve.Machine{{
			Name: "m", Phase: mcm.MachineRunning, Set: "set", Reserve: true, HasProviderID: true, Protected: true, Named: true,
			Pods: 2, Registered: true, Open: true,
		}}))
		v.Machines = nil
		Expect(v).To(Equal(reserve.View{
			Replicas: 3, Min: 1, Max: 7, Applied: reserve.Applied{Excess: 2, Max: 8}, CurrentSet: "set", Rollout: true, Now: noon,
		}))
		Expect(reserve.ViewOf(pool.Snapshot{}).Max).To(Equal(reserve.Unbounded))
	})

	It("has what is dedicated, and which machines are claimed", func() {
		s := pool.Snapshot{Requested: 3, Workload: 3, Machines: []pool.Machine{read}, Deployment: &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{machine.DedicatedAnnotation: "shop=1", machine.ClaimedAnnotation: "3:m"},
		}}}
		v := reserve.ViewOf(s)
		Expect(v.Dedicated).To(Equal([]machine.Dedication{{Owner: "shop", Machines: 1}}))
		Expect(v.Machines[0].Claimed).To(BeTrue())
		s.Workload = 2
		Expect(reserve.ViewOf(s).Machines[0].Claimed).To(BeFalse())
	})

	It("has the age, the failure, the deletion and the owner of a machine", func() {
		noon := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		m := pool.Machine{Object: fixture.Machine("m", func(m *mcm.Machine) {
			m.CreationTimestamp, m.DeletionTimestamp = noon, &noon
			m.Annotations = map[string]string{machine.DedicatedAnnotation: "shop"}
			m.Status.CurrentStatus.Phase = mcm.MachineCrashLoopBackOff
			m.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateFailed, ErrorCode: "ResourceExhausted"}
		})}
		one := reserve.MachineOf(m)
		Expect(one.Created).To(Equal(noon.Time))
		Expect([]bool{one.Deleted, one.Failing}).To(Equal([]bool{true, true}))
		Expect(one.Owner).To(BeEquivalentTo("shop"))
	})

	DescribeTable("shows what the priority and the preservation of a machine say", func(priority string, preserved, first, protected bool) {
		m := pool.Machine{Preserved: preserved, Object: fixture.Machine("m", func(m *mcm.Machine) {
			m.Annotations = map[string]string{machineutils.MachinePriority: priority}
		})}
		one := reserve.MachineOf(m)
		Expect([]bool{one.First, one.Protected}).To(Equal([]bool{first, protected}))
	},
		Entry(nil, "3", false, false, false),
		Entry(nil, "2", false, true, false),
		Entry(nil, "4", false, false, true),
		Entry(nil, "3", true, false, true),
	)

	It("shows whether the Node of a machine is cordoned", func() {
		Expect(reserve.MachineOf(read).Cordoned).To(BeFalse(), "without a Node")
		for _, is := range []bool{false, true} {
			with := read
			with.Node = fixture.Node("m", func(n *corev1.Node) { n.Spec.Unschedulable = is })
			Expect(reserve.MachineOf(with).Cordoned).To(Equal(is))
		}
	})

	It("shows whether the Node of a machine has a taint that is not of its template", func() {
		with := read
		with.Object = read.Object.DeepCopy()
		reserved, own := corev1.Taint{Key: machine.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}
		with.Object.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{own}
		for _, t := range []struct {
			taint corev1.Taint
			is    bool
		}{{own, false}, {corev1.Taint{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}, false}, {corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}, true}} {
			with.Node = fixture.Node("m", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{reserved, t.taint} })
			Expect(reserve.MachineOf(with).Tainted).To(Equal(t.is), t.taint.Key)
		}
	})

	It("counts a machine as serving where a pod does not tolerate the taint", func() {
		occupied := read
		occupied.NonTolerating = 1
		Expect(reserve.MachineOf(occupied).Reserve).To(BeFalse())
	})

	It("counts a machine as busy whose pods cannot be seen", func() {
		unseen := read
		unseen.Pods, unseen.Unseen = 0, true
		Expect(reserve.MachineOf(unseen).Busy()).To(BeTrue())
		Expect(reserve.MachineOf(unseen).Pods).To(Equal(1))
	})
})

var _ = It("The order of release is that of the plan", func() {
	rapid.Check(GinkgoTB(), func(t *rapid.T) {
		v := drawView(t)
		v.NamedSpares = 0
		var want []string
		for _, move := range reserve.Decide(v).Moves {
			if !move.Reserve {
				want = append(want, move.Name)
			}
		}
		if got := reserve.ReleaseOrder(v, v.Replicas); !slices.Equal(got, want) {
			t.Fatalf("plan releases %v, order is %v", want, got)
		}
	})
})

var _ = It("The order of release is for the replicas that are asked about, and prefers what no client wants deleted first", func() {
	w := settled(3, 2, reserve.Unbounded)
	Expect(reserve.ReleaseOrder(w.view, 3)).To(BeEmpty())
	Expect(reserve.ReleaseOrder(w.view, 4)).To(Equal([]string{"d"}))
	Expect(reserve.ReleaseOrder(w.view, 5)).To(Equal([]string{"d", "e"}))
	w.machine("d").First = true
	Expect(reserve.ReleaseOrder(w.view, 4)).To(Equal([]string{"e"}))
	w.machine("e").First = true
	Expect(reserve.ReleaseOrder(w.view, 4)).To(Equal([]string{"d"}))
})

var _ = It("Among machines that are equal otherwise, those that are prepared are released first", func() {
	w := settled(3, 2, reserve.Unbounded)
	w.machine("d").Unprepared = true
	Expect(reserve.ReleaseOrder(w.view, 4)).To(Equal([]string{"e"}))
	w.machine("e").Pods = 1
	Expect(reserve.ReleaseOrder(w.view, 4)).To(Equal([]string{"d"}))
	w.machine("e").Pods, w.machine("e").Unprepared = 0, true
	Expect(reserve.ReleaseOrder(w.view, 4)).To(Equal([]string{"d"}), "none is prepared")
	Expect(reserve.ReleaseOrder(w.view, 5)).To(Equal([]string{"d", "e"}))
})

var _ = It("The order of release is the current revision first, so that pods move once in a rollout, and then those without a taint of their own", func() {
	w := settled(3, 2, reserve.Unbounded)
	w.machine("d").Tainted = true
	Expect(reserve.ReleaseOrder(w.view, 4)).To(Equal([]string{"e"}))
	w.machine("e").Pods = 1
	Expect(reserve.ReleaseOrder(w.view, 4)).To(Equal([]string{"e"}), "pods may fit beside it")
	w.machine("e").Set = "older"
	Expect(reserve.ReleaseOrder(w.view, 4)).To(Equal([]string{"d"}), "its new Node may have the taint for seconds")
	w.machine("d").Cordoned = true
	Expect(reserve.ReleaseOrder(w.view, 4)).To(Equal([]string{"e"}))
})
