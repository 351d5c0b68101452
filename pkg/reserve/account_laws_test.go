// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

// drawCounted is a view whose replicas may include reserve machines, in either accounting.
func drawCounted(t *rapid.T) View {
	v := drawView(t)
	v.Accounting = rapid.SampledFrom([]pool.Accounting{pool.Additive, pool.Inclusive, pool.Inclusive}).Draw(t, "accounting")
	v.Applied.Counted = rapid.IntRange(0, v.Applied.Excess).Draw(t, "counted")
	v.Applied.Absorbed = rapid.IntRange(0, v.Applied.Excess-v.Applied.Counted).Draw(t, "absorbed")
	v.Min = rapid.IntRange(0, min(4, v.Max)).Draw(t, "min")
	if rapid.IntRange(0, 3).Draw(t, "lowered before") == 0 {
		v.Lowered = Lowered{Lasting: rapid.Bool().Draw(t, "lasting"), Replicas: rapid.IntRange(0, 6).Draw(t, "lowered to"), Wish: v.Wish, Max: v.Max, Times: rapid.IntRange(1, 9).Draw(t, "times"), Until: start.Add(rapid.SampledFrom([]time.Duration{-2 * time.Hour, -time.Minute, time.Minute}).Draw(t, "lowered until"))}
	}
	v.Clamped = rapid.Bool().Draw(t, "clamped")
	return v
}

// total is spec.replicas, but for growth that waits.
func total(r int, a Applied) int { return r + a.Counted }

func counting(name string, holds func(t *rapid.T, v View, p Plan)) {
	It(name, func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawCounted(t)
			holds(t, v, NewPlan(v))
		})
	})
}

var _ = Describe("laws of accounting", func() {
	It("16: where the reserve is counted changes nothing else, so that all laws hold in both accountings", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawCounted(t)
			v.Applied.Absorbed, v.Min, v.Lowered = 0, 0, Lowered{}
			v.Applied.Counted = max(0, min(v.Applied.Counted, min(v.Max, v.Applied.Max)-v.Replicas))
			for i := range v.Machines {
				v.Machines[i].Returned, v.NamedGone = true, 0 // law 12 is about replicas
			}
			additive := v
			additive.Accounting, additive.Applied.Counted = pool.Additive, 0
			p, want := NewPlan(v), NewPlan(additive)
			want.Applied.Counted = p.Applied.Counted
			if !reflect.DeepEqual(p, want) {
				t.Fatalf("%+v\nadditive %+v", p, want)
			}
		})
	})

	counting("16: replicas include registered machines of the excess, and grow by nothing else, nor above max", func(t *rapid.T, v View, p Plan) {
		registered := 0
		for _, m := range carriedOut(v, p).Machines {
			if m.Reserve && m.Registered && !m.Leaving() {
				registered++
			}
		}
		was, is := total(v.Replicas, v.Applied), total(p.Replicas, p.Applied)
		if a := p.Applied; a.Counted < 0 || a.Counted > a.Excess || a.Absorbed != 0 || a.Counted > max(v.Applied.Counted+v.Applied.Absorbed, registered) {
			t.Fatalf("%d are registered: %+v", registered, p)
		}
		if v.Accounting == pool.Additive && p.Applied.Counted > 0 && is <= min(v.Max, p.Applied.Max) {
			t.Fatalf("%+v", p)
		}
		if given := p.Replicas - v.Replicas; is > max(was, v.Max) && (v.Applied.Counted+v.Applied.Absorbed > 0 || is > was+max(0, given)) {
			t.Fatalf("replicas %d -> %d: %+v", was, is, p)
		}
		if v.Accounting == pool.Inclusive && p.Applied.Counted < min(p.Applied.Excess, registered) && is < min(v.Max, max(was, p.Applied.Max)) && p.Lowered.Times == 0 {
			t.Fatalf("%d are registered, %d replicas: %+v", registered, is, p)
		}
	})

	counting("17: a reduction that the reserve absorbed lowers R only to what serves, and the rest is remembered and not made good", func(t *rapid.T, v View, p Plan) {
		serving, _, _ := count(v)
		settled := max(v.Replicas-v.Applied.Absorbed, min(v.Replicas, serving))
		if p.Replicas < settled {
			t.Fatalf("R %d -> %d with %d serving: %+v", v.Replicas, p.Replicas, serving, p)
		}
		lost := v.Applied.Absorbed - (v.Replicas - settled)
		if lost > 0 && (!p.Lowered.Until.After(v.Now) || p.Lowered.Times == 0 || total(p.Replicas, p.Applied) > total(v.Replicas, v.Applied)) {
			t.Fatalf("%d lost: %+v", lost, p)
		}
		if (v.Lowered.Lasting || v.Now.Before(v.Lowered.Until)) && total(v.Replicas, v.Applied) <= v.Lowered.Replicas && v.Applied.Counted+v.Applied.Absorbed > 0 && total(p.Replicas, p.Applied) > total(v.Replicas, v.Applied) {
			t.Fatalf("grows: %+v", p)
		}
	})

	counting("17: a machine that was replaced, as in a rollout, lowers R by no reduction", func(t *rapid.T, v View, p Plan) {
		live := 0
		for _, m := range v.Machines {
			if !m.Leaving() {
				live++
			}
		}
		if live >= pool.VisibleReplicas(v.Replicas, v.Applied) && p.Replicas < v.Replicas {
			t.Fatalf("R %d -> %d with %d machines: %+v", v.Replicas, p.Replicas, live, p)
		}
	})

	counting("18: replicas that include reserve machines do not fall below min", func(t *rapid.T, v View, p Plan) {
		if was, is := total(v.Replicas, v.Applied), total(p.Replicas, p.Applied); is < min(was, v.Min) {
			t.Fatalf("replicas %d -> %d: %+v", was, is, p)
		}
	})

	counting("6: what MCM is shown falls by what workload gave up, and else only through the gate", func(t *rapid.T, v View, p Plan) {
		serving, _, _ := count(v)
		settled := v
		settled.Replicas = max(v.Replicas-v.Applied.Absorbed, min(v.Replicas, serving))
		settled.Applied.Counted, settled.Applied.Absorbed = v.Applied.Counted+v.Replicas-settled.Replicas, 0
		if v.Rollout || pool.VisibleReplicas(p.Replicas, p.Applied) >= pool.VisibleReplicas(settled.Replicas, settled.Applied) {
			return
		}
		for _, m := range deletions(v, carriedOut(v, p), pool.VisibleReplicas(p.Replicas, p.Applied)) {
			if !(m.SeenPriority <= PriorityVictim) && !m.Leaving() && !neverMade(m) {
				for _, other := range deletions(v, carriedOut(v, p), pool.VisibleReplicas(settled.Replicas, settled.Applied)) {
					if other.Name == m.Name {
						return // it goes anyway
					}
				}
				t.Fatalf("%+v would go: %+v", m, p)
			}
		}
	})

	counting("at rest after being carried out, in either accounting", func(t *rapid.T, v View, p Plan) {
		for range 12 {
			if p.AtRest(v) {
				return
			}
			v = carriedOut(v, p)
			p = NewPlan(v)
		}
		t.Fatalf("no rest: %+v", p)
	})

	counting("a change of accounting makes and deletes no machine", func(t *rapid.T, v View, p Plan) {
		if !p.AtRest(v) || p.Replicas < v.Min {
			return // in additive accounting min is workload's alone
		}
		other := v
		if other.Accounting = pool.Inclusive; v.Accounting == pool.Inclusive {
			other.Accounting = pool.Additive
		}
		changed := NewPlan(other)
		if before, after := pool.VisibleReplicas(p.Replicas, p.Applied), pool.VisibleReplicas(changed.Replicas, changed.Applied); after != before {
			t.Fatalf("%d are shown, %d were: %+v\n%+v", after, before, p, changed)
		}
	})
})

