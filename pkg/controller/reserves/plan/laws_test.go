// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	. "github.com/evenkeel/evenkeel/test/builders/reserves"
)

// drawnView is any view, also what no API server would let in.
func drawnView(t *rapid.T) View {
	v := View{Now: Monday.Add(time.Duration(rapid.IntRange(0, 400*24).Draw(t, "hours")) * time.Hour)}
	for i := range rapid.IntRange(0, 4).Draw(t, "pools") {
		p := Site(string(rune('a'+i)), int32(rapid.IntRange(0, 5).Draw(t, "replicas")))
		Bounds(rapid.SampledFrom([]string{"", "0:4", "1:9:2", "2:6:10%", "x"}).Draw(t, "bounds"))(p.Deployment)
		if p.Deployment.Annotations[machine.BoundsAnnotation] == "" {
			delete(p.Deployment.Annotations, machine.BoundsAnnotation)
		}
		if rapid.IntRange(0, 5).Draw(t, "gardener") == 0 {
			Labelled("worker.gardener.cloud/pool", "w")(p.Deployment)
		}
		why := rapid.SampledFrom([]string{reason.Complete, reason.Growing, reason.CannotBeMade}).Draw(t, "why")
		n := rapid.IntRange(0, 4).Draw(t, "held")
		Holds(n, min(n, rapid.IntRange(0, 4).Draw(t, "ready")), why)(&p)
		if rapid.Bool().Draw(t, "annotated") {
			Annotated(machine.RequestedExcessAnnotation, rapid.SampledFrom([]string{"r0=2", "gone=1", "?"}).Draw(t, "requested"))(p.Deployment)
		}
		if rapid.Bool().Draw(t, "sized") {
			p = Sized(p, "4")
		}
		v.Pools = append(v.Pools, p)
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "reserves") {
		r := Wish(fmt.Sprint("r", i), Replicas(rapid.Int32Range(-1, 9).Draw(t, "count")))
		Amount(rapid.SampledFrom([]string{"", "2", "50%", "cpu=9", "max(1,10%)", "lots"}).Draw(t, "amount"))(r)
		for j := range rapid.IntRange(0, 3).Draw(t, "schedules") {
			Scheduled(fmt.Sprint("s", j), rapid.SampledFrom([]string{"0 7 * * *", "*/15 * * * *", "0 0 29 2 *", "x"}).Draw(t, "start"),
				rapid.SampledFrom([]string{"0 19 * * *", "2h", "30 3 * * SUN"}).Draw(t, "end"), rapid.Int32Range(0, 9).Draw(t, "more"))(r)
		}
		for _, p := range v.Pools {
			if rapid.Bool().Draw(t, "known") {
				r.Status.Pools = append(r.Status.Pools, v1alpha1.ReservePoolStatus{
					Name: p.Deployment.Name, DesiredReplicas: rapid.Int32Range(-1, 5).Draw(t, "before"), Blocked: rapid.Bool().Draw(t, "blocked"),
				})
			}
		}
		v.Reserves = append(v.Reserves, r)
	}
	return v
}

