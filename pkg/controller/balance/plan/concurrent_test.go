// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

// Each write is guarded by the version of one MachineDeployment. So where leadership changes, or the answer to a write is lost,
// two members of a group can begin to give.
var _ = Describe("Two moves in one group", func() {
	DescribeTable("let each replica arrive once", func(want, end string, members ...Member) {
		w := newWorld(members...)
		Expect(writes(New(w.View))).To(Equal(want))
		w.rest()
		Expect(w.replicas()).To(Equal(end))
	},
		Entry("one takes from one giver at a time",
			`b: r=4 applied-replicas=4 move={"id":"1","from":"a","taken":1}`, "3/5/3",
			NewMember("a", 4, ScaleUp, Applied(3), gives("1", "b")),
			NewMember("b", 3, ScaleUp, Applied(3)),
			NewMember("c", 4, ScaleUp, Applied(3), gives("2", "b"))),
		Entry("one takes again only when its first giver has seen that it took",
			"a: r=3 -move", "3/4/3",
			NewMember("a", 4, ScaleUp, Applied(3), gives("1", "b")),
			NewMember("b", 3, ScaleUp, Applied(3), took("1", "a")),
			NewMember("c", 4, ScaleUp, Applied(3), gives("2", "b"))),
		Entry("one takes again only when it has forgotten the first time",
			"b: -move", "3/4/3",
			NewMember("a", 4, ScaleUp, Applied(3), gives("2", "b")),
			NewMember("b", 3, ScaleUp, Applied(3), took("1", "c")),
			NewMember("c", 3, ScaleUp, Applied(3))),
		Entry("one that took from one giver did not take from another of the same move",
			"a: r=3 applied-replicas=3 -move gone=a-0", "3/4/3",
			NewMember("a", 4, Continuous, Applied(4), move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})),
			NewMember("b", 3, Continuous, Applied(3), took("1", "a")),
			NewMember("c", 4, Continuous, Applied(4), move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "c-0"}))),
		Entry("one that waited for a machine takes the replica, and does not drop the move, when it is balanced no more",
			`b: r=3 -share move={"id":"1","from":"a","taken":1}`, "3/3/3",
			NewMember("a", 4, Continuous, Applied(4), move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})),
			NewMember("b", 2, Mode(v1alpha1.BalanceOff), share(1), ready(1), move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1})),
			NewMember("c", 3, Continuous, Applied(3))),
		Entry("one that waited for a machine takes the replica, and no other move begins, when the giver is balanced no more",
			`b: r=3 applied-replicas=3 -share move={"id":"1","from":"a","taken":1}`, "3/3/4",
			NewMember("a", 4, Mode(v1alpha1.BalanceOff), move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})),
			NewMember("b", 2, Continuous, Applied(2), share(1), ready(1), move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1})),
			NewMember("c", 4, Continuous, Applied(4))),
		Entry("one that waited for a machine takes the replica while another asks for growth",
			`b: r=3 applied-replicas=3 -share move={"id":"1","from":"a","taken":1}`, "3/4/4",
			NewMember("a", 4, Mode(v1alpha1.BalanceOff), move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})),
			NewMember("b", 2, ScaleUp, Applied(2), share(1), ready(1), move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1})),
			NewMember("c", 5, ScaleUp, Applied(3))),
		Entry("none waits for one that waits for it",
			`a: move={"id":"1","to":{"b":1}}; c: -move`, "4/4/4",
			NewMember("a", 5, ScaleUp, Applied(3), gives("1", "b", "c")),
			NewMember("b", 4, ScaleUp, Applied(4), took("1", "a")),
			NewMember("c", 4, ScaleUp, Applied(3), gives("2", "b"))),
	)
})
