// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/similar"
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

func settling(m *Member) { m.Settling = true }

// starting returns a view of a process that has just started.
func starting(members ...Member) View {
	v := view(members...)
	v.Starting = true
	return v
}

var _ = Describe("A process that has just started", func() {
	// uneven gives the first member three shares and the others none.
	uneven := func(members []Member) []Member {
		for i := range members {
			share(0)(&members[i])
		}
		share(3)(&members[0])
		return members
	}

	DescribeTable("keeps the shares of a pool while they depend on what machines offer, and that will soon be known", func(want string, v View) {
		Expect(shares(v, New(v))).To(Equal(want))
	},
		Entry("an excess in resources", "3/0/0", starting(with(uneven(poolOf("cpu=9", 1, 1, 1)), 1, settling)...)),
		Entry("an excess that one member gives in resources", "3/0/0",
			starting(with(uneven(poolOf("1", 1, 1, 1)), 2, settling, Excess("cpu=9"))...)),
		Entry("a pool without a name, whose members are those that are similar", "3/0",
			starting(uneven([]Member{NewMember("a", 1, Excess("2")), NewMember("b", 1, settling, unknownTemplate)})...)),
		Entry("not an excess in machines", "1/1/1", starting(with(uneven(poolOf("3", 1, 1, 1)), 1, settling)...)),
		Entry("not where all of it is known", "1/1/1", starting(uneven(poolOf("cpu=9", 1, 1, 1))...)),
		Entry("not later", "1/1/1", view(with(uneven(poolOf("cpu=9", 1, 1, 1)), 1, settling)...)),
		Entry("not for the machines of another pool", "1/1/1/-",
			starting(append(uneven(poolOf("cpu=9", 1, 1, 1)), NewMember("d", 1, Labelled("q"), settling))...)),
		Entry("not without a name for the machines of a pool with one", "1/1/-",
			starting(append(uneven([]Member{NewMember("a", 1, Excess("2")), NewMember("b", 1)}), NewMember("c", 1, Labelled("q"), settling))...)),
	)

	It("keeps what the condition says about shares, and no other condition", func() {
		v := starting(with(uneven(poolOf("cpu=9", 1, 1, 1)), 1, settling)...)
		said := v1alpha1.MachineDeploymentCondition{Type: ConditionShare, Status: "True", Reason: "Spread", Message: "it was"}
		v.Members[0].Object.Status.Conditions = []v1alpha1.MachineDeploymentCondition{said, {Type: "Available", Status: "False", Reason: "R", Message: "other"}}
		Expect(message(New(v), "a", ConditionShare)).To(Equal("it was"))
	})

	It("decides again when Nodes show what machines offer", func() {
		Expect(New(starting(with(poolOf("3", 1), 0, settling)...)).Again).To(Equal(similar.Settling))
		Expect(New(starting(poolOf("3", 1)...)).Again).To(BeZero())
	})

	DescribeTable("splits no growth while it is not known which members are similar, and soon will be", func(want string, v View) {
		Expect(writes(New(v))).To(Equal(want))
	},
		Entry("while it starts", "", starting(growingBeside(settling, unknownTemplate)...)),
		Entry("not later", "a: applied-replicas=4", view(growingBeside(settling, unknownTemplate)...)),
		Entry("not if it will not be known soon", "a: applied-replicas=4", starting(growingBeside(unknownTemplate)...)),
		Entry("not if the template is known", `a: applied-replicas=3 move={"id":"11","to":{"b":1}}`, starting(growingBeside(settling)...)),
	)
})

// growingBeside returns a member that grows, beside another with changes.
func growingBeside(changes ...Change) []Member {
	return []Member{NewMember("a", 4, ScaleUp, Applied(2)), NewMember("b", 2, append([]Change{ScaleUp, Applied(2)}, changes...)...)}
}
