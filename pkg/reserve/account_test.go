// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

var _ = DescribeTable("A reserve of two of three, though replicas that include it were reduced (11), is",
	func(want Reason, most int, until time.Duration) {
		v := reduced()
		v.Max, v.Lowered.Max, v.Lowered.Until = most, most, start.Add(until)
		Expect(Decide(v).Summary.Reason).To(Equal(want))
	},
	Entry("as large as the client lets it be", ReplicasLowered, 9, time.Minute),
	Entry("as large as max allows, which the client does not change", AtMax, 7, time.Minute),
	Entry("as large as max allows, when the client's reduction is over", AtMax, 7, -time.Minute),
	Entry("about to grow, when the client's reduction is over", Growing, 9, -time.Minute),
)

var _ = DescribeTable("A reduction by two of replicas that include the reserve (11) leaves workload",
	func(want int, change func(*View)) {
		v := reduced()
		v.Applied.Counted, v.Applied.Absorbed, v.Lowered = 0, 2, Lowered{}
		change(&v)
		Expect(Decide(v).Replicas).To(Equal(want))
	},
	Entry("as it is while all machines serve", 5, func(*View) {}),
	Entry("one fewer if one is gone", 4, func(v *View) { v.Machines = v.Machines[1:] }),
	Entry("as it is if one is unhealthy, which is replaced", 5, func(v *View) { v.Machines[0].Phase = mcm.MachineUnknown }),
	Entry("as it is if one has failed", 5, func(v *View) { v.Machines[0].Phase = mcm.MachineFailed }),
)

// reduced is a pool of five machines that serve and two in reserve, which replicas include. Three were desired, until a client reduced them.
func reduced() View {
	v := View{
		Replicas: 5, Wish: 3, Min: 1, Max: 9, Accounting: pool.Inclusive, CurrentSet: "new", SetReplicas: 7,
		Applied: Applied{Excess: 2, Max: 7, Counted: 2}, Now: start,
		Lowered: Lowered{Times: 2, Until: start.Add(time.Minute), Replicas: 7, Wish: 3, Max: 9},
	}
	for i := range 7 {
		m := Machine{Name: fmt.Sprint("m", i), Created: start, Phase: mcm.MachineRunning, Set: "new", HasProviderID: true, Registered: true}
		if i >= 5 {
			m.Reserve = true
		}
		v.Machines = append(v.Machines, m)
	}
	return v
}

