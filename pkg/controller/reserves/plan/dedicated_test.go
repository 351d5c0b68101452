// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	. "github.com/evenkeel/evenkeel/test/builders/reserves"
)

// dedicates dedicates machines of a Reserve to owners.
func dedicates(text string) func(*v1alpha1.Reserve) {
	return func(r *v1alpha1.Reserve) { r.Annotations = map[string]string{machine.DedicatedAnnotation: text} }
}

// ofA requests machines of one MachineDeployment, some of them for owners.
func ofA(name string, n int32, text string) *v1alpha1.Reserve {
	return Wish(name, Replicas(n), Names("a"), dedicates(text))
}

var _ = DescribeTable("Whose spare machines they are (law 11)",
	func(want string, all ...*v1alpha1.Reserve) {
		p := New(View{Now: Monday, Reserves: all, Pools: two()})
		got := map[string]string{}
		for _, r := range p.Requests {
			got[r.Deployment.Name] = r.Dedicated
		}
		Expect(got["a"]).To(Equal(want))
		Expect(got["b"]).To(BeEmpty())
	},
	Entry("everybody's", "", Wish("r", Replicas(3), Names("a"))),
	Entry("an owner's", "shop=2", ofA("r", 3, "shop=2")),
	Entry("an owner's, as many as there are", "shop=3", ofA("r", 3, "shop=5")),
	Entry("those of two owners", "ci=1 shop=2", ofA("r", 3, "shop=2 ci=1")),
	Entry("those of two owners, as many as there are", "ci=2 shop=1", ofA("r", 3, "shop=2 ci=2")),
	Entry("those of one owner, where none is left for another", "ci=3", ofA("r", 3, "shop=2 ci=3")),
	Entry("those of an owner that is named twice, by the larger number", "shop=3", ofA("r", 3, "shop=1 shop=3")),
	Entry("those of another owner beside one that is named twice", "shop=2 zoo=1", ofA("r", 3, "shop=1 shop=2 zoo=1")),
	Entry("those of an owner that two Reserves name", "shop=2", ofA("r", 3, "shop=2"), ofA("s", 2, "shop=1")),
	Entry("the same, the other way round", "shop=2", ofA("r", 2, "shop=1"), ofA("s", 3, "shop=2")),
	Entry("those of owners of two Reserves", "ci=1 shop=2", ofA("r", 3, "shop=2"), ofA("s", 2, "ci=1")),
	Entry("everybody's, if the Reserve has several MachineDeployments", "", Wish("r", Replicas(3), dedicates("shop=2"))),
	Entry("everybody's, if it cannot be read", "", ofA("r", 3, "shop")),
	Entry("those of another Reserve, if one cannot be read", "ci=1", ofA("r", 3, "shop"), ofA("s", 2, "ci=1")),
	Entry("nobody's, if none are requested", "", ofA("r", 0, "shop=2")),
	Entry("everybody's, if a Reserve that names an owner requests none", "", Wish("r", Replicas(3), Names("a")), ofA("s", 0, "shop=2")),
	Entry("an owner's, as many as the Reserve requests that names it", "shop=1", Wish("r", Replicas(3), Names("a")), ofA("s", 1, "shop=2")),
	Entry("those that the MachineDeployment itself was given", "shop=1", ofA("r", 1, "shop=1"), Wish("s", Replicas(1), Names("b"))),
)

var _ = It("Owners of several Reserves are no more than can be read, so that one Reserve does not void what others dedicate (law 10)", func() {
	var owners []string
	for i := range machine.MaxDedications {
		owners = append(owners, fmt.Sprintf("team%02d=1", i))
	}
	all := []*v1alpha1.Reserve{ofA("r", 100, strings.Join(owners, " ")), ofA("s", 100, "zoo=1")}
	text := New(View{Now: Monday, Reserves: all, Pools: two()}).Requests[0].Dedicated
	Expect(machine.ParseDedications(text)).To(HaveLen(machine.MaxDedications))
	Expect(text).To(Equal(strings.Join(owners, " ")))
})

var _ = It("Owners that cannot be read are reported, and the amount counts all the same", func() {
	v := after(after(View{Now: Monday, Reserves: []*v1alpha1.Reserve{ofA("r", 3, "shop"), ofA("s", 2, "ci=1")}, Pools: two()}))
	d := New(v).Decisions
	Expect(spread(d[0])).To(Equal("a=3"))
	Expect(d[0].Reason).To(Equal(reason.Invalid))
	Expect(d[0].Message).To(And(ContainSubstring(`dedicated "shop": write owners and counts`), ContainSubstring("3 of 3 machines are ready")))
	Expect(d[1].Reason).To(Equal(reason.Complete), "law 10")
})

var _ = It("Owners of machines in several MachineDeployments are reported, and the amount counts all the same", func() {
	reserves := []*v1alpha1.Reserve{Wish("r", Replicas(3), dedicates("shop=2")), Wish("s", Replicas(2), dedicates(""))}
	d := New(after(after(View{Now: Monday, Reserves: reserves, Pools: two()}))).Decisions
	Expect(spread(d[0])).To(Equal("a=2 b=1"))
	Expect(d[0].Reason).To(Equal(reason.Invalid))
	Expect(d[0].Message).To(And(ContainSubstring("selects 2 MachineDeployments, and can dedicate machines of a single one"), ContainSubstring("3 of 3 machines are ready")))
	Expect(d[1].Reason).To(Equal(reason.Complete))
})

var _ = DescribeTable("An annotation about owners is written only if it differs (law 6)",
	func(has string, want int) {
		pool := Site("a", 3, Annotated(machine.RequestedExcessAnnotation, "r=3"), Annotated(machine.DedicatedAnnotation, has))
		Expect(New(View{Now: Monday, Reserves: []*v1alpha1.Reserve{ofA("r", 3, "shop=2")}, Pools: []Pool{pool}}).Requests).To(HaveLen(want))
	},
	Entry("the same", "shop=2", 0),
	Entry("another number", "shop=1", 1),
	Entry("another owner", "ci=2", 1),
	Entry("an empty one", "", 1),
)
