// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan/plantest"
	"github.com/evenkeel/evenkeel/pkg/fit"
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
		w.Waiting = w.Waiting[:100]
		Expect(writes(New(w.View))).To(ContainSubstring("move"))
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
		v.Budgets = v.Budgets[:100]
		Expect(condition(New(v), "a", ConditionBalanced)).To(Equal("False Moving"))
	})
})
