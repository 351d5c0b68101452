// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/fit"
)

// law checks a property of drawn clusters.
func law(name string, check func(t *rapid.T, nodes []Node, groups []Group, waiting []*corev1.Pod)) bool {
	return It(name, func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			nodes, groups, waiting := drawCluster(t)
			if rapid.Bool().Draw(t, "with devices") {
				equip(t, nodes, waiting)
			}
			check(t, nodes, groups, waiting)
		})
	})
}

func answers(r *Room, pods []*Pod, nodes []Node) []Obstacle {
	var all []Obstacle
	for _, p := range pods {
		for _, n := range nodes {
			all = append(all, r.Ask(p, n.Object.Name))
		}
	}
	return all
}

// keysGone are the taints that count as gone on a node.
func keysGone(n Node) []string {
	if n.Closed {
		return nil
	}
	return n.Without
}

var _ = Describe("Law", func() {
	law("sound and complete: a room answers as the rules read", func(t *rapid.T, nodes []Node, _ []Group, waiting []*corev1.Pod) {
		room, plain := NewRoom(nodes), referenceOf(nodes)
		for _, p := range waiting {
			read := read(p)
			for _, n := range nodes {
				got, want := room.Ask(read, n.Object.Name), plain.obstacles(p, n.Object, keysGone(n)...)
				if got == Fits && len(want) > 0 || got != Fits && !slices.Contains(want, got) {
					t.Fatalf("%s on %s: %q, and the rules say %q", p.Name, n.Object.Name, got, want)
				}
			}
			// Wherever it goes, what is true then is told then.
			if len(nodes) > 0 {
				i := rapid.IntRange(0, len(nodes)-1).Draw(t, "goes to")
				name := nodes[i].Object.Name
				room.Put(read, name)
				plain.runs[name] = append(plain.runs[name], p)
			}
		}
	})

	law("undone: what is put and removed leaves no trace", func(t *rapid.T, nodes []Node, _ []Group, waiting []*corev1.Pod) {
		room, pods := NewRoom(nodes), reads(waiting...)
		before := answers(NewRoom(nodes), pods, nodes)
		if rapid.Bool().Draw(t, "asked before") { // what is counted of pods is kept then, and is counted anew else
			answers(room, pods, nodes)
		}
		var put []Place
		for _, p := range pods {
			for _, n := range nodes {
				if rapid.Bool().Draw(t, "put") {
					put = append(put, Place{Pod: p, Node: n.Object.Name})
					room.Put(p, n.Object.Name)
				}
			}
		}
		for _, place := range slices.Backward(put) {
			room.Remove(place.Pod, place.Node)
		}
		if after := answers(room, pods, nodes); !slices.Equal(before, after) {
			t.Fatalf("was %q, is %q", before, after)
		}
	})

	law("packed, lean, bounded: a packing can be lived in", func(t *rapid.T, nodes []Node, groups []Group, waiting []*corev1.Pod) {
		p := pack(NewRoom(nodes), reads(waiting...), groups)
		plain := referenceOf(nodes)
		next := func(g int) string { return groups[g].Nodes[p.Opened[g]-1] }
		open := map[string]bool{}
		for g, n := range p.Opened {
			if n > groups[g].Limit || n > len(groups[g].Nodes) {
				t.Fatalf("group %d opens %d of %d", g, n, groups[g].Limit)
			}
			for _, name := range groups[g].Nodes[:n] {
				open[name] = true
			}
			if n > 0 && !slices.ContainsFunc(p.Places, func(at Place) bool { return at.Node == next(g) }) {
				t.Fatalf("%s is opened for no pod: %s", next(g), where(p))
			}
		}
		for _, place := range p.Places {
			i := slices.IndexFunc(nodes, func(n Node) bool { return n.Object.Name == place.Node })
			var gone []string
			if !nodes[i].Closed || open[place.Node] {
				gone = nodes[i].Without
			}
			if broken := plain.obstacles(place.Pod.Object, nodes[i].Object, gone...); len(broken) > 0 {
				t.Fatalf("%s on %s breaks %q: %s", place.Pod.Object.Name, place.Node, broken, where(p))
			}
			plain.runs[place.Node] = append(plain.runs[place.Node], place.Pod.Object)
		}
		if len(p.Places)+len(p.Left) != len(waiting) {
			t.Fatalf("of %d pods %d have a place and %d have none", len(waiting), len(p.Places), len(p.Left))
		}
		for _, left := range p.Left {
			for g := range groups {
				if n := p.Opened[g]; n < min(groups[g].Limit, len(groups[g].Nodes)) {
					i := slices.IndexFunc(nodes, func(at Node) bool { return at.Object.Name == groups[g].Nodes[n] })
					if len(plain.obstacles(left.Object, nodes[i].Object, reserved)) == 0 {
						t.Fatalf("%s is left over and %s would hold it: %s", left.Object.Name, nodes[i].Object.Name, where(p))
					}
				}
			}
		}
	})

	law("order-free: the order of nodes and pods does not change how many machines open", func(t *rapid.T, nodes []Node, groups []Group, waiting []*corev1.Pod) {
		for _, p := range waiting {
			if p.Spec.Affinity != nil || p.Spec.TopologySpreadConstraints != nil || len(portsUsed(p)) > 0 {
				return // who comes first decides where the others may go
			}
		}
		one := pack(NewRoom(nodes), reads(waiting...), groups)
		random := rand.New(rand.NewPCG(uint64(rapid.IntRange(0, 1000).Draw(t, "order")), 0))
		random.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
		other := pack(NewRoom(nodes), reads(waiting...), groups)
		if !slices.Equal(one.Opened, other.Opened) || len(one.Left) != len(other.Left) {
			t.Fatalf("one order: %v %s, another: %v %s", one.Opened, where(one), other.Opened, where(other))
		}
	})

	It("frugal: no more machines than first-fit-decreasing, whatever decreases, and no fewer than there must be", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			nodes, group := reserve("g", 10, has("cpu=2 memory=2000Mi pods=100"))
			all, pods := drawLoads(t)
			opened := pack(NewRoom(nodes), pods, []Group{group}).Opened[0]
			if least := leastMachines(all, 2000); opened < least {
				t.Fatalf("%v: %d machines, where nothing less than %d can do", all, opened, least)
			}
			for by, size := range decreasing {
				if most, _ := firstFitDecreasing(all, 2000, len(all), size); opened > most {
					t.Fatalf("%v: %d machines, where first-fit-decreasing needs %d, by %s", all, opened, most, by)
				}
			}
		})
	})

	It("generous: where machines do not suffice, no more pods are left than first-fit-decreasing leaves, whatever decreases", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			machines := rapid.IntRange(1, 3).Draw(t, "machines")
			nodes, group := reserve("g", machines, has("cpu=2 memory=2000Mi pods=100"))
			all, pods := drawLoads(t)
			left := len(pack(NewRoom(nodes), pods, []Group{group}).Left)
			for by, size := range decreasing {
				if _, most := firstFitDecreasing(all, 2000, machines, size); left > most {
					t.Fatalf("%v on %d machines: %d are left, where first-fit-decreasing leaves %d, by %s", all, machines, left, most, by)
				}
			}
		})
	})

	It("total: whatever is malformed is answered", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			text := rapid.SampledFrom([]string{"", "a b", "-", "zone", "🛶"})
			p := pod("p", "cpu=1")
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: int32(rapid.IntRange(-1, 1).Draw(t, "skew")), TopologyKey: text.Draw(t, "key"), WhenUnsatisfiable: corev1.DoNotSchedule}}
			apart(text.Draw(t, "key"), text.Draw(t, "app"))(p)
			p.Spec.NodeSelector = map[string]string{text.Draw(t, "label"): text.Draw(t, "value")}
			p.Spec.Containers[0].Resources.Requests["x"] = amounts("x=-5")["x"]
			n := &corev1.Node{}
			On(read(p), n)
			group := Group{Nodes: []string{"", "nowhere"}, Limit: rapid.IntRange(-1, 3).Draw(t, "limit")}
			pack(NewRoom([]Node{{Object: n, Closed: rapid.Bool().Draw(t, "closed")}}), reads(p, p), []Group{group, group})
		})
	})
})

