// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"fmt"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

// decision returns a plan in words.
func decision(v View) string {
	p := Decide(v)
	words := []string{fmt.Sprint(p.Total)}
	for _, move := range p.Moves {
		words = append(words, fmt.Sprintf("%s %s", move.Name, move.Why))
	}
	for _, going := range p.Going {
		words = append(words, fmt.Sprintf("%s goes (%s)", going.Name, going.Why))
	}
	if p.Cut > 0 {
		words = append(words, fmt.Sprintf("%d cut", p.Cut))
	}
	if n, serve := creations(v, p); n > 0 {
		words = append(words, fmt.Sprintf("%d come, %d serve", n, serve))
	}
	return strings.Join(words, "; ")
}

func protected(names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).Protected = true
		}
	}
}

func first(names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).First = true
		}
	}
}

func terminating(names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).Deleted, w.machine(name).Phase = true, mcm.MachineTerminating
		}
	}
}

func stays(name string) func(*world) {
	return func(w *world) { w.machine(name).Deleted = true }
}

func open(names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).Open = true
		}
	}
}

func served(names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).Reserve = false
		}
	}
}

func uncreated(names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			m := w.machine(name)
			m.Phase, m.HasProviderID, m.Registered = "", false, false
		}
	}
}

func failing(names ...string) func(*world) {
	return func(w *world) {
		uncreated(names...)(w)
		for _, name := range names {
			w.machine(name).Phase, w.machine(name).Failing = mcm.MachineCrashLoopBackOff, true
		}
	}
}

func bounded(most int) func(*world) {
	return func(w *world) {
		w.view.Max, w.view.Applied.Max = most, most
	}
}

func replacing(w *world)   { w.view.Rollout = true }
func unknown(w *world)     { w.view.NodesUnknown = true }
func ailing(w *world)      { w.view.Unhealthy = true }
func hibernating(w *world) { w.view.AllLeaving = true }
func impatient(w *world)   { w.view.SurplusSince = start.Add(-time.Hour) }
func sized(n int) func(*world) {
	return func(w *world) { w.view.SetReplicas = n }
}
func unapplied(w *world) { w.view.Applied.Excess = 0 }
func minimum(n int) func(*world) {
	return func(w *world) { w.view.Min = n }
}

// counted has spec.replicas include so many machines of the reserve.
func counted(n int) func(*world) {
	return func(w *world) { w.view.Applied.Counted, w.view.Accounting = n, pool.Inclusive }
}

func absorbed(n int) func(*world) {
	return func(w *world) {
		w.view.Applied.Counted, w.view.Applied.Absorbed, w.view.Accounting = w.view.Applied.Counted-n, n, pool.Inclusive
	}
}

func retries(failures int, until time.Duration, try int) func(*world) {
	return func(w *world) { w.view.Retry = Retry{Failures: failures, Until: start.Add(until), Try: try} }
}

// left has so many machines of the reserve be left after failures, a minute before the next try.
func left(failures, n int) func(*world) {
	return func(w *world) { w.view.Retry = Retry{Failures: failures, Until: start.Add(time.Minute), Left: n} }
}

