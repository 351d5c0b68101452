// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"fmt"
	"math"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

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

// affordable is what a packing may cost: its budget, and once more to repeat the best way.
func affordable(budget int) int { return 2 * budget }

// crowd draws a great many pods that wait, of a great many shapes, with all the rules that pods may have.
func crowd(t *rapid.T, namespace string) (d Demand) {
	shapes := rapid.IntRange(1, 60).Draw(t, "shapes")
	rules := rapid.IntRange(0, MaxRules/2).Draw(t, "rules")
	for i := range shapes {
		var change []func(*corev1.Pod)
		for r := range rules {
			change = append(change, apart(hostname, fmt.Sprint("x", r)), spread([]string{zone, hostname}[r%2], math.MaxInt32, fmt.Sprint("x", r)))
		}
		p := read(pod(fmt.Sprintf("x%d-%d", i, i), fmt.Sprintf("cpu=%dm", i%7), append(change, namespaced(namespace))...))
		d.Pods = append(d.Pods, p)
		if rapid.Bool().Draw(t, "more") {
			d.Uncreated = append(d.Uncreated, Uncreated{Like: p, Count: rapid.SampledFrom([]int{1, 1000, math.MaxInt32, math.MaxInt}).Draw(t, "count")})
		}
	}
	return d
}

var _ = Describe("Law", func() {
	It("affordable: the work of a packing is bounded by the room there is, whatever waits", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			spares := rapid.IntRange(0, 3).Draw(t, "spares")
			nodes, g := reserve("g", spares, in("a"), has("cpu=4 memory=8Gi pods=110"))
			nodes = append(nodes, on(node("n", in("b")), pod("r", "")))
			d := crowd(t, "crowd")
			d.Budget = 20_000
			p := Pack(NewRoom(nodes), d, []Group{g})
			if p.Work > affordable(d.Budget) {
				t.Fatalf("%d shapes took %d comparisons", len(d.Pods), p.Work)
			}
			created := 0
			for _, n := range p.Uncreated {
				created += n
			}
			if held := len(p.Places) + created; held > 110*(1+spares) {
				t.Fatalf("%d pods have a place", held)
			}
			if len(p.Places)+len(p.Left)+len(p.Unfinished) != len(d.Pods) {
				t.Fatalf("of %d pods %d have a place, %d have none and %d were not finished", len(d.Pods), len(p.Places), len(p.Left), len(p.Unfinished))
			}
		})
	})
})