var _ = Describe("A reduction of replicas (11)", func() {
	DescribeTable("is over as soon as a client requests something else", func(over bool, change func(*View)) {
		v := reduced()
		change(&v)
		Expect(Decide(v).Lowered.Until.Equal(v.Now)).To(Equal(over))
	},
		Entry("but not before", false, func(*View) {}),
		Entry("another excess", true, func(v *View) { v.Wish = 4 }),
		Entry("another max", true, func(v *View) { v.Max = 8 }),
		Entry("more replicas", true, func(v *View) { v.Replicas++ }),
		Entry("but not by settings that cannot be read, so that the reserve stays as it is", false, func(v *View) { v.SettingsUnknown, v.Wish, v.Max = true, 2, 7 }),
		Entry("more replicas, though settings cannot be read", true, func(v *View) { v.SettingsUnknown, v.Wish, v.Max = true, 2, 7; v.Replicas++ }),
	)

	DescribeTable("to a max that the client knows lasts until a client requests something else", func(limits bool, change func(*View)) {
		v := reduced()
		v.Lowered.Lasting, v.Lowered.Until = true, start.Add(-100*time.Hour)
		change(&v)
		p := Decide(v)
		Expect(p.Lowered.Lasting).To(Equal(limits))
		Expect(p.Summary.Reason == ReplicasLowered).To(Equal(limits))
	},
		Entry("for ever", true, func(*View) {}),
		Entry("another excess", false, func(v *View) { v.Wish = 4 }),
		Entry("another max", false, func(v *View) { v.Max = 8 }),
		Entry("more replicas", false, func(v *View) { v.Replicas++ }),
	)

	DescribeTable("is known to be to a max by the client alone", func(clamped bool) {
		v := reduced()
		v.Lowered, v.Clamped = Lowered{}, clamped
		v.Applied.Counted, v.Applied.Absorbed = 1, 1
		Expect(Decide(v).Lowered.Lasting).To(Equal(clamped))
	},
		Entry("that knows it", true),
		Entry("that does not", false),
	)

	DescribeTable("is followed by a wait that doubles, up to an hour", func(times int, want time.Duration) {
		v := reduced()
		v.Lowered = Lowered{Times: times, Until: start}
		v.Applied.Counted, v.Applied.Absorbed = 1, 1
		Expect(Decide(v).Lowered).To(And(HaveField("Times", times+1), HaveField("Until", start.Add(want))))
	},
		Entry("the first", 0, time.Minute),
		Entry("the second", 1, 2*time.Minute),
		Entry("the sixth", 5, 32*time.Minute),
		Entry("the seventh", 6, time.Hour),
		Entry("the hundredth", 99, time.Hour),
	)

	DescribeTable("that comes while settings cannot be read is over once these differ from", func(over bool, was Lowered, wish, most int) {
		v := reduced()
		v.Lowered, v.Applied.Counted, v.Applied.Absorbed = was, 1, 1
		v.SettingsUnknown, v.Wish, v.Max = true, 2, 7
		v.Lowered = Decide(v).Lowered
		Expect(v.Lowered.Replicas).To(Equal(6))
		v.Applied = Applied{Excess: 1, Max: 7, Counted: 1}
		v.Lowered = Decide(v).Lowered
		for range 2 {
			v.SettingsUnknown, v.Wish, v.Max = false, wish, most
			p := Decide(v)
			Expect(p.Lowered.Until.Equal(v.Now)).To(Equal(over))
			v.Lowered = p.Lowered
		}
		v.Wish = 4
		Expect(Decide(v).Lowered.Until).To(Equal(v.Now))
	},
		Entry("the first that can be read", false, Lowered{}, 3, 9),
		Entry("those of the reduction before, and these are the same", false, reduced().Lowered, 3, 9),
		Entry("those of the reduction before, another excess", true, reduced().Lowered, 2, 9),
		Entry("those of the reduction before, another max", true, reduced().Lowered, 3, 8),
	)

	It("leaves room for machines that wait, before it includes what is in reserve (9)", func() {
		v := reduced()
		v.Lowered, v.Applied.Counted, v.Max = Lowered{}, 0, 7
		Expect(Decide(v).Applied.Counted).To(Equal(2))
		v.Waiting = 1
		Expect(Decide(v).Applied.Counted).To(Equal(1))
	})

	It("is recorded with what was asked for then", func() {
		v := reduced()
		v.Lowered = Lowered{}
		v.Applied.Counted, v.Applied.Absorbed = 1, 1
		Expect(Decide(v).Lowered).To(Equal(Lowered{Times: 1, Until: start.Add(time.Minute), Replicas: 6, Wish: 3, Max: 9}))
	})

	DescribeTable("is forgotten an hour after it may be tried to grow again", func(forgotten bool, change func(*View)) {
		v := reduced()
		change(&v)
		Expect(Decide(v).Lowered == Lowered{}).To(Equal(forgotten))
	},
		Entry("then", true, func(v *View) { v.Lowered.Until = start.Add(-time.Hour) }),
		Entry("not before", false, func(v *View) { v.Lowered.Until = start.Add(1 - time.Hour) }),
		Entry("not if it lasts", false, func(v *View) { v.Lowered.Until, v.Lowered.Lasting = start.Add(-time.Hour), true }),
	)

	DescribeTable("is looked at again", func(want time.Duration, change func(*View)) {
		v := reduced()
		change(&v)
		Expect(Decide(v).Again).To(Equal(want))
	},
		Entry("when the reserve may be tried to grow again", time.Minute, func(*View) {}),
		Entry("when it is forgotten, so that it does not limit a later rollout", 50*time.Minute, func(v *View) { v.Lowered.Until = start.Add(-10 * time.Minute) }),
		Entry("no more if it lasts", time.Duration(0), func(v *View) { v.Lowered.Until, v.Lowered.Lasting = start.Add(-10*time.Minute), true }),
	)

	It("keeps the time at which it ended, even if another excess is requested later", func() {
		v := reduced()
		v.Lowered.Until, v.Wish = start.Add(-time.Minute), 4
		Expect(Decide(v).Lowered.Until).To(Equal(start.Add(-time.Minute)))
	})

	DescribeTable("holds in a rollout, in which the reserve stays as it is", func(until time.Duration) {
		v := reduced()
		v.Rollout, v.Applied = true, Applied{Excess: 2, Max: 9, Counted: 1}
		v.Lowered.Replicas, v.Lowered.Until = 6, start.Add(until)
		p := Decide(v)
		Expect([]int{p.Replicas, p.Applied.Counted}).To(Equal([]int{5, 1}))
	},
		Entry("at first", time.Minute),
		Entry("when it may be tried to grow again", time.Duration(0)),
		Entry("an hour later", -time.Hour),
	)

	DescribeTable("limits the reserve", func(limits bool, change func(*View)) {
		v := reduced()
		change(&v)
		Expect(Decide(v).Applied.Excess == 2).To(Equal(limits))
	},
		Entry("until it may be tried to grow again", true, func(*View) {}),
		Entry("not from then on", false, func(v *View) { v.Lowered.Until = start }),
		Entry("but in a rollout", true, func(v *View) { v.Lowered.Until, v.Rollout = start, true }),
		Entry("but in a rollout, once", true, func(v *View) { v.Lowered.Times, v.Lowered.Until, v.Rollout = 1, start, true }),
		Entry("not if there was none", false, func(v *View) { v.Lowered.Times = 0 }),
	)

	DescribeTable("has machines of the reserve serve below min", func(accounting pool.Accounting, min int, want Applied, replicas int) {
		v := reduced()
		v.Lowered, v.Accounting, v.Min, v.Wish, v.Max = Lowered{}, accounting, min, 2, 7
		p := Decide(v)
		Expect(p.Applied).To(Equal(want))
		Expect(p.Replicas).To(Equal(replicas))
	},
		Entry("not above it", pool.Inclusive, 7, Applied{Excess: 2, Max: 7, Counted: 2}, 5),
		Entry("not with those that it needs", pool.Additive, 5, Applied{Excess: 2, Max: 7}, 5),
		Entry("as many as are missing", pool.Additive, 6, Applied{Excess: 1, Max: 7}, 6),
	)
})

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