// one decision for a settled world of a, b and c that serve with a pod each, and d, e and f in reserve.
var _ = DescribeTable("There are so many machines",
	func(do func(*world), want string) {
		w := settled(3, 3, Unbounded)
		do(w)
		Expect(decision(w.view)).To(Equal(want))
	},
	Entry("as there are, at rest", all(), "6"),
	Entry("more when R rises, those in reserve first", replicas(5), "8; d Released; e Released; 2 come, 0 serve"),
	Entry("more when R rises by more than there are in reserve", replicas(7), "10; d Released; e Released; f Released; 4 come, 1 serve"),
	Entry("more when X rises", wish(5), "8; 2 come, 0 serve"),
	Entry("less when X falls, the newest first", wish(1), "4; f goes (Shrunk); e goes (Shrunk)"),
	Entry("less when X falls: those that are not ready before", all(phase("d", mcm.MachinePending), wish(2)), "5; d goes (Shrunk)"),
	Entry("less when X falls: those whose Nodes are cordoned before", all(cordoned("d"), wish(2)), "5; d goes (Shrunk)"),
	Entry("as before while pods run on the reserve, of which fewer are wanted", all(busy("d", "e", "f"), wish(1)), "6"),
	Entry("less by the empty ones of it", all(busy("d", "f"), wish(1)), "5; e goes (Shrunk)"),
	Entry("as before while pods may be bound to the reserve, of which fewer are wanted", all(open("d", "e", "f"), wish(1)), "6"),
	Entry("less by the closed ones of it", all(open("f"), wish(2)), "5; e goes (Shrunk)"),
	Entry("less by an open one that cannot be created", all(failing("f"), open("f"), wish(2)), "5; f goes (Unmakeable)"),
	Entry("not less by those that must stay", all(protected("e", "f"), wish(0)), "5; d goes (Shrunk)"),
	Entry("also less by one that others want to go first", all(first("d"), wish(2)), "5; d goes (Shrunk)"),
	Entry("as R and X are when both change: released ones do not go", all(replicas(4), wish(2)), "6; d Released"),
	Entry("as R and X are when both change: the rest goes", all(replicas(4), wish(1)), "5; d Released; f goes (Shrunk)"),
	Entry("less when R falls, one that serves", replicas(2), "5; 1 cut"),
	Entry("less when R falls, one that serves and is empty: no other is put into reserve", all(empty("b"), replicas(2)), "5; 1 cut"),
	Entry("less when R and X fall, some of each", all(replicas(1), wish(1)), "2; f goes (Shrunk); e goes (Shrunk); 2 cut"),
	Entry("less by none that serves where R falls and X rises as much", all(wish(4), replicas(2)), "5; 1 cut"),
	Entry("as there are while one is gone that was named for a smaller R", all(terminating("a"), replicas(2)), "5"),
	Entry("less by one more where R falls by more than was named", all(terminating("a"), replicas(1)), "4; 1 cut"),
	Entry("more than are, for one that leaves the reserve", terminating("d"), "6; 1 come, 0 serve"),
	Entry("as many, for one that is deleted and does not go yet", stays("d"), "6"),
	Entry("more than are, for one that serves and leaves: the reserve takes its place", terminating("a"), "6; d Released; 1 come, 0 serve"),
	Entry("as many while one is Unknown: the reserve takes its place", phase("a", mcm.MachineUnknown), "6; d Released"),
	Entry("as many while one is Unknown, though X falls: it may recover", all(phase("a", mcm.MachineUnknown), wish(2)), "6; d Released"),
	Entry("as many while one in reserve is Unknown", phase("f", mcm.MachineUnknown), "6"),
	Entry("more, where none but Unknown ones are in reserve", all(phase("d", mcm.MachineUnknown), phase("e", mcm.MachineUnknown), phase("f", mcm.MachineUnknown), replicas(4)), "7; 1 come, 1 serve"),
	Entry("of which those serve at once that nothing in reserve can become", all(uncreated("d"), replicas(5)), "8; e Released; f Released; 2 come, 0 serve"),
	Entry("as before while those that would serve have yet to be created", all(uncreated("d", "e", "f"), replicas(4)), "7; 1 come, 0 serve"),
	Entry("of which none goes that will serve as soon as it is created", all(terminating("a"), uncreated("d", "e", "f"), wish(2)), "5"),
	Entry("less when R falls, an Unknown one that served", all(phase("a", mcm.MachineUnknown), replicas(2)), "5; 1 cut"),
	Entry("a swap: a ready one in place of one that boots", all(phase("c", mcm.MachinePending), empty("c")), "6; d Swapped; c Swapped"),
	Entry("half a swap: then R + 1 serve, and nothing goes", phase("c", mcm.MachinePending), "6; d Swapped"),
	Entry("where more serve than R, one that is empty enters the reserve", all(served("f"), empty("f")), "6; f Retired"),
	Entry("where more serve than R, none enters a reserve that is complete", all(served("f"), wish(2)), "6"),
	Entry("where more serve than R, none enters that may be wanted gone", all(served("f"), first("f")), "6"),
	Entry("where more serve than R, and all are busy, nothing goes at first", all(served("f"), busy("f")), "6"),
	Entry("where they have for too long, one is drained", all(served("f"), busy("f"), impatient), "6; f goes (Surplus)"),
	Entry("where they have for too long, the emptiest is drained", all(served("f"), busy("f"), impatient, func(w *world) { w.machine("f").Pods = 2 }), "6; c goes (Surplus)"),
	Entry("where they have for too long, and one leaves, none is drained", all(served("f"), busy("f"), impatient, terminating("d")), "5"),
	Entry("where they have for too long, none is drained with a pod that must stay", all(served("f"), busy("f"), impatient, pinned("x", "a", "b", "c", "f")), "6"),
	Entry("where they have for too long, the one is drained that may be", all(served("f"), busy("f"), impatient, pinned("x", "a", "c", "f")), "6; b goes (Surplus)"),
	Entry("where they have for too long, and many Nodes are not ready, none is drained", all(served("f"), busy("f"), impatient, ailing), "6"),
	Entry("where they have for too long, and nothing of them is seen, none is drained", all(served("f"), busy("f"), impatient, unknown), "6"),
	Entry("where they have for too long, and machines are replaced, none is drained", all(served("f"), busy("f"), impatient, replacing), "6"),
	Entry("where more serve than R, and machines are replaced, those of a smaller reserve go first", all(served("d"), replacing, wish(0)), "4; f goes (Shrunk); e goes (Shrunk)"),
	Entry("where more serve than R, and machines are replaced, those go once the reserve is as small", all(served("d", "e", "f"), replacing, wish(0)), "3"),
	Entry("where more serve than R, and machines are replaced, those stay while a smaller reserve cannot go", all(served("d"), open("e", "f"), replacing, wish(0)), "6"),
	Entry("where one is too many that is not ready, none is drained that is", all(served("f"), uncreated("f"), busy("f"), impatient), "6"),
	Entry("where one is too many that is not ready, but it runs a pod, it is drained", all(served("f"), phase("f", mcm.MachinePending), busy("f"), impatient), "6; f goes (Surplus)"),
	Entry("where two are too many, both are drained", all(served("e", "f"), busy("e", "f"), impatient), "6; f goes (Surplus); e goes (Surplus)"),
	Entry("where R falls besides, as many are cut, and one is drained", all(served("f"), busy("f"), impatient, replicas(2)), "5; f goes (Surplus); 1 cut"),
	Entry("within max: X is what it leaves", all(bounded(6), replicas(4)), "6; d Released"),
	Entry("within max: X falls for R", all(bounded(6), wish(3), replicas(5)), "6; d Released; e Released"),
	Entry("within max: none comes while one in reserve leaves", all(bounded(6), terminating("f")), "6"),
	Entry("within max: none comes while one leaves that served", all(bounded(6), terminating("a")), "6; d Released"),
	Entry("within max: one comes where there is room beside one that leaves", all(bounded(7), terminating("f")), "6; 1 come, 0 serve"),
	Entry("above max if R is: the reserve goes", all(bounded(6), replicas(7)), "7; d Released; e Released; f Released; 1 come, 1 serve"),
	Entry("above max if R is: workload does not wait for its own machines that leave", all(bounded(6), terminating("a", "b"), replicas(7)), "7; d Released; e Released; f Released; 3 come, 3 serve"),
	Entry("above max if R is: workload waits for those of the reserve that leave", all(bounded(6), terminating("d", "e"), replicas(7)), "7; f Released; 1 come, 1 serve"),
	Entry("below a max that falls: the reserve goes", all(bounded(4)), "4; f goes (Shrunk); e goes (Shrunk)"),
	Entry("in a rollout: as many in all, and more as it needs", all(replacing, replicas(4)), "7; d Released; 1 come, 0 serve"),
	Entry("in a rollout: X falls", all(replacing, wish(1)), "4; f goes (Shrunk); e goes (Shrunk)"),
	Entry("in a rollout: as many in reserve as cannot go, before there are new ones", all(replacing, busy("d", "e", "f"), wish(1), func(w *world) { w.view.CurrentSet = "" }), "6"),
	Entry("in a rollout: none new for those in reserve that go with the old ones", all(replacing, busy("d", "e", "f"), wish(1), func(w *world) { w.view.CurrentSet = "newest" }), "4"),
	Entry("in a rollout: none more for new ones in reserve that will serve when old ones go", all(replacing, busy("d", "e", "f"), wish(1), func(w *world) {
		for _, name := range []string{"a", "b"} {
			w.machine(name).Set = old
		}
	}), "4"),
	Entry("in a rollout: R falls, and the rollout decides which machines go", all(replacing, replicas(1)), "4"),
	Entry("in a rollout: max does not limit what comes", all(bounded(6), replacing, terminating("a", "f")), "6; d Released; 2 come, 0 serve"),
	Entry("with Nodes unseen: nothing moves, and more come", all(unknown, replicas(4)), "7; 1 come, 0 serve"),
	Entry("with Nodes unseen: more in reserve", all(unknown, wish(4)), "7; 1 come, 0 serve"),
	Entry("with Nodes unseen: nothing goes when X falls", all(unknown, wish(0)), "6"),
	Entry("with Nodes unseen: what was never created goes", all(unknown, failing("f"), wish(0)), "5; f goes (Unmakeable)"),
	Entry("with Nodes unseen: what was created and does not boot stays", all(unknown, phase("f", mcm.MachinePending), born("f", start.Add(-time.Hour)), wish(2)), "6"),
	Entry("with Nodes unseen: R falls as before", all(unknown, replicas(2)), "5; 1 cut"),
	Entry("with Nodes unseen: none enters the reserve", all(unknown, served("f"), empty("f")), "6"),
	Entry("dedicated ones stay, and others come", all(dedicated("shop", 3), replicas(4)), "7; 1 come, 1 serve"),
	Entry("dedicated ones stay, unless they are claimed", all(dedicated("shop", 3), claimed("e"), replicas(4)), "7; e Released; 1 come, 0 serve"),
	Entry("dedicated ones go with X", all(dedicated("shop", 3), wish(2)), "5; f goes (Shrunk)"),
	Entry("what cannot be created goes, and is not tried again at once", failing("f"), "5; f goes (Unmakeable)"),
	Entry("what cannot be created goes, also if another one is newer", failing("d"), "5; d goes (Unmakeable)"),
	Entry("what does not become ready in time goes", all(phase("f", mcm.MachinePending), born("f", start.Add(-20*time.Minute))), "5; f goes (Unmakeable)"),
	Entry("what boots stays until then", all(phase("f", mcm.MachinePending), born("f", start.Add(-19*time.Minute))), "6"),
	Entry("what is updated in place stays", all(phase("f", mcm.MachineInPlaceUpdating), born("f", start.Add(-time.Hour))), "6"),
	Entry("what cannot be created goes, while another one is waited for", all(failing("f"), retries(1, time.Minute, 0)), "5; f goes (Unmakeable)"),
	Entry("after a failure, none more until then", all(wish(5), retries(1, time.Minute, 0)), "6"),
	Entry("after a failure, one less if X falls meanwhile", all(wish(2), retries(1, time.Minute, 0), phase("e", mcm.MachinePending)), "5; e goes (Shrunk)"),
	Entry("after a failure, one more then", all(wish(5), phase("f", mcm.MachinePending), retries(1, 0, 0)), "7; 1 come, 0 serve"),
	Entry("after a failure, no second one before that has come", all(wish(5), phase("f", mcm.MachinePending), retries(1, 0, 3)), "6"),
	Entry("after a failure, none goes because fewer are tried", all(phase("f", mcm.MachinePending), retries(1, 0, 1)), "6"),
	Entry("after a failure, what was left of it, though one is released", all(replicas(4), left(1, 3)), "7; d Released; 1 come, 0 serve"),
	Entry("after a failure, no more than what was left of it", all(wish(5), replicas(4), left(1, 2)), "6; d Released"),
	Entry("after a failure, what was left of it in a rollout, whatever is old", all(replacing, served("d", "e", "f"), replicas(6), left(1, 2)), "8; 2 come, 0 serve"),
	Entry("after a failure, one more then than was left of it, though most of that serves", all(wish(5), served("d", "e"), replicas(5), phase("f", mcm.MachinePending), func(w *world) { w.view.Retry = Retry{Failures: 1, Until: start, Left: 3} }), "9; 3 come, 0 serve"),
	Entry("after a failure, all once it is ready", all(wish(5), retries(1, 0, 3)), "8; 2 come, 0 serve"),
	Entry("none in reserve that cannot be read how many are wanted: as many as are", all(func(w *world) { w.view.SettingsUnknown = true }, retries(1, time.Minute, 0)), "6"),
	Entry("as many serve as min requires, where replicas include the reserve", all(counted(3), replicas(0), wish(0), minimum(2)), "2; f goes (Shrunk); e goes (Shrunk); d goes (Shrunk); 1 cut"),
	Entry("as many serve as min requires: those in reserve do", all(counted(3), wish(0), minimum(5)), "5; d Released; e Released; f goes (Shrunk)"),
	Entry("as many in reserve as replicas include of it and min requires, though they cannot be created", all(counted(3), minimum(6), failing("e", "f")), "6"),
	Entry("as many in reserve as replicas include of it and min requires, though too many serve", all(terminating("b", "c", "d", "e", "f"), replicas(0), counted(2), minimum(2)), "2; 1 come, 0 serve"),
	Entry("one in reserve less, where replicas include it and a client has reduced them", all(counted(3), absorbed(1)), "5; f goes (Shrunk)"),
	Entry("none where the cluster hibernates", all(hibernating, replicas(0), wish(0)), "0; f goes (Shrunk); e goes (Shrunk); d goes (Shrunk); 3 cut"),
	Entry("none where the cluster hibernates, whatever is wanted", all(hibernating, replicas(0)), "0; f goes (Shrunk); e goes (Shrunk); d goes (Shrunk); 3 cut"),
	Entry("none where the cluster hibernates, whatever min requires", all(hibernating, replicas(0), counted(3), minimum(3)), "0; f goes (Shrunk); e goes (Shrunk); d goes (Shrunk); 3 cut"),
	Entry("none where the cluster hibernates, whatever min requires, also once the reserve is leaving", all(hibernating, replicas(0), counted(3), minimum(3), terminating("d", "e", "f")), "0; 3 cut"),
	Entry("none where the cluster hibernates, whatever runs there, or could", all(hibernating, replicas(0), wish(0), busy("d"), open("e"), unknown), "0; f goes (Shrunk); e goes (Shrunk); d goes (Shrunk); 3 cut"),
	Entry("as many as the MachineSets ask for where the excess is new, though more serve than R", all(unapplied, served("f"), busy("f"), sized(6)), "6"),
	Entry("none more than there are asked for where the excess is new: what is too many by then goes", all(unapplied, sized(5)), "6"),
)

