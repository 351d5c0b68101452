// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

var _ = Describe("Work that users of the target cluster could make endless is bounded", func() {
	It("in the kinds of pods that wait: where there are too many, growth stays where it was asked for", func() {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		for i := range 5000 {
			w.Waiting = append(w.Waiting, pod(fmt.Sprint("p", i), "", app(fmt.Sprint("app", i))))
		}
		w.ask("b", 5)
		p := New(w.View)
		Expect(condition(p, "b", ConditionBalanced)).To(Equal("False PodsBound"))
		Expect(message(p, "b", ConditionBalanced)).To(Equal("more than 500 kinds of pods wait, too many to check where each of them could run"))
		w.Waiting = w.Waiting[:501]
		Expect(writes(New(w.View))).NotTo(ContainSubstring("move"))
		w.Waiting = w.Waiting[:500]
		Expect(writes(New(w.View))).To(ContainSubstring("move"))
	})

	It("in the kinds of pods that wait, not in their number", func() {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		for i := range 5000 {
			w.Waiting = append(w.Waiting, pod(fmt.Sprint("p", i), "", app("same")))
		}
		w.ask("b", 5)
		Expect(writes(New(w.View))).To(ContainSubstring("move"))
	})

	It("in the kinds of pods that run: those after the first 501 do not count", func() {
		w := newWorld(zones(ScaleUp, 2, 2)...)
		for i := range 500 {
			w.put("a", 0, pod(fmt.Sprint("p", i), "a-0", app(fmt.Sprint("app", i)), InZone("a")))
		}
		w.put("a", 0, pod("free", "a-0"))
		w.ask("a", 4)
		Expect(writes(New(w.View))).To(ContainSubstring("move"))
		free := w.Members[0].Machines[0].Workload[500]
		w.Members[0].Machines[0].Workload[500] = pod("p500", "a-0", app("app500"), InZone("a"))
		w.put("a", 0, free)
		Expect(condition(New(w.View), "a", ConditionBalanced)).To(Equal("False PodsBound"))
	})

	It("in the machines that may go: only the hundred that come first count", func() {
		v := view(zones(Continuous, 101, 1)...)
		a := &v.Members[0]
		for i := range a.Machines {
			// The last by name is a-99.
			eviction := map[bool]string{true: "true", false: "false"}[i == 99]
			hold(&a.Machines[i], pod("x", a.Machines[i].Object.Name, safe(eviction)))
		}
		Expect(condition(New(v), "a", ConditionBalanced)).To(Equal("False NotSafeToEvict"))
		a.Machines, a.Object.Spec.Replicas = a.Machines[:100], 100
		Applied(100)(a)
		Expect(condition(New(v), "a", ConditionBalanced)).To(Equal("False Moving"))
	})

	It("in budgets: a namespace with too many of them lets no pod go", func() {
		v := view(zones(Continuous, 3, 1)...)
		for i := range v.Members[0].Machines {
			m := &v.Members[0].Machines[i]
			hold(m, pod("x", m.Object.Name))
			v.Nodes = append(v.Nodes, fit.Node{Object: node(m.Object.Name), Pods: m.Workload})
		}
		for i := range 5000 {
			v.Budgets = append(v.Budgets, budget(fmt.Sprint("q", i), 1))
		}
		Expect(condition(New(v), "a", ConditionBalanced)).To(Equal("False PodDisruptionBudget"))
		Expect(message(New(v), "a", ConditionBalanced)).To(Equal("PodDisruptionBudget: namespace default has more than 1000 of them, too many to check"))
		v.Budgets = v.Budgets[:1001]
		Expect(condition(New(v), "a", ConditionBalanced)).To(Equal("False PodDisruptionBudget"))
		v.Budgets = v.Budgets[:1000]
		Expect(condition(New(v), "a", ConditionBalanced)).To(Equal("False Moving"))
	})
})

var _ = It("Growth is split over more MachineDeployments than fit into one annotation", func() {
	const many = 400
	var members []Member
	for i := range many {
		members = append(members, NewMember(fmt.Sprintf("%0200d", i), 2, ScaleUp, Applied(2)))
	}
	w := newWorld(members...)
	w.ask(members[0].Object.Name, 2+many)
	w.settle()
	for _, n := range Numbers(w.replicas()) {
		Expect(n).To(Equal(3))
	}
})