var _ = Describe("Any plan", func() {
	It("stays within max, asks for what is desired where there is room, and settles (laws 2, 7 and 9)", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			v := drawnView(t)
			for before, round := "", 0; round < 12; round++ { // one for each step of make before break
				p := New(v)
				for _, d := range p.Decisions {
					checkRoom(t, v, d)
				}
				if v = after(v); text(p) == before {
					break
				}
				before = text(p)
			}
			p := New(v)
			if len(p.Requests) > 0 {
				t.Fatalf("writes %s at rest", Requests(p))
			}
			for _, d := range p.Decisions {
				sum := 0
				for _, part := range d.Parts {
					sum += part.Machines
				}
				if steady := d.Reason == reason.Complete || d.Reason == reason.NotRequested; steady && sum != d.Desired {
					t.Fatalf("%s asks for %s, desired %d", d.Reserve.Name, spread(d), d.Desired)
				}
				if d.Reason == reason.Growing || d.Reason == reason.CannotBeMade {
					t.Fatalf("%s has not settled: %s %s", d.Reserve.Name, d.Message, spread(d))
				}
				if s := NewStatus(d, v.Now.Add(time.Hour)); !equality.Semantic.DeepEqual(s, d.Reserve.Status) {
					t.Fatalf("status of %s is written at rest:\n%v\n%v", d.Reserve.Name, s, d.Reserve.Status)
				}
			}
		})
	})

	It("changes nothing of what it is given", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			v := drawnView(t)
			was := View{}
			for _, r := range v.Reserves {
				was.Reserves = append(was.Reserves, r.DeepCopy())
			}
			for _, p := range v.Pools {
				p.Deployment, p.Allocatable = p.Deployment.DeepCopy(), p.Allocatable.DeepCopy()
				was.Pools = append(was.Pools, p)
			}
			for _, d := range New(v).Decisions {
				d.After(v.Now)
			}
			if !equality.Semantic.DeepEqual(v.Reserves, was.Reserves) || !equality.Semantic.DeepEqual(v.Pools, was.Pools) {
				t.Fatalf("%+v\nbefore, and now\n%+v", was, v)
			}
		})
	})

	It("does not depend on the order of anything", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			v := drawnView(t)
			w := View{Now: v.Now, Pools: append([]Pool{}, v.Pools...), Reserves: append([]*v1alpha1.Reserve{}, v.Reserves...)}
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
			random.Shuffle(len(w.Pools), func(i, j int) { w.Pools[i], w.Pools[j] = w.Pools[j], w.Pools[i] })
			random.Shuffle(len(w.Reserves), func(i, j int) { w.Reserves[i], w.Reserves[j] = w.Reserves[j], w.Reserves[i] })
			if a, b := text(New(v)), text(New(w)); a != b {
				t.Fatalf("%s\n%s", a, b)
			}
		})
	})

	It("asks for the same with and without another Reserve (law 10)", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			v := drawnView(t)
			if len(v.Reserves) == 0 {
				return
			}
			rest := View{Now: v.Now, Pools: v.Pools, Reserves: v.Reserves[1:]}
			for i, d := range New(rest).Decisions {
				if other := New(v).Decisions[i+1]; spread(d) != spread(other) || d.Reason != other.Reason {
					t.Fatalf("%s %s, and beside another %s %s", spread(d), d.Reason, spread(other), other.Reason)
				}
			}
		})
	})

	It("takes no ready machine away before the one that stands in for it is ready (law 4)", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			v := drawnView(t)
			for _, d := range New(v).Decisions {
				if d.Reason != reason.Growing && d.Reason != reason.CannotBeMade && d.Reason != reason.Complete {
					continue // room is missing, or it stays as it is
				}
				var before, now, kept int
				for _, part := range d.Parts {
					ready, was := readyIn(v, part), 0
					for _, s := range d.Reserve.Status.Pools {
						if s.Name == part.Deployment.Name {
							was = int(max(0, s.DesiredReplicas))
						}
					}
					before, now = before+min(ready, was), now+min(ready, part.Machines)
					kept += min(ready, min(was, roomOf(part.Deployment, hibernated(v))))
				}
				if now < min(d.Desired, before, kept) {
					t.Fatalf("%d of %d ready machines stay, desired %d: %s", now, before, d.Desired, spread(d))
				}
			}
		})
	})
})

// readyIn is how many machines are ready where a part is requested.
func readyIn(v View, part Part) int {
	return v.Pools[slices.IndexFunc(v.Pools, func(p Pool) bool { return p.Deployment == part.Deployment })].Ready
}

// text is what a plan comes to.
func text(p Plan) string {
	all := Requests(p) + " " + p.Again.String()
	for _, d := range p.Decisions {
		all += fmt.Sprint("; ", d.Reserve.Name, " ", spread(d), " ", d.Desired, d.Active, d.Reason, d.Message)
	}
	return all
}

