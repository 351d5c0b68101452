// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

var _ = Describe("While the target cluster does not answer", func() {
	silent := func(members ...Member) View {
		v := view(members...)
		v.Unreachable = "target cluster: the API server has not answered for 30s"
		return v
	}

	It("growth is acted on where it is asked for, and the condition says why", func() {
		p := New(silent(NewMember("a", 6, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2))))
		Expect(writes(p)).To(Equal("a: applied-replicas=6"))
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False " + ReasonUnreachable))
		Expect(ReasonUnreachable).To(Equal(reachability.Reason))
	})

	DescribeTable("no machine moves", func(members ...Member) {
		v := silent(members...)
		Expect(writes(New(v))).To(BeEmpty())
		v.Unreachable = ""
		Expect(writes(New(v))).NotTo(BeEmpty(), "it would without the silence")
	},
		Entry("that was not promised", zones(Continuous, 4, 1)[0], zones(Continuous, 4, 1)[1]),
		Entry("in whose place one is in reserve",
			zones(Continuous, 4, 1)[0],
			NewMember("b", 1, Continuous, Applied(1), share(1), ready(1), move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1}))),
		Entry("that is promised",
			NewMember("a", 4, Continuous, Applied(4), move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})),
			NewMember("b", 1, Continuous, Applied(1), share(1), ready(1), move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1}))),
		Entry("whose replica has arrived",
			NewMember("a", 4, Continuous, Applied(4), move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})),
			NewMember("b", 2, Continuous, Applied(2), move(v1alpha1.Move{ID: "1", From: "a", Taken: 1}))),
	)

	It("growth that was promised to others arrives", func() {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		w.ask("a", 8)
		w.carry()
		w.Unreachable = "silent"
		w.settle()
		Expect(w.replicas()).To(Equal("4/4/4"))
	})
})