// names has clients name reserve machines when they lowered R, of which it does not matter which ones they are.
func names(n int) func(*world) { return func(w *world) { w.view.NamedSpares = n } }

var _ = DescribeTable("R is restored for reserve machines that were named (3)",
	func(do func(*world), want int) {
		w := settled(3, 3, Unbounded)
		do(w)
		p := Decide(w.view)
		Expect(p.Replicas).To(Equal(want))
		Expect(p.Summary.Reason == RestoringReplicas).To(Equal(want > w.view.Replicas))
	},
	Entry("as it was, for one", all(replicas(2), names(1)), 3),
	Entry("as it was, for two", all(replicas(1), names(2)), 3),
	Entry("as far as they were named", all(replicas(1), names(1)), 2),
	Entry("no further than machines run", all(replicas(2), names(5)), 3),
	Entry("not where it has not been lowered", names(1), 3),
	Entry("not for those that boot instead: a swap may have put them there", all(replicas(2), names(1), phase("c", mcm.MachinePending)), 2),
	Entry("for those whose release has begun, too", all(replicas(3), names(1), open("d")), 4),
	Entry("not for those whose release has begun and that boot", all(replicas(3), names(1), open("d"), phase("d", mcm.MachinePending)), 3),
	Entry("and X gives way to it at max", all(replicas(2), names(1), bounded(5)), 3),
	Entry("not for those that the reserve has taken", all(counted(2), absorbed(1), names(1)), 3),
)

