// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

var _ = DescribeTable("Recreate",
	func(replicas int32, sets []part, want string) {
		Expect(moves(New(viewOf(newDeployment(replicas, recreates), sets...)))).To(Equal(want))
	},
	Entry("C1: the first set has all machines at once", int32(3), parts(), "new set of 3"),
	Entry("C1, C2: old machines go before there is a new set", int32(2), parts(of("a", 2, "rr"), of("b", 1, "p")), "a 2 -> 0, b 1 -> 0, delete a-0, delete a-1, delete b-0"),
	Entry("C2: a set that should have machines makes it wait, even without any", int32(1), parts(of("old", 1, "")), "old 1 -> 0"),
	Entry("C3: waits for those that are leaving", int32(2), parts(of("old", 0, "t")), ""),
	Entry("C3: also if the new set is there already", int32(2), parts(of("old", 0, "t"), of("new", 0, "")), ""),
	Entry("C3: also for those of a set that is being deleted", int32(2), parts(of("old", 0, "t", goes)), ""),
	Entry("C4: then creates the new set with all machines", int32(2), parts(of("old", 0, "")), "new set of 2"),
	Entry("C4: or scales it", int32(2), parts(of("old", 0, ""), of("new", 0, "")), "new 0 -> 2, new creates 2"),
	Entry("C4: and rests when it has them", int32(2), parts(of("old", 0, ""), of("new", 2, "rr")), ""),
	Entry("C2: and a set whose replicas somebody has made negative", int32(1), parts(of("old", -1, "rt"), of("new", 0, "")), "old -1 -> 0"),
	Entry("D12: a set for a new template also without replicas", int32(0), parts(of("old", 0, "")), "new set of 0"),
)

var _ = It("C4, R12: When Recreate is complete, old sets beyond the limit go", func() {
	sets := parts(of("old", 0, ""), of("new", 1, "r"))
	Expect(steps(New(viewOf(newDeployment(1, recreates, keepsSets(0)), sets...)))).To(BeEmpty())
	Expect(steps(New(viewOf(newDeployment(1, recreates, keepsSets(0), completed), sets...)))).To(Equal("delete set old"))
})

var _ = It("R7, C1: Recreate protects Nodes, and does not ask to prefer others", func() {
	v := viewOf(newDeployment(1, recreates), of("old", 1, "r"))
	Expect(steps(New(v))).To(Equal("old 1 -> 0, delete old-0, protect old-0"))
})

var _ = DescribeTable("D7: Recreate goes on when replicas change in the midst",
	func(d *api.MachineDeployment, sets []part, want string) {
		v := viewOf(d, sets...)
		d.Spec.Replicas = 5
		Expect(moves(New(v))).To(Equal(want))
	},
	Entry("old machines still go", newDeployment(3, recreates), parts(of("old", 1, "r"), of("new", 2, "rr")), "old 1 -> 0, new desired-replicas 5, new max-replicas 5, delete old-0"),
	Entry("and the new set gets the number then", newDeployment(3, recreates), parts(of("old", 0, ""), of("new", 2, "rr")), "new 2 -> 5, new creates 3"),
	Entry("no set gets it for a moment", newDeployment(1, recreates), parts(of("old", 1, "r"), of("new", 0, "")), "old 1 -> 0, new desired-replicas 5, new max-replicas 5, delete old-0"),
	Entry("the new set does not grow while old machines are leaving", newDeployment(1, recreates), parts(of("old", 0, "t"), of("new", 1, "r")), "new desired-replicas 5, new max-replicas 5"),
	Entry("but shrinks", newDeployment(6, recreates), parts(of("old", 0, "t"), of("new", 6, "rrrrrr")), "new 6 -> 5, delete new-0"),
)