// sum is spec.replicas, but for growth that waits.
func sum(r int, a Applied) int { return r + a.Counted }

func counting(name string, holds func(t *rapid.T, v View, p Plan)) {
	It(name, func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawCounted(t)
			holds(t, v, Decide(v))
		})
	})
}

var _ = Describe("laws of accounting", func() {
	It("9: where the reserve is counted changes nothing else, so that all laws hold in both accountings", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawCounted(t)
			v.Applied.Absorbed, v.Min, v.Lowered = 0, 0, Lowered{}
			v.Applied.Counted = max(0, min(v.Applied.Counted, min(v.Max, v.Applied.Max)-v.Replicas))
			v.NamedSpares = 0 // law 3 is about replicas
			additive := v
			additive.Accounting, additive.Applied.Counted = pool.Additive, 0
			p, want := Decide(v), Decide(additive)
			want.Applied.Counted = p.Applied.Counted
			if !reflect.DeepEqual(p, want) {
				t.Fatalf("%+v\nadditive %+v", p, want)
			}
		})
	})

	counting("9: replicas include registered machines of the excess, and grow by nothing else, nor above max", func(t *rapid.T, v View, p Plan) {
		registered := 0
		for _, m := range carriedOut(v, p).Machines {
			if m.Reserve && m.Registered && !m.Leaving() {
				registered++
			}
		}
		was, is := sum(v.Replicas, v.Applied), sum(p.Replicas, p.Applied)
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

	counting("11: a reduction that the reserve absorbed lowers R only to what serves, and the rest is remembered and not made good", func(t *rapid.T, v View, p Plan) {
		serving, _, _ := count(v)
		settled := max(v.Replicas-v.Applied.Absorbed, min(v.Replicas, serving))
		if p.Replicas < settled {
			t.Fatalf("R %d -> %d with %d serving: %+v", v.Replicas, p.Replicas, serving, p)
		}
		lost := v.Applied.Absorbed - (v.Replicas - settled)
		if lost > 0 && (!p.Lowered.Until.After(v.Now) || p.Lowered.Times == 0 || sum(p.Replicas, p.Applied) > sum(v.Replicas, v.Applied)) {
			t.Fatalf("%d lost: %+v", lost, p)
		}
		if (v.Lowered.Lasting || v.Now.Before(v.Lowered.Until)) && sum(v.Replicas, v.Applied) <= v.Lowered.Replicas && v.Applied.Counted+v.Applied.Absorbed > 0 && sum(p.Replicas, p.Applied) > sum(v.Replicas, v.Applied) {
			t.Fatalf("grows: %+v", p)
		}
	})

	counting("11: a machine that was replaced, as in a rollout, lowers R by no reduction", func(t *rapid.T, v View, p Plan) {
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

	counting("9: replicas that include reserve machines do not fall below min", func(t *rapid.T, v View, p Plan) {
		if was, is := sum(v.Replicas, v.Applied), sum(p.Replicas, p.Applied); is < min(was, v.Min) {
			t.Fatalf("replicas %d -> %d: %+v", was, is, p)
		}
	})

	counting("at rest after being carried out, in either accounting", func(t *rapid.T, v View, p Plan) {
		for range 12 {
			if p.AtRest(v) {
				return
			}
			v = carriedOut(v, p)
			p = Decide(v)
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
		changed := Decide(other)
		if changed.Total != p.Total || !slices.Equal(changed.Going, p.Going) || changed.Cut != p.Cut {
			t.Fatalf("%+v\n%+v", p, changed)
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
		odd = odd || m.Protected || m.First || m.Reserve && m.Busy()
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
