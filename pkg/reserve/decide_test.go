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

// creations returns how many machines a plan lets come now, and how many of them serve.
func creations(v View, p Plan) (n, serve int) {
	present := 0
	for _, m := range v.Machines {
		if m.Phase != mcm.MachineTerminating {
			present++
		}
	}
	n = max(0, min(p.Total-present, p.Room))
	return n, min(n, p.Serve)
}

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
	for _, q := range p.Priorities {
		words = append(words, fmt.Sprintf("%s priority %d", q.Name, q.Priority))
	}
	return strings.Join(words, "; ")
}

// manageDirectly does what a controller that creates and deletes machines itself does about a plan. It says whether
// anything happened.
func (w *world) manageDirectly(p Plan) bool {
	w.view.SetReplicas = p.Total
	if n, serve := creations(w.view, p); n > 0 {
		for i := range n {
			m := w.add(Machine{Reserve: i >= serve, Set: current, Priority: PriorityServing, SeenPriority: PriorityServing})
			w.note("%s born, serves %t", m.Name, !m.Reserve)
		}
		return true
	}
	staying := w.present(func(m Machine) bool { return !m.Leaving() })
	surplus, moved := len(staying)-p.Total, false
	remove := func(m *Machine) {
		w.remove(m)
		moved = true
	}
	for _, going := range p.Going {
		surplus--
		remove(w.machine(going.Name))
	}
	cut := p.Cut
	for _, m := range staying {
		if cut > 0 && surplus > 0 && !m.Reserve && !m.Leaving() {
			cut--
			surplus--
			remove(m)
		}
	}
	for _, m := range w.present(func(Machine) bool { return true }) {
		if m.Named || m.Phase == mcm.MachineFailed && !m.Preserved && !m.Leaving() {
			remove(m)
		}
	}
	return moved
}

// settleDirectly decides until nothing happens any more, with time passing whenever the plan waits for it, and returns
// the last plan.
func (w *world) settleDirectly() (Plan, bool) {
	for range 200 {
		w.view.Now = w.view.Now.Add(time.Second)
		p := Decide(w.view)
		rests := p.AtRest(w.view)
		w.carryOut(p)
		moved := w.manageDirectly(p)
		moved = w.bury() || moved
		if w.grow() || moved || !rests {
			continue
		}
		if p = Decide(w.view); p.Again == 0 || w.outage {
			return p, true
		}
		w.view.Now = w.view.Now.Add(p.Again)
	}
	return Decide(w.view), false
}

func priority(name string, n int) func(*world) {
	return func(w *world) { w.machine(name).Priority, w.machine(name).SeenPriority = n, n }
}

func preserved(names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.machine(name).Preserved = true
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
		w.setReplicas(w.view.Replicas)
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

// one decision for a settled world of a, b and c that serve with a pod each, and d, e and f in reserve.
var _ = DescribeTable("A controller of its own has so many machines",
	func(do func(*world), want string) {
		w := settled(3, 3, Unbounded)
		for i := range w.view.Machines { // no priority is needed
			w.view.Machines[i].Priority, w.view.Machines[i].SeenPriority = PriorityServing, PriorityServing
		}
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
	Entry("not less by one that is preserved", all(preserved("e", "f"), wish(0)), "5; d goes (Shrunk)"),
	Entry("not less by one with a priority of others", all(priority("e", 10), priority("f", 4), wish(0)), "5; d goes (Shrunk)"),
	Entry("also less by one that others want to go first", all(priority("d", 1), wish(2)), "5; d goes (Shrunk)"),
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
	Entry("where more serve than R, none enters that may be wanted gone", all(served("f"), priority("f", 1)), "6"),
	Entry("where more serve than R, and all are busy, nothing goes at first", all(served("f"), busy("f")), "6"),
	Entry("where they have for too long, one is drained", all(served("f"), busy("f"), impatient), "6; f goes (Surplus)"),
	Entry("where they have for too long, the emptiest is drained", all(served("f"), busy("f"), impatient, func(w *world) { w.machine("f").Pods = 2 }), "6; c goes (Surplus)"),
	Entry("where they have for too long, and one leaves, none is drained", all(served("f"), busy("f"), impatient, terminating("d")), "5"),
	Entry("where they have for too long, none is drained with a pod that must stay", all(served("f"), busy("f"), impatient, pinned("x", "a", "b", "c", "f")), "6"),
	Entry("where they have for too long, the one is drained that may be", all(served("f"), busy("f"), impatient, pinned("x", "a", "c", "f")), "6; b goes (Surplus)"),
	Entry("where they have for too long, and many Nodes are not ready, none is drained", all(served("f"), busy("f"), impatient, ailing), "6"),
	Entry("where they have for too long, and nothing of them is seen, none is drained", all(served("f"), busy("f"), impatient, unknown), "6"),
	Entry("where they have for too long, and machines are replaced, none is drained", all(served("f"), busy("f"), impatient, replacing), "6"),
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
	Entry("after a failure, all once it is ready", all(wish(5), retries(1, 0, 3)), "8; 2 come, 0 serve"),
	Entry("none in reserve that cannot be read how many are wanted: as many as are", all(func(w *world) { w.view.SettingsUnknown = true }, retries(1, time.Minute, 0)), "6"),
	Entry("as many serve as min requires, where replicas include the reserve", all(counted(3), replicas(0), wish(0), minimum(2)), "2; f goes (Shrunk); e goes (Shrunk); d goes (Shrunk); 1 cut"),
	Entry("as many serve as min requires: those in reserve do", all(counted(3), wish(0), minimum(5)), "5; d Released; e Released; f goes (Shrunk)"),
	Entry("as many in reserve as replicas include of it and min requires, though they cannot be created", all(counted(3), minimum(6), failing("e", "f")), "6"),
	Entry("one in reserve less, where replicas include it and a client has reduced them", all(counted(3), absorbed(1)), "5; f goes (Shrunk)"),
	Entry("none where the cluster hibernates", all(hibernating, replicas(0), wish(0)), "0; f goes (Shrunk); e goes (Shrunk); d goes (Shrunk); 3 cut"),
	Entry("none where the cluster hibernates, whatever is wanted", all(hibernating, replicas(0)), "0; f goes (Shrunk); e goes (Shrunk); d goes (Shrunk); 3 cut"),
	Entry("none where the cluster hibernates, whatever runs there, or could", all(hibernating, replicas(0), wish(0), busy("d"), open("e"), unknown), "0; f goes (Shrunk); e goes (Shrunk); d goes (Shrunk); 3 cut"),
	Entry("none more than there are asked for where the excess is new: what is too many by then goes", all(unapplied, sized(5)), "6"),
	Entry("priorities of an earlier version go", all(priority("a", 2), priority("d", 5), priority("e", 4), uncreated("f"), priority("f", 5), stays("b"), priority("b", 5)), "6; d Released; a priority 3; d priority 3"),
)

var _ = It("A controller of its own has more in reserve than desired where some must stay, and says why", func() {
	w := settled(3, 2, Unbounded)
	all(preserved("d"), wish(0))(w)
	p, rested := w.settleDirectly()
	Expect(rested).To(BeTrue())
	Expect(p.Summary).To(And(HaveField("Reserve", 1), HaveField("Reason", Protected)))
})
