// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

var _ = Describe("Growth over groups, in a tie,", func() {
	It("goes to the favoured one", func() {
		sizes, left := SplitEvenly([]Group{ng(1, 1, 10), ng(2, 1, 10)}, 1, "ng2")
		Expect(text(sizes, left)).To(Equal("1/2"))
	})

	It("goes to the first by name where none is favoured", func() {
		sizes, left := SplitEvenly([]Group{ng(2, 1, 10), ng(1, 1, 10)}, 1, "")
		Expect(text(sizes, left)).To(Equal("1/2"))
	})
})

var _ = It("Groups that share a name get no growth", func() {
	sizes, left := SplitEvenly([]Group{ng(1, 1, 10), ng(1, 2, 10)}, 3, "ng1")
	Expect(text(sizes, left)).To(Equal("1/2/left 3"))
})

var _ = Describe("A member that asks for no growth", func() {
	It("is not blocked by its pods while another grows", func() {
		v := view(NewMember("a", 2, ScaleUp, Applied(2), holding(InZone("a"))), NewMember("b", 5, ScaleUp, Applied(2)))
		p := New(v)
		Expect(writes(p)).To(ContainSubstring(`"to":{"a":1}`))
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("True Even"))
		Expect(p.Blocks).To(BeEmpty())
	})
})

var _ = It("No machine moves while growth is split", func() {
	p := New(view(NewMember("a", 6, Continuous, Applied(2)), continuous("b", 2)))
	Expect(writes(p)).To(ContainSubstring(`"to":{"b":2}`))
	Expect(condition(p, "b", ConditionBalanced)).To(Equal("True Even"), "it does not wait for growth either")
})

func rankedAs(priority string) func(*Machine) {
	return func(m *Machine) { m.Object.Annotations["machinepriority.machine.sapcloud.io"] = priority }
}

func markedAt(t string) func(*Machine) {
	return func(m *Machine) { m.Object.Annotations[machineutils.MarkedForDeletionTime] = t }
}