var _ = It("The reserve gives way at max to replicas that are restored (3)", func() {
	w := settled(3, 1, 4)
	all(wish(2), replicas(2), names(1))(w)
	w.machine("d").Named = true
	p := Decide(w.view)
	Expect(p.Replicas).To(Equal(3))
	Expect(p.Applied).To(Equal(Applied{Excess: 1, Max: 4}))
	Expect(p.Summary.Message).To(ContainSubstring("of 1 in reserve"))
})

var _ = DescribeTable("What is recorded",
	func(do func(*world), want Applied) {
		w := settled(3, 3, Unbounded)
		do(w)
		Expect(Decide(w.view).Applied).To(Equal(want))
	},
	Entry("is what there is", all(), Applied{Excess: 3, Max: Unbounded}),
	Entry("rises before machines are created", wish(5), Applied{Excess: 5, Max: Unbounded}),
	Entry("falls once machines are seen leaving, and not before", wish(1), Applied{Excess: 3, Max: Unbounded}),
	Entry("falls then", all(wish(1), terminating("e", "f")), Applied{Excess: 1, Max: Unbounded}),
	Entry("does not fall where R does", replicas(2), Applied{Excess: 3, Max: Unbounded}),
	Entry("includes a surplus that nobody asked to go", served("f"), Applied{Excess: 3, Max: Unbounded}),
	Entry("has the max", bounded(6), Applied{Excess: 3, Max: 6}),
	Entry("is nothing without a reserve, whatever max is", all(wish(0), terminating("d", "e", "f"), bounded(5), unapplied), Applied{Max: 5}),
)

