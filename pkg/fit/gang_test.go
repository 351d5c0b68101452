// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/fit"
)

// of makes a pod one of a group.
func of(group string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(group)}
	}
}

// members are pods of a group, read as such.
func members(pods ...[]*Pod) (all []*Pod) {
	for _, p := range slices.Concat(pods...) {
		all = append(all, p.Member())
	}
	return all
}

var _ = DescribeTable("Pods that start together",
	func(machines, least int, want string, opened int, pods ...[]*Pod) {
		nodes, g := reserve("g", machines)
		nodes = append(nodes, on(node("s", has("cpu=2")), pod("r", "cpu=1")))
		p := Pack(NewRoom(nodes), Demand{Pods: members(pods...), Least: least}, []Group{g})
		Expect(where(p)).To(Equal(want))
		Expect(p.Opened).To(Equal([]int{opened}))
		Expect(p.Unfinished).To(BeEmpty())
	},
	Entry("have a place each", 3, 3, "g-0: p-0, g-1: p-1, g-2: p-2", 3, many(3, "p", "cpu=4")),
	Entry("have none if one is missing", 2, 3, "left: p-0 p-1 p-2", 0, many(3, "p", "cpu=4")),
	Entry("take no room that there is if one is missing", 1, 3, "left: p-0 p-1 q-0", 0, many(1, "q", "cpu=1"), many(2, "p", "cpu=4")),
	Entry("start without those that need not start with them", 2, 2, "g-0: p-0, g-1: p-1, left: p-2", 2, many(3, "p", "cpu=4")),
	Entry("have none if fewer exist than start together", 3, 4, "left: p-0 p-1 p-2", 0, many(3, "p", "cpu=4")),
	Entry("use room that there is", 1, 5, "g-0: p-1 p-2 p-3 p-4, s: p-0", 1, many(5, "p", "cpu=1")),

	Entry("have another machine if the scheduler may place the small ones apart", 3, 3, "g-0: p-0, g-1: q-0 q-1", 3, many(1, "p", "cpu=4"), many(2, "q", "cpu=2")),
	Entry("have none if there is no other machine", 2, 3, "left: p-0 q-0 q-1", 0, many(1, "p", "cpu=4"), many(2, "q", "cpu=2")),
	Entry("need no other machine if the scheduler places the large one first", 2, 3, "g-0: p-0, g-1: q-0 q-1", 2, many(1, "p", "cpu=4", important(1)), many(2, "q", "cpu=2")),
	Entry("have none if a scheduler that packs pods may take the only place of one of them", 1, 2, "left: p-0 q-0", 0, many(1, "p", "cpu=1"), many(1, "q", "cpu=1", selecting(hostname, "s"))),
	Entry("need no other machine if those that may have no place need none", 2, 2, "g-0: p-0, g-1: q-0 q-1", 2, many(1, "p", "cpu=4"), many(2, "q", "cpu=2")),
)

var _ = DescribeTable("Pods that start together, are alike and have a rule",
	func(want string, nodes ...*corev1.Node) {
		all := open(nodes...)
		for i := range all[:2] {
			all[i].Pods = []*Pod{read(pod("r", "memory=1Gi"))} // a scheduler that spreads pods prefers the others
		}
		p := Pack(NewRoom(all), Demand{Pods: members(many(2, "p", "cpu=4", together(zone, "p"))), Least: 2}, nil)
		Expect(where(p)).To(Equal(want))
	},
	Entry("have a place where all of them fit", "n: p-0, o: p-1", node("n", in("a")), node("o", in("a"))),
	Entry("have none if the scheduler may take a zone that holds one of them alone", "left: p-0 p-1", node("n", in("a")), node("o", in("a")), node("s", in("b"))),
)

var _ = DescribeTable("Pods that start together have none if the scheduler may give the only place of one of them to another, as two places are equal",
	func(only string) {
		all := open(node("n", has("cpu=4")), node("o", has("cpu=4")))
		pods := members(many(1, "p", "cpu=4"), many(1, "q", "cpu=4", selecting(hostname, only)))
		Expect(where(Pack(NewRoom(all), Demand{Pods: pods, Least: 2}, nil))).To(Equal("left: p-0 q-0"))
	},
	Entry("of two nodes, the first", "n"),
	Entry("of two nodes, the second", "o"),
)