var _ = Describe("Every small state that is counted", func() {
	It("comes to rest with S = R and V = X, and with what has a Node in replicas, or says why not", func() {
		began, walked, seen := time.Now(), 0, 0
		states(3, nil, 0, func(machines []Machine) {
			for _, most := range []int{Unbounded, 4} {
				for n := range 4 * 3 * 3 * 2 * 2 {
					if seen++; seen%(*every*4) == 0 {
						walked++
						walkCounted(machines, n%4, n/4%3, n/12%3, n/36%2, n/72, most)
					}
				}
			}
		})
		AddReportEntry("walked", fmt.Sprintf("%d of %d states in %s", walked, seen, time.Since(began).Round(time.Millisecond)))
		Expect(walked).To(BeNumerically(">=", seen/(*every*4)))
	})
})

func walkCounted(machines []Machine, r, x, counted, absorbed, pending, most int) {
	w := newWorld(r, x, counted+absorbed+pending, most)
	w.view.Accounting, w.view.Min = pool.Inclusive, 1
	w.view.Applied.Counted, w.view.Applied.Absorbed = counted, absorbed
	for _, m := range machines {
		w.add(m)
	}
	plan, rested := w.settle()
	v := w.view
	registered, odd := 0, false
	for _, m := range v.Machines {
		odd = odd || m.Preserved || m.Priority == 1
		if m.Reserve && m.Registered && !m.Leaving() {
			registered++
		}
	}
	fits := v.Applied.Counted == registered || v.Applied.Excess < registered || v.Replicas+v.Applied.Counted >= v.Max || plan.Summary.Reason != Complete || odd
	if rested && fits && w.broken == nil && (excuse(w, plan) || v.Replicas+x > v.Max || v.Replicas <= v.Min) {
		return
	}
	Fail(fmt.Sprintf("R %d, X %d, counted %d, absorbed %d, pending %d, max %d: %+v\n%s\nrested %t, fits %t, broken %v\n%+v\n%+v", r, x, counted, absorbed, pending, most, machines,
		strings.Join(w.log, "\n"), rested, fits, w.broken, plan, v))
}
