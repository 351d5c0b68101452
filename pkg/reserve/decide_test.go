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
	Entry("after a failure, all once it is ready", all(wish(5), retries(1, 0, 3)), "8; 2 come, 0 serve"),
	Entry("none in reserve that cannot be read how many are wanted: as many as are", all(func(w *world) { w.view.SettingsUnknown = true }, retries(1, time.Minute, 0)), "6"),
	Entry("as many serve as min requires, where replicas include the reserve", all(counted(3), replicas(0), wish(0), minimum(2)), "2; f goes (Shrunk); e goes (Shrunk); d goes (Shrunk); 1 cut"),
	Entry("as many serve as min requires: those in reserve do", all(counted(3), wish(0), minimum(5)), "5; d Released; e Released; f goes (Shrunk)"),
	Entry("one in reserve less, where replicas include it and a client has reduced them", all(counted(3), absorbed(1)), "5; f goes (Shrunk)"),
	Entry("none where the cluster hibernates", all(hibernating, replicas(0), wish(0)), "0; f goes (Shrunk); e goes (Shrunk); d goes (Shrunk); 3 cut"),
	Entry("none where the cluster hibernates, whatever runs there, or could", all(hibernating, replicas(0), wish(0), busy("d"), open("e"), unknown), "0; f goes (Shrunk); e goes (Shrunk); d goes (Shrunk); 3 cut"),
	Entry("none more than there are asked for where the excess is new: what is too many by then goes", all(unapplied, sized(5)), "6"),
	Entry("priorities of an earlier version go", all(priority("a", 2), priority("d", 5), priority("e", 4), uncreated("f"), priority("f", 5), stays("b"), priority("b", 5)), "6; d Released; a priority 3; d priority 3"),
)

// directly runs a law over drawn views that a controller has which creates and deletes machines itself.
func directly(name string, holds func(t *rapid.T, v View, p Plan)) {
	It(name, func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawDirect(t)
			holds(t, v, Decide(v))
		})
	})
}

// drawDirect draws a view of a controller that has no store but its own.
func drawDirect(t *rapid.T) View {
	v := drawView(t)
	v.Behind, v.NamedGone, v.FreezeMargin = false, 0, 0
	v.SetReplicas = max(v.SetReplicas, v.Replicas)
	v.NodesUnknown = rapid.IntRange(0, 5).Draw(t, "unseen") == 0
	for i := range v.Machines {
		m := &v.Machines[i]
		m.Doubtful, m.SeenPriority = false, m.Priority
		if m.Failing {
			m.Failing = m.Phase == mcm.MachineCrashLoopBackOff
		}
	}
	return v
}

// isLate says that a machine in reserve cannot be created, or has not become ready in time.
func isLate(v View, m Machine) bool {
	boots := m.Phase == "" || m.Phase == mcm.MachinePending || m.Phase == mcm.MachineCrashLoopBackOff || m.Phase == mcm.MachineTerminating
	return m.Reserve && boots && (m.Failing || v.Now.Sub(m.Created) >= v.BootPatience) && !(v.NodesUnknown && m.HasProviderID)
}