var _ = Describe("A pod of a group", func() {
	It("is undecided alone, and decided among its group", func() {
		p := read(pod("p", "", of("g")))
		Expect(On(p, node("n"))).To(Equal(Undecided))
		Expect(On(p.Member(), node("n"))).To(Equal(Fits))
		Expect(p.Group()).To(Equal("g"))
		Expect(read(pod("p", "")).Group()).To(BeEmpty())
		Expect(p.Unclear).NotTo(BeEmpty(), "the member is another one")
	})

	It("stays undecided for any other reason", func() {
		p := read(pod("p", "", of("g"), func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("c")}}
		}))
		Expect(p.Member().Unclear).To(Equal("its claim c does not exist"))
		late := Read(pod("p", "", of("g"), claiming("missing")), true).Located(cluster{}.lookups())
		Expect(late.Member().Unclear).To(ContainSubstring("missing"))
	})

	It("is decided among its group if it is known what it claims", func() {
		lookups := cluster{}.lookups()
		lookups.Devices = costly(1)
		p := NewPod(pod("p", "", of("g"), byName("c")), lookups)
		Expect(On(p, node("n"))).To(Equal(Undecided))
		Expect(On(p.Member(), node("n"))).To(Equal(Fits))
	})

	It("has a shape that other groups do not share, whether it is read as a member before or after that", func() {
		first, second := read(pod("p", "", of("g"))), read(pod("p", "", of("g")))
		Expect(first.Member().Shape()).To(Equal(first.Shape()))
		Expect(second.Shape()).To(Equal(second.Member().Shape()))
		Expect(first.Shape()).To(Equal(second.Shape()))
		Expect(first.Shape()).NotTo(Equal(read(pod("p", "", of("h"))).Shape()))
		Expect(first.Shape()).NotTo(Equal(read(pod("p", "")).Shape()))
	})
})

var _ = Describe("Law", func() {
	It("together: as many pods have a place as must have, or the room is as it was", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			nodes, groups, waiting := drawCluster(t)
			pods := members(reads(waiting...))
			least := rapid.IntRange(1, max(1, len(pods))).Draw(t, "least")
			r := NewRoom(nodes)
			before := answers(r, pods, nodes)
			p := Pack(r, Demand{Pods: pods, Least: least, Budget: rapid.SampledFrom([]int{0, 50, 500}).Draw(t, "budget")}, groups)
			if len(p.Places) >= least {
				return
			}
			if len(p.Places) > 0 || slices.Max(append(p.Opened, 0)) > 0 || !slices.Equal(answers(r, pods, nodes), before) {
				t.Fatalf("%d pods have a place and %d must: %v", len(p.Places), least, p.Opened)
			}
		})
	})
})

// schedules has pods of a group placed as a scheduler does, in any order, and returns how many. It prefers
// nodes with few pods, or those with many.
func schedules(random *rand.Rand, nodes []*corev1.Node, pods []*Pod) (placed int) {
	r, used, packs := NewRoom(open(nodes...)), map[string]float64{}, random.IntN(2) == 0
	random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	for _, p := range pods {
		best := ""
		for _, n := range nodes {
			if r.Ask(p, n.Name) == Fits && (best == "" || (used[n.Name] > used[best]) == packs && used[n.Name] != used[best]) {
				best = n.Name
			}
		}
		if best != "" {
			r.Put(p, best)
			requests := p.Object.Spec.Containers[0].Resources.Requests
			used[best] += requests.Cpu().AsApproximateFloat64()/4 + requests.Memory().AsApproximateFloat64()/(8<<30)
			placed++
		}
	}
	return placed
}

var _ = It("Of a thousand groups of unlike pods, those that get machines start in whichever order the scheduler places them", func() {
	random := rand.New(rand.NewPCG(1, 2))
	served, stuck := 0, 0
	for range 1000 {
		var pods []*Pod
		for kind := range 2 + random.IntN(3) {
			pods = append(pods, many(1+random.IntN(4), fmt.Sprint("p", kind), fmt.Sprintf("cpu=%dm memory=%dMi", 200+random.IntN(3800), 200+random.IntN(7000)), of("g"))...)
		}
		pods = members(pods)
		nodes, g := reserve("g", 2+random.IntN(10))
		packing := Pack(NewRoom(nodes), Demand{Pods: pods, Least: len(pods)}, []Group{g})
		if packing.Opened[0] == 0 {
			continue
		}
		served++
		var opened []*corev1.Node
		for _, n := range nodes[:packing.Opened[0]] {
			opened = append(opened, node(n.Object.Name))
		}
		if schedules(random, opened, pods) < len(pods) {
			stuck++
		}
	}
	Expect(served).To(BeNumerically(">", 500))
	Expect(stuck).To(BeZero(), "of %d", served)
})
