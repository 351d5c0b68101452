// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

// step is something that happens to a world at rest, what follows from it in order, and what it comes to: machines
// that serve, and ready ones in reserve.
type step struct {
	what           string
	do             func(*world)
	follows        string
	serving, ready int
	reason         Reason
}

func story(w *world, steps ...step) {
	GinkgoHelper()
	for _, s := range steps {
		w.log = nil
		s.do(w)
		plan, rested := w.settle()
		Expect(w.broken).NotTo(HaveOccurred(), s.what)
		Expect(rested).To(BeTrue(), "%s: %v", s.what, w.log)
		Expect(strings.Join(w.log, ", ")).To(Equal(s.follows), s.what)
		Expect(plan.Summary).To(And(HaveField("Serving", s.serving), HaveField("Ready", s.ready), HaveField("Reason", s.reason)), s.what)
	}
}

func replicas(r int) func(*world) { return func(w *world) { w.view.Replicas = r } }

func wish(x int) func(*world) { return func(w *world) { w.view.Wish = x } }

// named lowers R by one and names a machine for it, as cluster-autoscaler does.
func named(name string) func(*world) {
	return func(w *world) {
		w.view.Replicas--
		m := w.machine(name)
		if m.Named = true; m.Reserve {
			w.view.NamedSpares++
		}
	}
}

func phase(name string, phase mcm.MachinePhase) func(*world) {
	return func(w *world) { w.machine(name).Phase = phase }
}

func cordoned(names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).Cordoned = true
		}
	}
}

func born(name string, at time.Time) func(*world) {
	return func(w *world) { w.machine(name).Created = at }
}

// busy machines run a pod each.
func busy(names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).Pods = 1
		}
	}
}

func empty(names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).Pods = 0
		}
	}
}

func pinned(why string, names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).Pinned = why
		}
	}
}

// all does several things at once.
func all(things ...func(*world)) func(*world) {
	return func(w *world) {
		for _, do := range things {
			do(w)
		}
	}
}

// passes lets that many passes go by.
func passes(n int) func(*world) {
	return func(w *world) {
		for range n {
			w.pass()
		}
	}
}