var _ = Describe("A crowd of one namespace", func() {
	It("leaves the pods of another their part of the budget", func() {
		nodes, g := reserve("g", 40, in("a"), has("cpu=4 pods=110"))
		var rules []func(*corev1.Pod)
		for r := range MaxRules {
			rules = append(rules, spread([]string{zone, hostname}[r%2], math.MaxInt32, fmt.Sprint("x", r)))
		}
		var d Demand
		for i := range 400 {
			p := read(pod(fmt.Sprintf("x%d", i), cpu(i), append(rules, namespaced("crowd"))...))
			d.Pods, d.Uncreated = append(d.Pods, p), append(d.Uncreated, Uncreated{Like: p, Count: math.MaxInt32})
		}
		d.Pods = append(d.Pods, many(1, "neighbour", "cpu=1m", selecting(hostname, "g-0"))...)
		p := Pack(NewRoom(nodes), d, []Group{g})
		Expect(p.Unfinished).NotTo(BeEmpty())
		Expect(p.Work).To(BeNumerically("<=", affordable(MaxWork)))
		Expect(p.Places).To(ContainElement(And(HaveField("Pod.Object.Name", "neighbour-0"), HaveField("Node", "g-0"))))
	})

	It("costs no more where each of many namespaces has one", func() {
		nodes, g := reserve("g", 10, in("a"), has("cpu=4 pods=110"))
		d := Demand{Budget: 20_000}
		for n := range 40 {
			for i := range 10 {
				rules := []func(*corev1.Pod){spread(zone, math.MaxInt32, fmt.Sprint("x", i)), namespaced(fmt.Sprint("crowd-", n))}
				p := read(pod(fmt.Sprintf("x%d", i), "cpu=1m", rules...))
				d.Uncreated = append(d.Uncreated, Uncreated{Like: p, Count: math.MaxInt32})
			}
		}
		Expect(Pack(NewRoom(nodes), d, []Group{g}).Work).To(BeNumerically("<=", affordable(d.Budget)))
	})

	// zones are so many nodes, each in a zone of its own.
	zones := func(n int) *Room {
		nodes := make([]*corev1.Node, n)
		for i := range nodes {
			nodes[i] = node(fmt.Sprint("n-", i), in(fmt.Sprint("zone-", i)), has("pods=1000"))
		}
		return NewRoom(open(nodes...))
	}
	// one is a pod of each of so many namespaces.
	one := func(namespaces int, name string, change ...func(*corev1.Pod)) (all []*Pod) {
		for n := range namespaces {
			all = append(all, read(pod(name, "", append(change, namespaced(fmt.Sprint(name, "-", n)))...)))
		}
		return all
	}

	DescribeTable("costs no more where each of 1,000 namespaces has one that is expensive to look at",
		func(budget, machines int, change ...func(*corev1.Pod)) {
			p := Pack(zones(machines), Demand{Budget: budget, Pods: one(1000, "x", change...)}, nil)
			Expect(p.Work).To(BeNumerically("<=", affordable(budget)))
			Expect(p.Unfinished).NotTo(BeEmpty())
		},
		Entry("because its rule concerns all nodes", 20_000, 100, spread(zone, 1, "x")),
		Entry("because its rule concerns all nodes, and a namespace has next to nothing", 2000, 100, spread(zone, 1, "x")),
		Entry("because its rule concerns thousands of nodes", MaxWork, 5000, spread(zone, 1, "x")),
		Entry("because its rule concerns the pods of all others", 20_000, 100, apart(zone, "x", anyNamespace)),
		Entry("because it tolerates much", 20_000, 1, tolerantOf(60)),
	)

	It("costs no more where it makes the placing of each other pod expensive", func() {
		d := Demand{Budget: 20_000, Pods: one(1000, "plain")}
		for i := range 30 {
			d.Pods = append(d.Pods, read(pod("x", cpu(i), spread(zone, math.MaxInt32, "y"), important(1))))
		}
		Expect(Pack(zones(1), d, nil).Work).To(BeNumerically("<=", affordable(d.Budget)))
	})

	It("leaves pods of other namespaces their part, also where each of many namespaces has one that is expensive to look at", func() {
		d := Demand{Budget: 20_000, Pods: slices.Concat(one(100, "x", spread(zone, 1, "x"), important(1)), one(100, "plain"))}
		p := Pack(zones(100), d, nil)
		Expect(p.Unfinished).NotTo(BeEmpty())
		Expect(p.Unfinished).To(HaveEach(HaveField("Object.Name", "x")))
	})

	It("is left where it is when the decision is interrupted", func() {
		nodes, g := reserve("g", 2)
		p := Pack(NewRoom(nodes), Demand{Pods: many(9, "p", "cpu=1"), Interrupted: func() bool { return true }}, []Group{g})
		Expect(p.Unfinished).To(HaveLen(9))
		Expect(p.Opened).To(Equal([]int{0}))
	})

	It("stays interrupted, whatever is answered later", func() {
		nodes, g := reserve("g", 2)
		asked := 0
		d := Demand{Interrupted: func() bool { asked++; return asked == 1 }}
		for i := range 1000 { // of a shape each, so that there is occasion to ask again
			d.Pods = append(d.Pods, read(pod(fmt.Sprint("p", i), fmt.Sprintf("cpu=%dm", i+1))))
		}
		p := Pack(NewRoom(nodes), d, []Group{g})
		Expect(p.Places).To(BeEmpty())
		Expect(p.Unfinished).To(HaveLen(1000))
		Expect(asked).To(Equal(1))
	})
})

var _ = DescribeTable("Pods that are yet to be created",
	func(count int, want string, uncreated int) {
		nodes, g := reserve("a", 2)
		like := read(pod("p-0", "cpu=1"))
		p := Pack(NewRoom(nodes), Demand{Pods: []*Pod{like}, Uncreated: []Uncreated{{Like: like, Count: count}}}, []Group{g})
		Expect(where(p)).To(Equal(want))
		Expect(p.Uncreated["a-0"] + p.Uncreated["a-1"]).To(Equal(uncreated))
	},
	Entry("none", 0, "a-0: p-0", 0),
	Entry("fewer than none", -5, "a-0: p-0", 0),
	Entry("as many as one machine holds", 3, "a-0: p-0", 3),
	Entry("for another machine", 4, "a-0: p-0", 4),
	Entry("60 million", 60_000_000, "a-0: p-0", 7),
	Entry("as many as there can be", math.MaxInt, "a-0: p-0", 7),
)

var _ = It("takes requests whose sum is no number for what no machine holds", func() {
	p := pod("p", "")
	for range 2 {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewQuantity(math.MaxInt64, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(math.MaxInt64, resource.DecimalSI),
		}}})
	}
	for _, p := range []*corev1.Pod{p, Slim(p)} {
		Expect(On(read(p), node("n"))).To(Equal(Full))
		running := p.DeepCopy()
		running.Spec.NodeName = "n"
		room := NewRoom([]Node{{Object: node("n"), Pods: slices.Repeat([]*Pod{NewPod(running, nil)}, 9)}})
		Expect(room.Ask(read(pod("q", "cpu=1")), "n")).To(Equal(Full))
	}
})