var _ = Describe("laws of a controller that creates and deletes machines itself", func() {
	It("order-free, and the view is left alone", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawDirect(t)
			before := slices.Clone(v.Machines)
			p := Decide(v)
			if !slices.Equal(before, v.Machines) {
				t.Fatalf("the view was changed")
			}
			v.Machines = rapid.Permutation(v.Machines).Draw(t, "shuffled")
			if again := Decide(v); !reflect.DeepEqual(again, p) {
				t.Fatalf("%+v\n%+v", p, again)
			}
		})
	})

	directly("a machine that goes lives, goes once, and is not protected", func(t *rapid.T, v View, p Plan) {
		seen := map[string]bool{}
		for _, going := range p.Going {
			m := find(v, going.Name)
			if seen[m.Name] || m.Leaving() || m.Preserved || m.Priority == 4 {
				t.Fatalf("%+v goes: %+v", m, p)
			}
			seen[m.Name] = true
		}
	})

	directly("a reserve machine goes only if no pod runs there, and none can come", func(t *rapid.T, v View, p Plan) {
		after := carriedOut(v, p)
		for _, going := range p.Going {
			m := find(after, going.Name)
			closed := m.Reserve && !m.Open && find(v, going.Name).Reserve
			if going.Why != Surplus && (m.Busy() && !v.NodesUnknown || !closed && !isLate(v, m)) {
				t.Fatalf("%+v goes: %+v", m, p)
			}
		}
		for _, name := range p.Closed {
			if m := find(after, name); !m.Reserve || m.Open && !isLate(v, m) || !v.Rollout && (m.Preserved || m.Busy() && !v.NodesUnknown) {
				t.Fatalf("%+v may go: %+v", m, p)
			}
		}
	})

	directly("those that go are the first of those that may", func(t *rapid.T, v View, p Plan) {
		var going []string
		if v.Rollout { // there, those may go, too, that a smaller reserve has to wait for
			p.Closed = slices.DeleteFunc(p.Closed, func(name string) bool {
				m := find(v, name)
				return m.Busy() && !v.NodesUnknown || m.Preserved || m.Priority == 4
			})
		}
		for _, one := range p.Going {
			if one.Why != Surplus {
				going = append(going, one.Name)
			}
		}
		if len(going) > len(p.Closed) || !slices.Equal(going, p.Closed[:len(going)]) {
			t.Fatalf("%v of %v", going, p.Closed)
		}
	})

	directly("the reserve loses no more than it has beyond X, or what cannot be created", func(t *rapid.T, v View, p Plan) {
		after := carriedOut(v, p)
		reserve, stuck, gone := 0, 0, 0
		for _, m := range after.Machines {
			if m.Reserve && !m.Leaving() {
				reserve++
				if isLate(v, m) {
					stuck++
				}
			}
		}
		for _, going := range p.Going {
			if going.Why != Surplus {
				gone++
			}
		}
		x := max(0, min(v.Wish, v.Max-p.Replicas))
		if gone > max(reserve-x, stuck) {
			t.Fatalf("%d of %d go, %d desired, %d stuck: %+v", gone, reserve, x, stuck, p)
		}
	})

	directly("one that serves is drained only after patience, with pods that may be evicted, and while nothing leaves", func(t *rapid.T, v View, p Plan) {
		serving, _, leaving := count(carriedOut(v, p))
		drained := 0
		for _, going := range p.Going {
			if going.Why != Surplus {
				continue
			}
			drained++
			m := find(carriedOut(v, p), going.Name)
			if m.Reserve || m.Pinned != "" || v.SurplusSince.IsZero() || v.Now.Sub(v.SurplusSince) < v.Patience || leaving > 0 || v.Rollout || v.NodesUnknown || v.Unhealthy {
				t.Fatalf("%+v is drained: %+v", m, p)
			}
		}
		ready, stay := 0, 0
		for _, m := range carriedOut(v, p).Machines {
			if !m.Leaving() && !m.Reserve && m.Ready() {
				ready++
				if !slices.Contains(p.Going, Victim{m.Name, Surplus}) {
					stay++
				}
			}
		}
		if stay < min(ready, p.Replicas) {
			t.Fatalf("%d of %d stay that are ready: %+v", stay, ready, p)
		}
		if drained > max(0, serving-p.Replicas-p.Cut) {
			t.Fatalf("%d drained of %d: %+v", drained, serving, p)
		}
		for _, b := range v.Budgets {
			evicted := 0
			for _, going := range p.Going {
				if going.Why == Surplus {
					evicted += b.Pods[going.Name]
				}
			}
			if evicted > max(0, b.Allowed) {
				t.Fatalf("%+v loses %d: %+v", b, evicted, p)
			}
		}
	})

	directly("what is cut serves, or would, and is beyond R and beyond what there was to be", func(t *rapid.T, v View, p Plan) {
		serving, sick := 0, 0
		for _, m := range carriedOut(v, p).Machines {
			switch {
			case m.Leaving() || m.Reserve:
			case m.Unhealthy():
				sick++
			default:
				serving++
			}
		}
		_, live, _ := count(v)
		if p.Cut > max(0, min(serving+sick-p.Replicas, live-v.Replicas-v.Applied.Excess)) || p.Cut < 0 || p.Cut > 0 && v.Rollout {
			t.Fatalf("%d of %d: %+v", p.Cut, serving, p)
		}
	})

	directly("8: all machines are within max, unless workload needs more, or they are there already", func(t *rapid.T, v View, p Plan) {
		if v.Rollout {
			return
		}
		_, live, leaving := count(v)
		n, serve := creations(v, p)
		if p.Total > max(v.Max, p.Replicas+p.Summary.Reserve, live) || p.Total < p.Replicas || serve < 0 || n < 0 {
			t.Fatalf("%d in all, %d live: %+v", p.Total, live, p)
		}
		ofReserve := 0
		for _, m := range carriedOut(v, p).Machines {
			if m.Leaving() && m.Reserve {
				ofReserve++
			}
		}
		forWorkload := live+n <= p.Replicas && live+n+ofReserve <= max(v.Max, p.Replicas)
		if n > 0 && live+leaving+n > v.Max && !forWorkload {
			t.Fatalf("%d come beside %d and %d that leave: %+v", n, live, leaving, p)
		}
	})

	directly("a machine comes to serve only if fewer than R could, those in reserve included that are not dedicated", func(t *rapid.T, v View, p Plan) {
		after := carriedOut(v, p)
		kept, able := kept(after), 0
		for _, m := range after.Machines {
			if !m.Leaving() && !m.Unhealthy() && !(m.Reserve && kept[m.Name]) {
				able++
			}
		}
		for _, going := range p.Going {
			if m := find(after, going.Name); going.Why != Surplus && !m.Unhealthy() && !kept[m.Name] {
				able--
			}
		}
		if len(v.Dedicated) == 0 && p.Serve != max(0, p.Replicas-able) {
			t.Fatalf("%d serve where %d could: %+v", p.Serve, able, p)
		}
	})

	directly("2: a dedicated machine is not released before it is claimed", func(t *rapid.T, v View, p Plan) {
		kept := kept(v)
		for _, move := range p.Moves {
			if kept[move.Name] && !move.Reserve {
				t.Fatalf("%+v: %+v", move, p)
			}
		}
	})

	directly("2: fewer than R serve only if nothing can be released", func(t *rapid.T, v View, p Plan) {
		after := carriedOut(v, p)
		serving, _, _ := count(after)
		kept := kept(v)
		for _, m := range after.Machines {
			if serving < p.Replicas && !v.NodesUnknown && m.Reserve && m.HasProviderID && !m.Leaving() && !m.Unhealthy() && !kept[m.Name] {
				t.Fatalf("%d of %d serve, %+v stays in reserve: %+v", serving, p.Replicas, m, p)
			}
		}
	})

	directly("4: only empty machines enter the reserve, only those beyond R, and only as many as it lacks", func(t *rapid.T, v View, p Plan) {
		after := carriedOut(v, p)
		serving, _, _ := count(after)
		reserve, entered := 0, 0
		for _, m := range after.Machines {
			if m.Reserve && !m.Leaving() {
				reserve++
			}
		}
		for _, move := range p.Moves {
			if !move.Reserve {
				continue
			}
			entered++
			if m := find(v, move.Name); m.Busy() || serving < p.Replicas || v.NodesUnknown {
				t.Fatalf("%+v: %+v", move, p)
			}
		}
		if x := max(0, min(v.Wish, v.Max-p.Replicas)); entered > 0 && reserve > max(x, reserve-entered, protectedIn(after)) {
			t.Fatalf("%d of %d entered: %+v", entered, reserve, p)
		}
	})

	directly("15: while Nodes and pods are not seen, nothing moves, and nothing goes but what was never created", func(t *rapid.T, v View, _ Plan) {
		v.NodesUnknown = true
		p := Decide(v)
		if len(p.Moves)+len(p.Owners) > 0 || !p.SurplusSince.IsZero() {
			t.Fatalf("%+v", p)
		}
		for _, going := range p.Going {
			if m := find(v, going.Name); m.HasProviderID || !isLate(v, m) {
				t.Fatalf("%+v goes: %+v", m, p)
			}
		}
		other := v
		other.Machines = slices.Clone(v.Machines)
		for i := range other.Machines {
			other.Machines[i].Pods = rapid.IntRange(0, 3).Draw(t, "other pods")
			other.Machines[i].Pinned = drawPin(t)
		}
		if again := Decide(other); !reflect.DeepEqual(again, p) {
			t.Fatalf("with other pods %+v instead of %+v", again, p)
		}
	})

	directly("10: after a failure, the reserve does not grow until it is time, and then by one", func(t *rapid.T, v View, p Plan) {
		reserve, stuck := 0, false
		after := carriedOut(v, p)
		for _, m := range after.Machines {
			if m.Reserve && !m.Leaving() {
				reserve++
				stuck = stuck || isLate(v, m) && find(v, m.Name).Reserve
			}
		}
		n, serve := creations(v, p)
		switch {
		case v.Retry.Failures == 0 && !stuck:
			if p.Retry.Failures > 0 {
				t.Fatalf("nothing has failed: %+v", p)
			}
		case stuck && !v.Now.Before(v.Retry.Until):
			if p.Retry.Failures != v.Retry.Failures+1 || !p.Retry.Until.After(v.Now) || p.Retry.Until.After(v.Now.Add(time.Hour)) || p.Retry.Try != 0 {
				t.Fatalf("it is not noted: %+v", p)
			}
		case stuck && p.Retry != v.Retry:
			t.Fatalf("it is noted twice: %+v", p)
		}
		if gone := len(p.Going); p.Retry.Failures > 0 && p.Retry.Until.After(v.Now) && p.Total > max(p.Replicas+reserve, 0) && n > serve+max(0, p.Replicas) && gone == 0 {
			t.Fatalf("%d come, though it is too early: %+v", n-serve, p)
		}
	})

	directly("what a plan keeps and what it writes is at rest when nothing else happens", func(t *rapid.T, v View, p Plan) {
		moved := map[string]bool{}
		for range 8 {
			if p.AtRest(v) {
				return
			}
			for _, move := range p.Moves {
				if moved[move.Name] {
					t.Fatalf("%s moves again: %+v", move.Name, p)
				}
				moved[move.Name] = true
			}
			v = carriedOut(v, p)
			v.SetReplicas = p.Total
			p = Decide(v)
		}
		t.Fatalf("no rest: %+v", p)
	})

	It("comes to rest with S = R and V = X, and nothing goes then, or says why not", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawDirect(t)
			v.Rollout, v.NodesUnknown, v.Unhealthy = false, false, false
			w := &world{view: v, born: len(v.Machines)}
			p, rested := w.settleDirectly()
			if !rested || w.broken != nil {
				t.Fatalf("rested %t, broken %v: %v\n%+v\n%+v", rested, w.broken, w.log, p, w.view)
			}
			if n, _ := creations(w.view, p); n > 0 || len(p.Going) > 0 {
				t.Fatalf("%d come, %v go: %v\n%+v", n, p.Going, w.log, w.view)
			}
			s := p.Summary
			x := max(0, min(v.Wish, v.Max-p.Replicas))
			if s.Serving == p.Replicas && s.Reserve == x && s.Ready == x {
				return
			}
			if s.Reason == Complete || s.Reason == NotWanted || s.Reason == AtMax || !oddDirectly(w.view) {
				t.Fatalf("%s: %+v\n%v\n%+v\nfrom %+v", s.Reason, s, w.log, w.view, v)
			}
		})
	})
})

// protectedIn returns how many machines in reserve must stay.
func protectedIn(v View) (n int) {
	for _, m := range v.Machines {
		if m.Reserve && !m.Leaving() && (m.Preserved || m.Priority == 4) {
			n++
		}
	}
	return n
}

// oddDirectly says whether something keeps a reserve from becoming what it is to be: a machine that is protected, or
// that others want to go first, or pods that stay where they are.
func oddDirectly(v View) bool {
	return slices.ContainsFunc(v.Machines, func(m Machine) bool {
		return m.Preserved || m.Priority < PriorityVictim || m.Priority == 4 || m.Pinned != "" || m.Reserve && m.Busy() || len(v.Budgets) > 0 && m.Busy() || pool.UpdatedInPlace(m.Phase)
	})
}
