// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"reflect"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
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
