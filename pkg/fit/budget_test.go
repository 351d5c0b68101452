// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/fit"
)

var _ = DescribeTable("A packing ends where its budget does: to look at a pod and to place it, and maybe take it back, costs three",
	func(budget, placed int) {
		p := Pack(NewRoom(open(node("n", has("pods=100")))), Demand{Pods: many(20, "p", ""), Budget: budget}, nil)
		Expect(p.Places).To(HaveLen(placed))
		Expect(p.Unfinished).To(HaveLen(20 - placed))
	},
	Entry("half a comparison for all, and as much for the namespace", 1, 0),
	Entry("one each", 2, 1),
	Entry("a step that has begun is completed", 6, 2),
	Entry("before the end of the common half", 12, 4),
	Entry("past it", 14, 5),
	Entry("short of one pod", 59, 19),
	Entry("all", 60, 20),
)

var _ = It("The common half of a budget is for the first to come, also where so little is left for each namespace that it is nothing", func() {
	pods := reads(pod("p", "", namespaced("a")), pod("p", "", namespaced("b")))
	p := Pack(NewRoom(open(node("n"))), Demand{Pods: pods, Budget: 2}, nil)
	Expect(p).To(And(HaveField("Places", HaveLen(1)), HaveField("Unfinished", HaveLen(1))))
})

var _ = DescribeTable("Another order is tried only if the common half of the budget is not used up",
	func(budget, work int) {
		nodes, g := reserve("g", 1)
		p := Pack(NewRoom(nodes), Demand{Pods: many(2, "p", "cpu=3"), Budget: budget}, []Group{g})
		Expect(where(p)).To(Equal("g-0: p-0, left: p-1"))
		Expect(p.Work).To(Equal(work))
	},
	Entry("the first order takes all of it", 22, 12),
	Entry("it leaves one comparison, and the second is tried", 24, 20),
)

var _ = It("Pods of higher priority come first, also where the first order takes all of the common half of the budget", func() {
	nodes, g := reserve("g", 1)
	for budget := 16; budget <= 64; budget++ {
		p := Pack(NewRoom(slices.Clone(nodes)), Demand{Pods: slices.Concat(many(1, "p", "cpu=4"), many(1, "i", "cpu=1", important(10))), Budget: budget}, []Group{g})
		Expect(where(p)).To(Equal("g-0: i-0, left: p-0"), "with a budget of %d", budget)
	}
})

var _ = DescribeTable("No other order is tried once as few machines open as there must be",
	func(work int, requests, machine string) {
		nodes, g := reserve("g", 4, has(machine))
		p := pack(NewRoom(nodes), many(3, "p", requests), []Group{g})
		Expect(p.Opened).To(Equal([]int{3}))
		Expect(p.Work).To(Equal(work))
	},
	Entry("by CPU", 30, "cpu=3", "cpu=4"),
	Entry("by memory", 30, "memory=7Gi", "memory=8Gi"),
	Entry("by number", 30, "", "pods=1"),
	Entry("by CPU, of which a machine has one thousandth", 30, "cpu=1m", "cpu=1m"),
	Entry("by a device, for which that is not known", 122, "example.com/gpu=2", "example.com/gpu=3"),
)

var _ = DescribeTable("Whether to stop is asked once in 256 steps",
	func(shapes, times int) { // each takes three, and one more shows that all were considered
		nodes, g := reserve("g", 1)
		asked := 0
		d := Demand{Interrupted: func() bool { asked++; return false }}
		for i := range shapes {
			d.Pods = append(d.Pods, read(pod(fmt.Sprint("p", i), fmt.Sprintf("cpu=%dm", i+1000000))))
		}
		Pack(NewRoom(nodes), d, []Group{g})
		Expect(asked).To(Equal(times))
	},
	Entry("two steps before the fourth time", 255, 3),
	Entry("at the fourth time", 256, 4),
)

var _ = Describe("A packing that ends early", func() {
	It("finds no pod without a place, also where there is neither a node nor a machine", func() {
		p := Pack(NewRoom(nil), Demand{Pods: many(1, "p", ""), Interrupted: func() bool { return true }}, nil)
		Expect(p).To(And(HaveField("Left", BeEmpty()), HaveField("Unfinished", HaveLen(1))))
	})

	It("names only those that are yet to be created and have no place as unfinished, not those that have one, nor pods that exist", func() {
		first, last := read(pod("first", "", important(1))), read(pod("last", "", important(-1)))
		d := Demand{Pods: many(20, "p", ""), Uncreated: []Uncreated{{Like: first, Count: 1}}, Budget: 20}
		p := Pack(NewRoom(open(node("n", has("pods=100")))), d, nil)
		Expect(p.Unfinished).NotTo(BeEmpty())
		Expect(p.Uncreated).To(Equal(map[string]int{"n": 1}))
		Expect(p.UnfinishedLike).To(BeEmpty())
		d.Uncreated = append(d.Uncreated, Uncreated{Like: last, Count: 1})
		Expect(Pack(NewRoom(open(node("n", has("pods=100")))), d, nil).UnfinishedLike).To(Equal(map[*Pod]bool{last: true}))
	})
})