// A machine has recovered, so that one more serves than R, and X falls. What prevents a deletion, such as a crash,
// happens after the record is written.
var _ = It("No machine that serves seems to be too many where one in reserve could not be deleted", func() {
	w := settled(3, 3, Unbounded)
	all(served("d"), busy("d"), wish(1))(w)
	for range 3 {
		p := Decide(w.view)
		Expect(p.Cut).To(BeZero())
		Expect(p.Going).To(Equal([]Deletion{{"f", Shrunk}}))
		w.carryOut(p)
	}
	w.settle()
	Expect(w.evicted).To(Equal(1), "one after a while, with patience")
	Expect(w.view.Applied.Excess).To(Equal(1))
})

var _ = It("No machine that serves seems to be too many where one was sick when X fell", func() {
	w := settled(3, 3, Unbounded)
	all(phase("a", mcm.MachineUnknown), busy("b", "c", "d"), wish(2))(w)
	w.carryOut(Decide(w.view))
	w.machine("a").Phase = mcm.MachineRunning
	p := Decide(w.view)
	Expect(p.Cut).To(BeZero())
	Expect(p.Applied.Excess).To(Equal(3))
})

// one plan for a settled world of three that serve and three in reserve, d, e and f, to which something happens.
var _ = DescribeTable("A plan moves",
	func(do func(*world), want ...Move) {
		w := settled(3, 3, Unbounded)
		do(w)
		Expect(Decide(w.view).Moves).To(HaveExactElements(want))
	},
	Entry("nothing at rest", func(*world) {}),
	Entry("the oldest first (2)", replicas(4), Move{"d", false, Released}),
	Entry("by name where ages are equal (2)", func(w *world) {
		for i := range w.view.Machines {
			w.view.Machines[i].Created = start
		}
		w.view.Machines[3], w.view.Machines[5] = w.view.Machines[5], w.view.Machines[3]
		w.view.Replicas = 5
	}, Move{"d", false, Released}, Move{"e", false, Released}),
	Entry("the current revision before the oldest (2)", func(w *world) {
		w.machine("d").Set, w.view.Rollout = old, true
		w.view.Replicas = 4
	}, Move{"e", false, Released}),
	Entry("those whose release has begun first (2)", all(func(w *world) { w.machine("f").Open, w.machine("e").Claimed = true, true }, replicas(5)),
		Move{"f", false, Released}, Move{"e", false, Released}),
	Entry("those whose Nodes are cordoned last (2)", all(cordoned("d"), replicas(5)), Move{"e", false, Released}, Move{"f", false, Released}),
	Entry("one whose Node is cordoned where no other is left (2)", all(cordoned("d", "e", "f"), replicas(4)), Move{"d", false, Released}),
	Entry("those on which pods run after those that are empty (2)", all(busy("d"), replicas(5)), Move{"e", false, Released}, Move{"f", false, Released}),
	Entry("ready ones before such as boot, though they are older (2)", all(phase("d", mcm.MachinePending), replicas(6)),
		Move{"e", false, Released}, Move{"f", false, Released}, Move{"d", false, Released}),
	Entry("never a sick one into service (2)", all(phase("d", mcm.MachineUnknown), phase("e", mcm.MachineFailed), replicas(6)),
		Move{"f", false, Released}),
	Entry("nothing that is not made yet (7)", func(w *world) {
		for _, name := range []string{"d", "e", "f"} {
			w.machine(name).Phase, w.machine(name).HasProviderID = "", false
		}
		w.view.Replicas = 4
	}),
	Entry("one that leaves out of all counts (2)", func(w *world) {
		w.machine("d").Deleted = true
		w.machine("a").Named = true
	}, Move{"e", false, Released}),
	Entry("a ready one in the place of one that boots (2)", func(w *world) {
		w.machine("c").Phase, w.machine("c").Pods = mcm.MachinePending, 0
	}, Move{"d", false, Swapped}, Move{"c", true, Swapped}),
	Entry("none whose Node is cordoned in the place of one that boots (2)", all(phase("c", mcm.MachinePending), empty("c"), cordoned("d", "e", "f"))),
	Entry("half a swap while the one that boots is not made (2, 7)", func(w *world) {
		w.machine("c").Phase, w.machine("c").Pods, w.machine("c").HasProviderID = "", 0, false
	}, Move{"d", false, Swapped}),
	Entry("half a swap where the one that boots holds a pod already (2, 4)", phase("c", mcm.MachinePending), Move{"d", false, Swapped}),
	Entry("no busy machine into reserve (4)", func(w *world) { w.machine("f").Reserve, w.machine("f").Pods = false, 1 }),
	Entry("an empty one into reserve, the newest (4)", func(w *world) {
		w.machine("f").Reserve = false
		empty("a", "b")(w)
		w.machine("f").Pods = 1
	}, Move{"b", true, Retired}),
	Entry("none into reserve that a user wants deleted (4)", all(empty("a", "f"), served("f"), first("f")), Move{"a", true, Retired}),
	Entry("last out of reserve what a user wants deleted (2)", all(first("d"), replicas(5)), Move{"e", false, Released}, Move{"f", false, Released}),
	Entry("none into reserve where a sick machine that serves goes (4)", all(served("f"), empty("f"), func(w *world) { w.add(running(false)).Phase = mcm.MachineUnknown }), Move{"f", true, Retired}),
	Entry("an empty one of an old revision into reserve, before the newest (4)", func(w *world) {
		w.machine("f").Reserve, w.machine("f").Pods, w.machine("a").Set = false, 1, old
		empty("a", "b")(w)
	}, Move{"a", true, Retired}),
	Entry("what cannot be made last (2)", func(w *world) {
		for _, name := range []string{"d", "e", "f"} {
			w.machine(name).Phase = mcm.MachinePending
		}
		w.machine("d").Failing = true
		w.view.Replicas = 4
	}, Move{"e", false, Released}),
)

var _ = DescribeTable("Numbers of replicas with a record",
	func(r, a, most, want int) {
		Expect(pool.VisibleReplicas(r, Applied{Excess: a, Max: most})).To(Equal(want))
	},
	Entry("without bounds", 3, 2, Unbounded, 5),
	Entry("R raised under the max recorded: nothing goes", 4, 2, 5, 5),
	Entry("R at max", 5, 2, 5, 5),
	Entry("R above max", 7, 2, 5, 7),
	Entry("nothing at all", 0, 0, 0, 0),
)
