// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
)

var _ = Describe("Hostile sizes (law 8)", func() {
	It("are bounded: 10,000 buffers of as many shapes, each with as many chunks as there can be, and more buffers than are looked at", func() {
		var all []plan.Buffer
		for i := range 10_100 {
			b := Chunks(fmt.Sprintf("b%05d", i), math.MaxInt32, fmt.Sprintf("cpu=%dm,memory=1Mi", 1000+i))
			if b.Object.Namespace = "big"; i%100 == 0 {
				b.Object.Namespace = fmt.Sprintf("n%05d", i)
			}
			all = append(all, b)
		}
		var pools []plan.Pool
		for i := range 20 {
			pools = append(pools, Site(fmt.Sprintf("p%02d", i), "cpu=16,memory=64Gi", 1_000_000))
		}
		p := plan.New(plan.View{Buffers: all, Pools: pools})
		total, refused := 0, 0
		for _, r := range p.Requests {
			total += r.Machines
		}
		Expect(total).To(And(BeNumerically(">", 0), BeNumerically("<=", 4000)))
		for _, d := range p.Decisions {
			if s := plan.NewStatus(d, Now); s.Replicas == nil {
				Expect(d.Problem.Reason).To(Equal(reason.TooManyBuffers))
				Expect(d.Problem.Message).To(Equal("only 10000 buffers can have chunks at a time, and namespaces take turns: delete buffers"))
				Expect(d.Buffer.Namespace).To(Equal("big"), "namespaces take turns")
				refused++
			}
		}
		Expect(refused).To(Equal(100))
	})

	// different are buffers of a namespace, each with one chunk of a size of its own.
	different := func(namespace string, n int) (all []plan.Buffer) {
		for i := range n {
			b := Chunks(fmt.Sprintf("b%05d", i), 1, fmt.Sprintf("cpu=%dm", 2000+i))
			b.Object.Namespace = namespace
			all = append(all, b)
		}
		return all
	}
	// large has twenty MachineDeployments, each with as many machines as are considered.
	large := func(buffers ...[]plan.Buffer) (v plan.View) {
		v.Buffers = slices.Concat(buffers...)
		for i := range 20 {
			v.Pools = append(v.Pools, Site(fmt.Sprintf("p%02d", i), "cpu=16", 1_000_000))
		}
		return v
	}
	placed := func(p plan.Plan) map[string]int {
		counts := map[string]int{}
		for _, d := range p.Decisions {
			counts[d.Buffer.Namespace] += d.Placed
		}
		return counts
	}

	It("leave each of 2,000 different chunks a place, however many machines there could be", func() {
		Expect(placed(plan.New(large(different(Shop, 2000))))).To(HaveKeyWithValue(Shop, 2000))
	})

	It("leave the chunks of other namespaces their places, however many and different those of one are", func() {
		counts := placed(plan.New(large(different("crowd", 9000), different("a", 10), different("b", 10))))
		Expect(counts).To(And(HaveKeyWithValue("a", 10), HaveKeyWithValue("b", 10)))
		Expect(counts["crowd"]).To(BeNumerically(">", 0))
	})
})

var _ = Describe("Laws", func() {
	It("every plan is within max, at rest after it is carried out, and the same in any order", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := draw(t)
			p := plan.New(v)
			rooms := map[string]int{}
			for _, s := range v.Pools {
				rooms[s.Deployment.Name] = 0
				if b, err := machine.ParseBounds(s.Deployment.Annotations[machine.BoundsAnnotation]); err == nil {
					rooms[s.Deployment.Name] = max(0, int(b.Max-s.Deployment.Spec.Replicas))
				}
			}
			for _, r := range p.Requests {
				if r.Machines > rooms[r.Pool] {
					t.Fatalf("%d machines in %s, with room for %d", r.Machines, r.Pool, rooms[r.Pool])
				}
			}
			for _, d := range p.Decisions {
				if d.Ready > d.Placed || d.Placed > d.Chunks || d.Chunks > d.Asked {
					t.Fatalf("%s: %d ready of %d placed of %d of %d", d.Buffer.Name, d.Ready, d.Placed, d.Chunks, d.Asked)
				}
			}
			mixed := v
			mixed.Buffers, mixed.Pools = shuffled(v.Buffers), shuffled(v.Pools)
			if a, b := Requests(p), Requests(plan.New(mixed)); a != b {
				t.Fatalf("%q in one order, %q in another", a, b)
			}
			rest := After(After(After(v)))
			if again := plan.New(rest); len(again.Requests) > 0 {
				t.Fatalf("not at rest: %s after %s", Requests(again), Spread(rest))
			}
		})
	})
})

func shuffled[T any](all []T) []T {
	mixed := append([]T{}, all...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	return mixed
}

func draw(t *rapid.T) plan.View {
	var v plan.View
	for i := range rapid.IntRange(0, 4).Draw(t, "pools") {
		capacity := rapid.SampledFrom([]string{"cpu=2,memory=8Gi", "cpu=4,memory=4Gi", "cpu=16,memory=64Gi"}).Draw(t, "capacity")
		p := Site(fmt.Sprint("p", i), capacity, rapid.IntRange(1, 12).Draw(t, "max"))
		if rapid.IntRange(0, 5).Draw(t, "odd") == 0 {
			p.Deployment.Annotations[machine.BoundsAnnotation] = "?"
		}
		v.Pools = append(v.Pools, p)
		if rapid.Bool().Draw(t, "has") {
			v.Reserves = append(v.Reserves, plan.NewReserve(Namespace, drawRequest(t, p.Deployment.Name)))
			Holds(rapid.IntRange(0, 9).Draw(t, "ready"), reason.Growing)(&v.Pools[i])
		}
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "buffers") {
		needs := rapid.SampledFrom([]string{"cpu=1", "cpu=1,memory=3Gi", "cpu=3,memory=1Gi", "memory=7Gi", "cpu=20"}).Draw(t, "requests")
		owned := func(*plan.Buffer) {}
		if rapid.IntRange(0, 2).Draw(t, "prepares") == 0 {
			owned = prepared("true")
		}
		if to := rapid.SampledFrom([]string{"", "", "namespace", "namespace, namespace/ci"}).Draw(t, "dedicated to"); to != "" {
			owned = dedicated(to)
		}
		v.Buffers = append(v.Buffers, Chunks(fmt.Sprint("b", i), rapid.IntRange(0, 20).Draw(t, "chunks"), needs, owned))
	}
	return v
}

func drawRequest(t *rapid.T, pool string) plan.Request {
	r := plan.Request{Pool: pool, Machines: rapid.IntRange(0, 9).Draw(t, "asked")}
	if rapid.IntRange(0, 2).Draw(t, "dedicates") == 0 {
		r.Dedicated = []machine.Dedication{{Owner: machine.Owner(Shop), Machines: int32(rapid.IntRange(0, 9).Draw(t, "dedicated"))}}
	}
	return r
}