var _ = DescribeTable("Stories", story,
	Entry("from nothing: workload is served first, the newest are the reserve (1)", newWorld(3, 2, 0, Unbounded),
		step{"begin", func(*world) {}, "a born, serves true, b born, serves true, c born, serves true, d born, serves false, e born, serves false", 3, 2, Complete}),
	Entry("growth on a busy pool marks no machine of it (4, 8)", settled(3, 0, Unbounded),
		step{"X 0 -> 2", wish(2), "d born, serves false, e born, serves false", 3, 2, Complete}),
	Entry("scale-up: released before the new one exists, the oldest first (2)", settled(3, 2, Unbounded),
		step{"R 3 -> 4", replicas(4), "d Released, f born, serves false", 4, 2, Complete},
		step{"R 4 -> 7", replicas(7), "e Released, f Released, g born, serves true, h born, serves false, i born, serves false", 7, 2, Complete}),
	Entry("scale-up while the reserve boots: it serves as soon as it may be written to", settled(3, 0, Unbounded),
		step{"X 0 -> 1, R 3 -> 4 at once", all(wish(1), passes(1), replicas(4)), "d born, serves false, d Released, e born, serves false", 4, 1, Complete}),
	Entry("hot spare: a machine fails and is replaced (2)", settled(3, 2, Unbounded),
		step{"b is Unknown", phase("b", mcm.MachineUnknown), "d Released, b deleted, f born, serves false", 3, 2, Complete}),
	Entry("hot spare: a machine fails and comes back, and another one is empty (2, 4)", settled(3, 2, Unbounded),
		step{"b is Unknown", all(func(w *world) { w.healthy = true }, phase("b", mcm.MachineUnknown)), "d Released", 3, 1, Unhealthy},
		step{"b is back", all(func(w *world) { w.machine("d").Pods = 1 }, empty("a"), phase("b", mcm.MachineRunning)), "a Retired", 3, 2, Complete}),
	Entry("hot spare: it comes back, and patience ends: the emptiest goes (5)", settled(3, 2, Unbounded),
		step{"b is Unknown", all(func(w *world) { w.healthy = true }, phase("b", mcm.MachineUnknown)), "d Released", 3, 1, Unhealthy},
		step{"b is back", all(func(w *world) { w.machine("a").Pods, w.machine("b").Pods, w.machine("d").Pods = 2, 3, 1 }, phase("b", mcm.MachineRunning)),
			"d deleted, f born, serves false", 3, 2, Complete}),
	Entry("hot spare: it comes back, and patience ends: the emptiest goes whose pods may be evicted, or none until one may (5)", settled(3, 2, Unbounded),
		step{"b is Unknown", all(func(w *world) { w.healthy = true }, phase("b", mcm.MachineUnknown)), "d Released", 3, 1, Unhealthy},
		step{"b is back, and all are pinned", all(func(w *world) { w.machine("a").Pods, w.machine("b").Pods, w.machine("d").Pods = 2, 3, 1 },
			pinned(pin, "a", "b", "c", "d"), phase("b", mcm.MachineRunning)), "", 4, 1, SurplusServing},
		step{"b and a may be moved", pinned("", "b", "a"), "a deleted, f born, serves false", 3, 2, Complete}),
	Entry("hot spare: it comes back while too many Nodes are not ready, and another one is empty (4)", settled(3, 2, Unbounded),
		step{"b is Unknown", all(func(w *world) { w.healthy = true }, phase("b", mcm.MachineUnknown)), "d Released", 3, 1, Unhealthy},
		step{"b is back", all(func(w *world) { w.view.Unhealthy = true; w.machine("d").Pods = 1 }, empty("a"), phase("b", mcm.MachineRunning)), "a Retired", 3, 2, Complete}),
	Entry("named: exactly that one goes, also at the cap, which is refilled when it is gone (8)", settled(5, 2, 5),
		step{"R 5 -> 4, b", named("b"), "b deleted, f born, serves false", 4, 1, AtMax},
		step{"R 4 -> 3, a", named("a"), "a deleted, g born, serves false", 3, 2, Complete}),
	Entry("named: a reserve machine goes, and gives R back (3)", settled(3, 2, Unbounded),
		step{"R 3 -> 2, e", named("e"), "R 2 -> 3, e deleted, f born, serves false", 3, 2, Complete}),
	Entry("unnamed: a serving machine goes", settled(4, 2, Unbounded),
		step{"R 4 -> 3", replicas(3), "a deleted", 3, 2, Complete}),
	Entry("unnamed, while the reserve boots: one that serves goes", settled(3, 0, Unbounded),
		step{"X 0 -> 1, R 3 -> 2 a moment later", all(wish(1), passes(1), replicas(2), empty("c")), "d born, serves false, a deleted", 2, 1, Complete}),
	Entry("shrink: exactly the reserve goes (6)", settled(3, 2, Unbounded),
		step{"X 2 -> 1", wish(1), "e deleted", 3, 1, Complete},
		step{"X 1 -> 0", wish(0), "d deleted", 3, 0, NotWanted}),
	Entry("shrink and scale-down together take reserve and the machine named (3, 6)", settled(3, 2, Unbounded),
		step{"R 3 -> 2, a; X 2 -> 1", all(named("a"), wish(1)), "e deleted, a deleted", 2, 1, Complete}),
	Entry("the cap: excess gives way to replicas (8)", settled(3, 2, 5),
		step{"R 3 -> 4", replicas(4), "d Released", 4, 1, AtMax},
		step{"R 4 -> 5", replicas(5), "e Released", 5, 0, AtMax},
		step{"R 5 -> 7: above max is honoured", replicas(7), "f born, serves true, g born, serves true", 7, 0, AboveMax}),
	Entry("max lowered: a reserve machine goes (6)", settled(3, 2, 5),
		step{"max 5 -> 4", func(w *world) { w.view.Max = 4 }, "e deleted", 3, 1, AtMax}),
	Entry("R = 0: a warm reserve, or nothing", settled(0, 2, Unbounded),
		step{"R 0 -> 1", replicas(1), "a Released, c born, serves false", 1, 2, Complete},
		step{"R 1 -> 0", replicas(0), "a deleted", 0, 2, Complete},
		step{"X 2 -> 0", wish(0), "c deleted, b deleted", 0, 0, NotWanted}),
	Entry("a preserved reserve machine stays (6)", settled(2, 2, Unbounded),
		step{"X 2 -> 0", all(func(w *world) { w.machine("d").Protected = true }, wish(0)), "c deleted", 2, 1, Protected},
		step{"preserved no more", func(w *world) { w.machine("d").Protected = false }, "d deleted", 2, 0, NotWanted}),
	Entry("a preserved machine that failed holds a place, and the condition says so", settled(2, 1, Unbounded),
		step{"b fails", func(w *world) { w.machine("b").Protected = true; w.machine("b").Phase = mcm.MachineFailed }, "c Released", 2, 0, Unhealthy}),
	Entry("R falls without a name under a preserved reserve machine", settled(2, 1, Unbounded),
		step{"R 2 -> 1", all(func(w *world) { w.machine("c").Protected = true }, replicas(1)), "a deleted", 1, 1, Complete}),
)
