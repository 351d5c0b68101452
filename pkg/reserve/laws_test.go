// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"reflect"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

// law runs a property over drawn views.
func law(name string, holds func(t *rapid.T, v View, p Plan)) {
	It(name, func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawView(t)
			holds(t, v, Decide(v))
		})
	})
}

var _ = Describe("laws", func() {
	law("2: which machines would be released does not depend on the pods of those that serve", func(t *rapid.T, v View, _ Plan) {
		n := rapid.IntRange(0, 12).Draw(t, "replicas")
		want, wantDedicated := ReleaseOrder(v, n), DedicatedOrder(v)
		v.Machines = slices.Clone(v.Machines)
		for i := range v.Machines {
			if m := &v.Machines[i]; !m.Reserve {
				m.Pods, m.Pinned = 0, ""
			}
		}
		if got := ReleaseOrder(v, n); !reflect.DeepEqual(got, want) {
			t.Fatalf("%v with pods, %v without: %+v", want, got, v)
		}
		if got := DedicatedOrder(v); !reflect.DeepEqual(got, wantDedicated) {
			t.Fatalf("%v with pods, %v without: %+v", wantDedicated, got, v)
		}
	})

	law("2, 7: moves are of machines that live, are made and carry the other mark, each once", func(t *rapid.T, v View, p Plan) {
		seen := map[string]bool{}
		for _, move := range p.Moves {
			m := find(v, move.Name)
			if seen[move.Name] || m.Leaving() || !m.HasProviderID || m.Unhealthy() || m.Reserve == move.Reserve {
				t.Fatalf("%+v of %+v", move, m)
			}
			seen[move.Name] = true
		}
	})

	law("bounded: what is recorded is at least what is in reserve and stays, and has the max of now or of a client", func(t *rapid.T, v View, p Plan) {
		after, staying := carriedOut(v, p), 0
		for _, m := range after.Machines {
			if m.Reserve && !m.Leaving() {
				staying++
			}
		}
		if soon := max(0, p.Replicas-p.Summary.Serving); !v.Rollout && p.Applied.Excess < staying-soon || p.Applied.Excess < p.Total-p.Replicas || p.Applied.Max > v.Max || p.Again < 0 {
			t.Fatalf("%d stay: %+v", staying, p)
		}
	})

	law("2: a ready machine that is not dedicated waits only if R machines run, or its Node is cordoned", func(t *rapid.T, v View, p Plan) {
		after := carriedOut(v, p)
		kept, run := kept(v), 0
		for _, m := range after.Machines {
			if !m.Reserve && m.Ready() && !m.Leaving() {
				run++
			}
		}
		for _, m := range after.Machines {
			if run < p.Replicas && !v.NodesUnknown && m.Reserve && m.Ready() && !m.Leaving() && !kept[m.Name] {
				t.Fatalf("%d of %d run, %+v waits: %+v", run, p.Replicas, m, p)
			}
		}
	})

	law("5: while too many Nodes are not ready, patience does not run", func(t *rapid.T, v View, p Plan) {
		if v.Unhealthy && !p.SurplusSince.IsZero() {
			t.Fatalf("%+v", p)
		}
	})

	law("3: R is restored for reserve machines that were named only, and not above what serves or begins to", func(t *rapid.T, v View, p Plan) {
		run := 0
		for _, m := range v.Machines {
			if m.Ready() && !m.Leaving() && (!m.Reserve || m.Open) {
				run++
			}
		}
		if restored := p.Replicas - v.Replicas; restored < 0 || restored > v.NamedSpares || restored > 0 && p.Replicas > run {
			t.Fatalf("%d run: %+v", run, p)
		}
	})

	It("order-free, and the view is left alone", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawView(t)
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

	law("a machine that goes lives, goes once, and is not protected", func(t *rapid.T, v View, p Plan) {
		seen := map[string]bool{}
		for _, going := range p.Going {
			m := find(v, going.Name)
			if seen[m.Name] || m.Leaving() || m.Protected {
				t.Fatalf("%+v goes: %+v", m, p)
			}
			seen[m.Name] = true
		}
	})

	law("a reserve machine goes only if no pod runs there, and none can come", func(t *rapid.T, v View, p Plan) {
		after := carriedOut(v, p)
		for _, going := range p.Going {
			m := find(after, going.Name)
			closed := m.Reserve && !m.Open && find(v, going.Name).Reserve
			if going.Why != Surplus && (m.Busy() && !v.NodesUnknown || !closed && !isLate(v, m)) {
				t.Fatalf("%+v goes: %+v", m, p)
			}
		}
		for _, name := range p.Closed {
			if m := find(after, name); !m.Reserve || m.Open && !isLate(v, m) || !v.Rollout && (m.Protected || m.Busy() && !v.NodesUnknown) {
				t.Fatalf("%+v may go: %+v", m, p)
			}
		}
	})

	law("those that go are the first of those that may", func(t *rapid.T, v View, p Plan) {
		var going []string
		if v.Rollout { // there, those may go, too, that a smaller reserve has to wait for
			p.Closed = slices.DeleteFunc(p.Closed, func(name string) bool {
				m := find(v, name)
				return m.Busy() && !v.NodesUnknown || m.Protected
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

	law("the reserve loses no more than it has beyond X, or what cannot be created", func(t *rapid.T, v View, p Plan) {
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
		x := wanted(v, p.Replicas)
		if gone > max(reserve-x, stuck) {
			t.Fatalf("%d of %d go, %d desired, %d stuck: %+v", gone, reserve, x, stuck, p)
		}
	})

	law("one that serves is drained only after patience, with pods that may be evicted, and while nothing leaves", func(t *rapid.T, v View, p Plan) {
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
				if !slices.Contains(p.Going, Deletion{m.Name, Surplus}) {
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

	law("what is cut serves, or would, and is beyond R and beyond what there was to be", func(t *rapid.T, v View, p Plan) {
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

	law("8: all machines are within max, unless workload needs more, or they are there already", func(t *rapid.T, v View, p Plan) {
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

	law("a machine comes to serve only if fewer than R could, those in reserve included that are not dedicated", func(t *rapid.T, v View, p Plan) {
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

	law("2: a dedicated machine is not released before it is claimed", func(t *rapid.T, v View, p Plan) {
		kept := kept(v)
		for _, move := range p.Moves {
			if kept[move.Name] && !move.Reserve {
				t.Fatalf("%+v: %+v", move, p)
			}
		}
	})

	law("2: fewer than R serve only if nothing can be released", func(t *rapid.T, v View, p Plan) {
		after := carriedOut(v, p)
		serving, _, _ := count(after)
		kept := kept(v)
		for _, m := range after.Machines {
			if serving < p.Replicas && !v.NodesUnknown && m.Reserve && m.HasProviderID && !m.Leaving() && !m.Unhealthy() && !kept[m.Name] {
				t.Fatalf("%d of %d serve, %+v stays in reserve: %+v", serving, p.Replicas, m, p)
			}
		}
	})

	law("4: only empty machines enter the reserve, only those beyond R, and only as many as it lacks", func(t *rapid.T, v View, p Plan) {
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
		if x := wanted(v, p.Replicas); entered > 0 && reserve > max(x, reserve-entered, protectedIn(after)) {
			t.Fatalf("%d of %d entered: %+v", entered, reserve, p)
		}
	})

	law("7: while Nodes and pods are not seen, nothing moves, and nothing goes but what was never created", func(t *rapid.T, v View, _ Plan) {
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

	law("10: after a failure, the reserve does not grow beyond what was left of it until it is time, and then by one", func(t *rapid.T, v View, p Plan) {
		reserve, stuck := 0, 0
		after := carriedOut(v, p)
		for _, m := range after.Machines {
			if m.Reserve && !m.Leaving() {
				reserve++
				if isLate(v, m) && find(v, m.Name).Reserve {
					stuck++
				}
			}
		}
		waited := v.Now.Before(v.Retry.Until)
		switch {
		case v.Retry.Failures == 0 && stuck == 0:
			if p.Retry.Failures > 0 {
				t.Fatalf("nothing has failed: %+v", p)
			}
		case stuck > 0 && !waited:
			if p.Retry.Failures != v.Retry.Failures+1 || !p.Retry.Until.After(v.Now) || p.Retry.Until.After(v.Now.Add(time.Hour)) || p.Retry.Try != 0 || p.Retry.Left > reserve-stuck {
				t.Fatalf("it is not noted: %+v", p)
			}
		case stuck > 0 && (p.Retry.Failures != v.Retry.Failures || p.Retry.Until != v.Retry.Until):
			t.Fatalf("it is noted twice: %+v", p)
		}
		most := max(reserve-stuck, p.Retry.Left)
		if !p.Retry.Until.After(v.Now) {
			most = max(most, p.Retry.Try)
		}
		if _, live, _ := count(after); p.Retry.Failures > 0 && p.Total > max(live, p.Replicas+max(most, reserve)) {
			t.Fatalf("%d in all, %d live, %d in reserve: %+v", p.Total, live, reserve, p)
		}
	})

	law("what a plan keeps and what it writes is at rest when nothing else happens", func(t *rapid.T, v View, p Plan) {
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
			p = Decide(v)
		}
		t.Fatalf("no rest: %+v", p)
	})

	It("comes to rest with S = R and V = X, and nothing goes then, or says why not", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := drawView(t)
			v.Rollout, v.NodesUnknown, v.Unhealthy, v.NamedSpares = false, false, false, 0
			w := &world{view: v, born: len(v.Machines)}
			p, rested := w.settle()
			if !rested || w.broken != nil {
				t.Fatalf("rested %t, broken %v: %v\n%+v\n%+v", rested, w.broken, w.log, p, w.view)
			}
			if n, _ := creations(w.view, p); n > 0 || len(p.Going) > 0 {
				t.Fatalf("%d come, %v go: %v\n%+v", n, p.Going, w.log, w.view)
			}
			s := p.Summary
			x := wanted(v, p.Replicas)
			if s.Serving == p.Replicas && s.Reserve == x && s.Ready == x {
				return
			}
			if s.Reason == Complete || s.Reason == NotWanted || s.Reason == AtMax || !odd(w.view) {
				t.Fatalf("%s: %+v\n%v\n%+v\nfrom %+v", s.Reason, s, w.log, w.view, v)
			}
		})
	})
})

// protectedIn returns how many machines in reserve must stay.
func protectedIn(v View) (n int) {
	for _, m := range v.Machines {
		if m.Reserve && !m.Leaving() && (m.Protected) {
			n++
		}
	}
	return n
}

// odd says whether something keeps a reserve from becoming what it is to be: a machine that is protected, or
// that others want to go first, or pods that stay where they are.
func odd(v View) bool {
	return slices.ContainsFunc(v.Machines, func(m Machine) bool {
		return m.Protected || m.First || m.Pinned != "" || m.Reserve && m.Busy() || len(v.Budgets) > 0 && m.Busy() || pool.UpdatedInPlace(m.Phase)
	})
}

// isLate says that a machine in reserve cannot be created, or has not become ready in time.
func isLate(v View, m Machine) bool {
	boots := m.Phase == "" || m.Phase == mcm.MachinePending || m.Phase == mcm.MachineCrashLoopBackOff || m.Phase == mcm.MachineTerminating
	return m.Reserve && boots && (m.Failing || v.Now.Sub(m.Created) >= v.BootPatience) && !(v.NodesUnknown && m.HasProviderID)
}

var phases = []mcm.MachinePhase{"", mcm.MachinePending, mcm.MachineAvailable, mcm.MachineRunning, mcm.MachineRunning, mcm.MachineRunning,
	mcm.MachineTerminating, mcm.MachineUnknown, mcm.MachineFailed, mcm.MachineCrashLoopBackOff,
	mcm.MachineInPlaceUpdating, mcm.MachineInPlaceUpdateSuccessful, mcm.MachineInPlaceUpdateFailed}

func drawMachine(t *rapid.T, name string) Machine {
	often := rapid.Custom(func(t *rapid.T) bool { return rapid.IntRange(0, 9).Draw(t, "of ten") > 0 })
	m := Machine{
		Name:      name,
		Created:   start.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * 10 * time.Minute),
		Phase:     rapid.SampledFrom(phases).Draw(t, "phase"),
		Set:       current,
		Reserve:   rapid.Bool().Draw(t, "reserve"),
		Failing:   !often.Draw(t, "not failing"),
		Named:     !often.Draw(t, "not named"),
		Deleted:   !often.Draw(t, "not deleted"),
		Protected: !often.Draw(t, "not protected"),
		Pods:      rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "pods"),
	}
	m.First = !m.Protected && !often.Draw(t, "not first")
	if m.Pods > 0 {
		m.Pinned = drawPin(t)
	}
	m.Failing = m.Failing && m.Phase == mcm.MachineCrashLoopBackOff
	m.HasProviderID = m.Ready() || m.Unhealthy() || often.Draw(t, "made")
	m.Open = m.Reserve && !m.Unhealthy() && rapid.Bool().Draw(t, "open")
	m.Registered = m.Ready() || m.Unhealthy() || m.HasProviderID && rapid.Bool().Draw(t, "registered")
	return m
}

func drawPin(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "NotSafeToEvict: pod a/b must not be evicted"}).Draw(t, "pinned")
}

func drawView(t *rapid.T) View {
	v := View{
		Replicas:     rapid.IntRange(0, 4).Draw(t, "R"),
		Wish:         rapid.IntRange(0, 3).Draw(t, "wish"),
		Max:          rapid.SampledFrom([]int{Unbounded, Unbounded, 5, 4, 2}).Draw(t, "max"),
		CurrentSet:   current,
		SetReplicas:  rapid.IntRange(0, 6).Draw(t, "wanted"),
		NodesUnknown: rapid.IntRange(0, 5).Draw(t, "unseen") == 0,
		Unhealthy:    rapid.IntRange(0, 4).Draw(t, "unhealthy") == 0,
		NamedSpares:  max(0, rapid.IntRange(-5, 2).Draw(t, "named in reserve")),
		Rollout:      rapid.IntRange(0, 4).Draw(t, "rollout") == 0,
		Now:          start, Patience: 10 * time.Minute, BootPatience: 20 * time.Minute,
	}
	v.SetReplicas = max(v.SetReplicas, v.Replicas)
	v.Applied = Applied{Excess: rapid.IntRange(0, 3).Draw(t, "A"), Max: rapid.SampledFrom([]int{v.Max, v.Max, Unbounded, 5}).Draw(t, "recorded max")}
	if rapid.Bool().Draw(t, "overstays") {
		v.SurplusSince = start.Add(-rapid.SampledFrom([]time.Duration{time.Minute, time.Hour}).Draw(t, "for"))
	}
	if rapid.IntRange(0, 3).Draw(t, "retries") == 0 {
		v.Retry = Retry{Failures: rapid.IntRange(1, 9).Draw(t, "failures"), Until: start.Add(rapid.SampledFrom([]time.Duration{-time.Minute, time.Minute}).Draw(t, "until")),
			Left: rapid.IntRange(0, 2).Draw(t, "left"), Try: rapid.IntRange(0, 2).Draw(t, "try")}
	}
	if rapid.IntRange(0, 2).Draw(t, "dedicates") == 0 {
		shop := rapid.IntRange(0, wanted(v, v.Replicas)).Draw(t, "for shop")
		v.Dedicated = []machine.Dedication{{Owner: "shop", Machines: int32(shop)}, {Owner: "ci", Machines: int32(wanted(v, v.Replicas) - shop)}}
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "number") {
		m := drawMachine(t, string(rune('a'+i)))
		if v.Rollout && rapid.Bool().Draw(t, "old") {
			m.Set = old
		}
		m.Owner, m.Claimed = rapid.SampledFrom([]machine.Owner{"", "", "shop", "ci"}).Draw(t, "owner"), rapid.IntRange(0, 4).Draw(t, "claimed") == 0
		v.Machines = append(v.Machines, m)
	}
	if rapid.Bool().Draw(t, "budgets") {
		b := pool.SharedBudget{Allowed: rapid.IntRange(-1, 4).Draw(t, "allowed"), Pods: map[string]int{}}
		for _, m := range v.Machines {
			b.Pods[m.Name] = rapid.IntRange(0, m.Pods).Draw(t, "of the budget")
		}
		v.Budgets = []pool.SharedBudget{b}
	}
	return v
}

// carriedOut is the view after a plan, in a world in which nothing else happens.
func carriedOut(v View, p Plan) View {
	w := world{view: v}
	w.view.Machines = slices.Clone(v.Machines)
	w.carryOut(p)
	return w.view
}

func find(v View, name string) Machine {
	return v.Machines[slices.IndexFunc(v.Machines, func(m Machine) bool { return m.Name == name })]
}

// count says how many machines serve without being sick, and how many are there, alive or leaving.
func count(v View) (serving, live, leaving int) {
	for _, m := range v.Machines {
		switch {
		case m.Leaving():
			leaving++
			continue
		case !m.Reserve && !m.Unhealthy():
			serving++
		}
		live++
	}
	return serving, live, leaving
}