// load is what a pod requests, or all pods of a machine do.
type load struct{ cpu, memory int }

// drawLoads are ten pods of different loads: some two or three fill a machine, since the orders differ most then.
func drawLoads(t *rapid.T) (all []load, pods []*Pod) {
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	amounts := random.Perm(700) // no two are equal, so that each order is one
	for i := range 10 {
		one := load{300 + amounts[2*i], 300 + amounts[2*i+1]}
		all = append(all, one)
		pods = append(pods, many(1, fmt.Sprint("p", i), fmt.Sprintf("cpu=%dm memory=%dMi", one.cpu, one.memory))...)
	}
	return all, pods
}

// decreasing are the amounts by which first-fit-decreasing may put the largest first.
var decreasing = map[string]func(load) int{
	"largest part": func(l load) int { return max(l.cpu, l.memory) },
	"CPU":          func(l load) int { return l.cpu },
	"memory":       func(l load) int { return l.memory },
}

// leastMachines is how many machines of a capacity there must be.
func leastMachines(all []load, capacity int) int {
	var total load
	for _, l := range all {
		total.cpu, total.memory = total.cpu+l.cpu, total.memory+l.memory
	}
	return (max(total.cpu, total.memory) + capacity - 1) / capacity
}

// firstFitDecreasing is how many machines of a capacity are filled where each load goes to the first that has room for
// it, and how many loads are left where there are no more machines than most.
func firstFitDecreasing(all []load, capacity, most int, size func(load) int) (filled, left int) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b load) int { return size(b) - size(a) })
	var machines []load
	for _, l := range all {
		i := slices.IndexFunc(machines, func(m load) bool { return m.cpu+l.cpu <= capacity && m.memory+l.memory <= capacity })
		switch {
		case i < 0 && len(machines) == most:
			left++
			continue
		case i < 0:
			i, machines = len(machines), append(machines, load{})
		}
		machines[i] = load{machines[i].cpu + l.cpu, machines[i].memory + l.memory}
	}
	return len(machines), left
}

var _ = It("has a test for every law that its page names", func() {
	page, err := os.ReadFile("doc.go")
	Expect(err).NotTo(HaveOccurred())
	var tests []byte
	for _, name := range []string{"laws_test.go", "budget_test.go", "gang_test.go"} {
		text, err := os.ReadFile(name)
		Expect(err).NotTo(HaveOccurred())
		tests = append(tests, text...)
	}
	laws := regexp.MustCompile(`(?m)^//\t([a-z-]+)  +\S`).FindAllStringSubmatch(string(page), -1)
	Expect(len(laws)).To(BeNumerically(">=", 9))
	for _, law := range laws {
		Expect(string(tests)).To(MatchRegexp(`(law|It)\("[^"]*\b`+law[1]+`\b`), law[1])
	}
})