var _ = DescribeTable("Growth goes", func(want string, members ...Member) {
	Expect(writes(New(view(members...)))).To(Equal(want))
},
	Entry("to the members where its pods can run, past one where they cannot", `a: applied-replicas=3 move={"id":"11","to":{"c":1}}`,
		NewMember("a", 4, ScaleUp, Applied(2), holding(InZone("c"))), NewMember("b", 2, ScaleUp, Applied(2)), NewMember("c", 2, ScaleUp, Applied(2))),
	Entry("to others from a later member, where that of an earlier one stays",
		`a: applied-replicas=4; c: applied-replicas=3 move={"id":"11","to":{"b":1}}`,
		NewMember("a", 4, ScaleUp, Applied(2), holding(InZone("a"))), NewMember("b", 2, ScaleUp, Applied(2)), NewMember("c", 4, ScaleUp, Applied(2))),
	Entry("to others as far as machines cannot be created", `a: applied-replicas=2 move={"id":"11","to":{"b":1}}`,
		NewMember("a", 3, ScaleUp, Applied(3), stuck(1)), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("nowhere for a machine that failed after it ran, also if it is preserved for a while", "",
		NewMember("a", 3, ScaleUp, Applied(3), func(m *Member) { broken(&m.Machines[2]) }), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("nowhere for a machine that could not be created and is preserved: others would be deleted first", "",
		NewMember("a", 3, ScaleUp, Applied(3), stuck(1), func(m *Member) { m.Machines[2].Preserved = true }), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("nowhere for a machine that cannot be created and that a user ranked: others would be deleted first", "",
		NewMember("a", 3, ScaleUp, Applied(3), stuck(1), func(m *Member) { rankedAs("4")(&m.Machines[2]) }), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("nowhere for a machine that takes too long, while one that does not report would be deleted first", "",
		NewMember("a", 3, ScaleUp, Applied(3), func(m *Member) { phase(mcm.MachineUnknown)(&m.Machines[0]); phase(mcm.MachinePending)(&m.Machines[2]) }), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("nowhere for a machine that cannot be created, while one that was once marked for deletion would be deleted first", "",
		NewMember("a", 3, ScaleUp, Applied(3), stuck(1), func(m *Member) { rankedAs("3")(&m.Machines[0]); markedAt("2026-02-01T12:00:00Z")(&m.Machines[0]) }), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("elsewhere for a machine that cannot be created and was marked for deletion before one that works", `a: applied-replicas=2 move={"id":"11","to":{"b":1}}`,
		NewMember("a", 3, ScaleUp, Applied(3), stuck(1), func(m *Member) {
			markedAt("2026-02-01T12:00:01Z")(&m.Machines[0])
			markedAt("2026-02-01T12:00:00Z")(&m.Machines[2])
		}), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("nowhere for a machine that cannot be created in a rollout: one of the old template would be deleted", "",
		NewMember("a", 3, ScaleUp, Applied(3), stuck(1), rollout), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("as evenly as ever to a member with such a machine", "a: applied-replicas=4; b: applied-replicas=3",
		NewMember("a", 4, ScaleUp, Applied(3), func(m *Member) { broken(&m.Machines[2]) }), NewMember("b", 3, ScaleUp, Applied(2))),
	Entry("not to a member that is being deleted", "a: applied-replicas=6",
		NewMember("a", 6, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2), beingDeleted)),
	Entry("nowhere if machines in reserve cannot be created", "",
		NewMember("a", 3, ScaleUp, Applied(3), failingReserve), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("nowhere if other machines stand in for those that cannot be created", "",
		NewMember("a", 3, ScaleUp, Applied(3), machines(NewMachine("a-x", exhausted))), NewMember("b", 3, ScaleUp, Applied(3))),
	Entry("to a promised machine's member only as what it applies, once it is not balanced",
		`a: applied-replicas=6; b: r=4 applied-replicas=4 move={"id":"1","from":"a","taken":1}`,
		NewMember("a", 6, Mode(v1alpha1.BalanceOff), Applied(4), promises("a", "b")), continuous("b", 3)),
)

var _ = Describe("Growth over a member that failed to create machines, and may try one,", func() {
	// trying is a view in which a grows by one and b has fewer replicas, with changes of b.
	trying := func(changes ...Change) View {
		v := view(NewMember("a", 5, ScaleUp, Applied(4)), NewMember("b", 2, append([]Change{ScaleUp, Applied(2)}, changes...)...))
		v.Memory.Failing = map[string]Failure{"b": {Since: Noon.Add(-2 * time.Minute), Failures: 1, Until: Noon.Add(-time.Minute), Probing: true}}
		return v
	}

	It("goes there for one machine", func() {
		Expect(writes(New(trying()))).To(Equal(`a: move={"id":"11","to":{"b":1}}`))
	})

	It("goes there for one machine beside one that is preserved", func() {
		Expect(writes(New(trying(func(m *Member) { broken(&m.Machines[1]); m.Machines[1].Preserved = true })))).To(Equal(`a: move={"id":"11","to":{"b":1}}`))
	})

	It("stays where it is requested until that machine is created", func() {
		Expect(writes(New(trying(func(m *Member) { m.Machines = m.Machines[:1] })))).To(Equal("a: applied-replicas=5"))
	})

	It("stays where it is requested until that machine is ready", func() {
		Expect(writes(New(trying(func(m *Member) { phase(mcm.MachinePending)(&m.Machines[1]); bornAt(Noon)(&m.Machines[1]) })))).To(Equal("a: applied-replicas=5"))
	})
})

var _ = Describe("A machine's pods", func() {
	// apart is not to run twice in a region.
	apart := func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "x"}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelTopologyRegion, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		}}}}
	}
	// region is a view with all Nodes, and with pods on the machines of a.
	region := func(pods ...[]*fit.Pod) View {
		v := view(continuous("a", len(pods)), created("b", 1))
		v.Members[1].Fresh.Labels[corev1.LabelTopologyRegion] = "r"
		for i, all := range pods {
			m := &v.Members[0].Machines[i]
			hold(m, all...)
			n := node(m.Object.Name)
			n.Labels[corev1.LabelTopologyRegion] = "r"
			v.Nodes = append(v.Nodes, fit.Node{Object: n, Pods: all})
		}
		return v
	}
	goes := func(v View) string {
		m, err := v1alpha1.ParseMove(of(New(v), "a").Write.Annotations[v1alpha1.MoveAnnotation])
		if err != nil {
			return "none"
		}
		return m.Machine
	}
	some := func(pods ...*fit.Pod) []*fit.Pod { return pods }

	It("do not keep themselves from another zone", func() {
		Expect(goes(region(some(pod("x", "a-0", apart)), some(pod("y", "a-1"), pod("z", "a-1")), some(pod("u", "a-2"), pod("v", "a-2"))))).To(Equal("a-0"))
	})

	It("keep others from the zone as long as they stay", func() {
		Expect(goes(region(some(pod("x", "a-0", apart)), some(pod("y", "a-1", apart)), some(pod("z", "a-2", apart))))).To(Equal("none"))
	})

	It("stay where they are, and take no room elsewhere, if one of them could not go", func() {
		bound := pod("bound", "a-0", InZone("a"))
		Expect(goes(region(some(pod("x", "a-0", Large), bound), some(pod("y", "a-1", Large), pod("z", "a-1")), some(pod("u", "a-2", InZone("a")))))).To(Equal("a-1"))
		Expect(goes(region(some(pod("x", "a-0", apart), bound), some(pod("y", "a-1", apart), pod("z", "a-1")), some(pod("u", "a-2", InZone("a")))))).To(Equal("none"))
	})

	It("that were promised to go come first, wherever their machine is", func() {
		for _, name := range []string{"a-0", "a-1", "a-2"} {
			v := view(continuous("a", 3, move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: name})), continuous("b", 3, took("1", "a")))
			hold(&v.Members[0].Machines[0], pod("x", "a-0"))
			hold(&v.Members[0].Machines[1], pod("y", "a-1"))
			hold(&v.Members[0].Machines[2], pod("z", "a-2"))
			Expect(of(New(v), "a").Write.Gone).To(Equal(name))
		}
	})

	It("that are newer than others stay, wherever they are in the list", func() {
		Expect(goes(region(
			some(pod("x", "a-0", aged(time.Minute)), pod("y", "a-0", aged(time.Hour))),
			some(pod("z", "a-1", aged(time.Hour)), pod("u", "a-1", aged(30*time.Minute))),
			some(pod("v", "a-2", aged(time.Minute)), pod("w", "a-2", aged(time.Hour))),
		))).To(Equal("a-1"))
	})

	It("may go while Nodes are ready", func() {
		v := view(continuous("a", 4), created("b", 1))
		for _, name := range []string{"u", "v", "w", "x", "y", "z"} {
			n := node(name)
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			v.Nodes = append(v.Nodes, fit.Node{Object: n})
		}
		Expect(goes(v)).To(Equal("a-0"))
	})
})