func roomOf(d *machine.MachineDeployment, hibernated bool) int {
	b, err := machine.ParseBounds(d.Annotations[machine.BoundsAnnotation])
	switch {
	case hibernated && d.Labels["worker.gardener.cloud/pool"] != "":
		return 0
	case err == nil:
		return max(0, int(b.Max-d.Spec.Replicas))
	case d.Labels["worker.gardener.cloud/pool"] != "":
		return 0
	}
	return reserve.Unbounded
}

func hibernated(v View) bool {
	return !slices.ContainsFunc(v.Pools, func(p Pool) bool { return p.Deployment.Spec.Replicas > 0 })
}

func checkRoom(t *rapid.T, v View, d Decision) {
	for _, part := range d.Parts {
		_, bounded := part.Deployment.Annotations[machine.BoundsAnnotation]
		stands := bounded && part.Deployment.Annotations[machine.BoundsAnnotation] == "x"
		if room := roomOf(part.Deployment, hibernated(v)); part.Machines < 0 || part.Machines > room && !stands {
			t.Fatalf("%s has room for %d: %s", part.Deployment.Name, room, spread(d))
		}
	}
}

// shortAfter is a view in which a plan has been carried out, and at most so many machines can be created in each MachineDeployment.
func shortAfter(v View, most []int) View {
	v = after(v)
	for i := range v.Pools {
		if n := most[i]; v.Pools[i].Exist > n {
			Holds(n, n, reason.CannotBeMade)(&v.Pools[i])
		}
	}
	return v
}

var _ = It("A MachineDeployment keeps its try beyond its share, too, where another one stands in (laws 4 and 9)", func() {
	v := View{Now: Monday, Pools: append(two(), Site("c", 1)), Reserves: []*v1alpha1.Reserve{Wish("r", Replicas(6))}}
	play := func(a, b int) string {
		for range 8 {
			v = shortAfter(v, []int{a, b, 9})
		}
		Expect(New(v).Requests).To(BeEmpty())
		return spread(New(v).Decisions[0])
	}
	Expect(play(9, 9)).To(Equal("a=2 b=2 c=2"))
	Expect(play(0, 2)).To(Equal("a=1* b=3* c=4"), "else b is complete with 2, and asked for 3 again")
	Expect(play(0, 9)).To(Equal("a=1* b=3 c=3"))
	Expect(play(9, 9)).To(Equal("a=2 b=2 c=2"))
})

var _ = It("Plans come to rest wherever machines cannot be created, and request all that can be (laws 4 and 9)", func() {
	rapid.Check(GinkgoTB(), func(t *rapid.T) {
		v, most, room := View{Now: Monday}, []int{}, 0
		for i := range rapid.IntRange(1, 4).Draw(t, "pools") {
			above := rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(t, "room")
			v.Pools = append(v.Pools, Site(string(rune('a'+i)), 1, Bounds("0:"+string(rune('1'+above)))))
			most = append(most, rapid.SampledFrom([]int{0, 1, 2, 3, 9}).Draw(t, "most"))
			room += min(above, most[i])
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "reserves") {
			v.Reserves = append(v.Reserves, Wish("r"+string(rune('0'+i)), Replicas(rapid.Int32Range(0, 9).Draw(t, "count"))))
			if i > 0 {
				Names(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3, rapid.ID).Draw(t, "names")...)(v.Reserves[i])
			}
		}
		for range 40 {
			v = shortAfter(v, most)
		}
		rest := text(New(v))
		for range 8 {
			if v = shortAfter(v, most); text(New(v)) != rest {
				t.Fatalf("%v: %s\nand then %s", most, rest, text(New(v)))
			}
		}
		ready, d := 0, New(v).Decisions[0]
		for _, p := range d.Parts {
			ready += p.Ready
		}
		if want := min(d.Desired, room); ready < want {
			t.Fatalf("%v: %d ready instead of %d: %s", most, ready, want, rest)
		}
	})
})
