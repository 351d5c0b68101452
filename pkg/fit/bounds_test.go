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
