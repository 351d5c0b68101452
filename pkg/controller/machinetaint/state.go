// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"maps"
	"slices"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/keep"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// states contains what the controller remembers of each MachineDeployment, besides what its stores
// show. Its lock is the only one of this package. While it is held, stores and caches of own writes
// may be read, which have locks of their own; neither of them calls back, and no request is sent.
type states struct {
	mu  sync.Mutex
	all map[string]*state
}

// state belongs to one MachineDeployment. Its methods are called under the lock of states.
type state struct {
	// memory is that of the last plan; nil if there is none.
	memory *keep.Memory
	// freedAt is when the last machine was released, until the deferred writes are done.
	freedAt time.Time
	// reportedAt is when the status was last written.
	reportedAt time.Time
	named      names
	// departed are reserve machines that no longer exist, with the time until which a client may
	// still name them.
	departed map[string]time.Time
	// listener wants to know of changes; nil if no batch is written.
	listener chan struct{}

	// The writes in progress; see guards.

	// resizes are the writes of replicas, by MachineSet.
	resizes map[string]*resize
	// removals are the deletions of Machines.
	removals map[types.UID]*removal
	// releases are the Machines that are leaving the reserve.
	releases map[types.UID]bool
	// doubts are those that put Machines into the reserve, and whose outcome is unknown.
	doubts map[types.UID]doubt
	// openings are those that open the Nodes of Machines in reserve, until the stores show that no
	// pods have come.
	openings map[types.UID]doubt
	// reduction is that of the number of machines that the MachineDeployment shows.
	reduction *reduction
}

func newStates() *states { return &states{all: map[string]*state{}} }

// locked calls f with the state of a MachineDeployment, which is empty if nothing is remembered of
// it, and forgets the state if it is empty afterwards.
func (s *states) locked(key string, f func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, known := s.all[key]
	if !known {
		one = &state{}
	}
	f(one)
	switch {
	case one.isEmpty():
		delete(s.all, key)
	case !known:
		s.all[key] = one
	}
}

func (s *state) isEmpty() bool {
	return s.memory == nil && s.freedAt.IsZero() && s.listener == nil &&
		len(s.named.all)+len(s.departed)+len(s.resizes)+len(s.removals)+len(s.releases)+len(s.doubts)+len(s.openings) == 0 && s.reduction == nil
}

// memory returns the memory of the last plan, which is empty if there is none. What is left of another
// MachineDeployment of the same name is forgotten.
func (s *states) memory(d *v1alpha1.MachineDeployment, now time.Time) (m keep.Memory) {
	s.locked(keyOf(d), func(one *state) {
		if one.memory != nil && one.memory.UID != d.UID {
			one.forgetDeployment()
		}
		one.visible(0, now) // forgets a reduction of long ago
		one.forgetDeparted(now)
		m = one.lastMemory()
	})
	return m
}

func (s *state) lastMemory() keep.Memory {
	if s.memory == nil {
		return keep.Memory{}
	}
	return *s.memory
}

func (s *states) remember(key string, m keep.Memory) {
	s.locked(key, func(one *state) { one.memory = &m })
}

// noteFreed records that a machine was released.
func (s *states) noteFreed(key string, now time.Time) {
	s.locked(key, func(one *state) { one.freedAt = now })
}

// deferFor returns how long deferrable writes still wait after machines were released.
func (s *states) deferFor(key string, now time.Time) (left time.Duration) {
	s.locked(key, func(one *state) {
		if one.freedAt.IsZero() {
			return
		}
		if left = deferDelay - now.Sub(one.freedAt); left <= 0 {
			one.freedAt = time.Time{}
		}
	})
	return left
}

// forgetPlans removes what plans left behind, for a MachineDeployment that has no reserve.
func (s *states) forgetPlans(key string) {
	s.locked(key, func(one *state) {
		one.memory, one.freedAt, one.named, one.doubts, one.openings = nil, time.Time{}, names{}, nil, nil
	})
}

// forgetDeployment removes what belongs to a MachineDeployment that no longer exists. Writes of its
// MachineSets and Machines that are in progress end by themselves.
func (s *states) forgetDeployment(key string) {
	s.locked(key, (*state).forgetDeployment)
}

func (s *state) forgetDeployment() {
	s.memory, s.freedAt, s.named, s.departed, s.doubts, s.openings, s.reduction = nil, time.Time{}, names{}, nil, nil, nil, nil
}

// listen reports changes of a MachineDeployment until done is called. The queue cannot, because the
// key is being processed.
func (s *states) listen(key string) (changed <-chan struct{}, done func()) {
	listener := make(chan struct{}, 1)
	s.locked(key, func(one *state) { one.listener = listener })
	return listener, func() { s.locked(key, func(one *state) { one.listener = nil }) }
}

// notify wakes the listener of a MachineDeployment. If it has not received the last change yet, it
// receives both together.
func (s *states) notify(key string) {
	s.locked(key, func(one *state) {
		select {
		case one.listener <- struct{}{}: // blocks forever, so it is not chosen, if there is no listener
		default:
		}
	})
}

// forgetRemoval removes the deletion of a Machine, whose MachineSet may not be known any more.
func (s *states) forgetRemoval(machine types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, one := range s.all {
		delete(one.removals, machine)
		if one.isEmpty() {
			delete(s.all, key)
		}
	}
}

// doubt is a write of a Machine or a Node whose outcome may be unknown.
type doubt struct {
	version string    // that it was decided on: once the object has another one, that one shows the outcome
	until   time.Time // when that version, too, shows the outcome: the write had no effect
}

// beginRelease keeps a Machine from being deleted.
func (s *state) beginRelease(machine types.UID) { putEntry(&s.releases, machine, true) }

// noteDoubt records that a Machine may have entered the reserve.
func (s *states) noteDoubt(key string, m *mcm.Machine, now time.Time) {
	s.locked(key, func(one *state) {
		putEntry(&one.doubts, m.UID, doubt{version: m.ResourceVersion, until: now.Add(unknownFor)})
	})
}

// setDoubtful sets which machines may have entered the reserve, and forgets the doubts about all
// others.
func (s *states) setDoubtful(key string, machines []keep.Machine, now time.Time) {
	s.locked(key, func(one *state) {
		var left map[types.UID]doubt
		for i := range machines {
			m := &machines[i]
			d, noted := one.doubts[m.Object.UID]
			m.Doubtful = noted && m.Object.ResourceVersion == d.version && !passed(d.until, now)
			if m.Doubtful {
				putEntry(&left, m.Object.UID, d)
			}
		}
		one.doubts = left
	})
}

// noteOpening records that the Node of a Machine may have been opened. It is as before the write.
func (s *states) noteOpening(key string, machine types.UID, before *corev1.Node, now time.Time) {
	s.locked(key, func(one *state) {
		putEntry(&one.openings, machine, doubt{version: before.ResourceVersion, until: now.Add(unknownFor)})
	})
}

// forgetOpening records that the Node of a Machine cannot be closed again. It is then like any other
// Node without the reserve taint.
func (s *states) forgetOpening(key string, machine types.UID) {
	s.locked(key, func(one *state) { delete(one.openings, machine) })
}

// setOpened sets which machines in reserve may have pods that are not shown, and forgets all others.
// While Nodes cannot be read, none is forgotten.
func (s *states) setOpened(key string, v keep.View, l *latest) {
	s.locked(key, func(one *state) {
		var left map[types.UID]doubt
		for i := range v.Machines {
			m := &v.Machines[i]
			d, noted := one.openings[m.Object.UID]
			if !noted || !m.Marked() {
				continue
			}
			if v.Unreachable != "" {
				d.until = v.Now.Add(unknownFor)
			}
			if m.Opened = l.mayHavePods(m.Object, d, v.Now); m.Opened {
				putEntry(&left, m.Object.UID, d)
			}
		}
		one.openings = left
	})
}

// names are the reserve machines that a client named when it lowered replicas, until these are
// restored for them. Machine-controller-manager removes the name of a machine that is being deleted
// already, and the machine may be gone before the next plan.
type names struct {
	// generation is that of the MachineDeployment: a later one decides anew.
	generation int64
	all        map[string]bool
}

// validFor returns the names that hold for a version of a MachineDeployment.
func (n names) validFor(d *v1alpha1.MachineDeployment) map[string]bool {
	if n.generation != d.Generation {
		return nil
	}
	return n.all
}

// nameable is how long a client may name a machine that no longer exists: it has read the machine
// before, and tries again until its write succeeds.
const nameable = 5 * time.Minute

// noteDeparture remembers a reserve machine that no longer exists.
func (s *states) noteDeparture(key, machine string, now time.Time) {
	s.locked(key, func(one *state) { putEntry(&one.departed, machine, now.Add(nameable)) })
}

// forgetDeparted forgets the machines that no client names any more.
func (s *state) forgetDeparted(now time.Time) {
	maps.DeleteFunc(s.departed, func(_ string, until time.Time) bool { return now.After(until) })
}

// hasDeparted reports whether a machine was in reserve until lately, and no longer exists.
func (s *state) hasDeparted(machine string, now time.Time) bool {
	until, known := s.departed[machine]
	return known && !now.After(until)
}

// namedReserve returns the reserve machines that a MachineDeployment names and does not list as
// returned, also those that no longer exist.
func (s *state) namedReserve(d *v1alpha1.MachineDeployment, now time.Time, inReserve func(machine string) bool) (all []string) {
	settled := keep.Returned(d)
	for name := range pool.Named(d) {
		if !settled[name] && (inReserve(d.Namespace+"/"+name) || s.hasDeparted(name, now)) {
			all = append(all, name)
		}
	}
	return all
}

// noteNames follows the names in a MachineDeployment from one version to the next. It adds one for each
// replica by which R fell: the reserve takes the rest of a reduction if replicas include it. The
// function reports whether a machine is in reserve.
func (s *states) noteNames(was, is *v1alpha1.MachineDeployment, now time.Time, inReserve func(machine string) bool) {
	if was.Generation == is.Generation {
		return
	}
	s.locked(keyOf(is), func(one *state) {
		all := one.named.validFor(was)
		raised := int(pool.Workload(is, is.Spec.Replicas) - pool.Workload(was, was.Spec.Replicas))
		if raised > 0 {
			settleNames(all, was, is, raised, inReserve)
		}
		fresh := one.newNames(was, is, now, inReserve)
		for _, name := range fresh[:min(max(0, -raised), len(fresh))] {
			putEntry(&all, name, true)
		}
		one.named = names{is.Generation, all}
	})
}

// newNames returns the reserve machines that a version of a MachineDeployment names and the one before
// did not.
func (s *state) newNames(was, is *v1alpha1.MachineDeployment, now time.Time, inReserve func(machine string) bool) []string {
	before := pool.Named(was)
	fresh := slices.DeleteFunc(s.namedReserve(is, now, inReserve), func(name string) bool {
		_, known := before[name]
		return known
	})
	slices.Sort(fresh)
	return fresh
}

// settleNames removes the names that a raise of R accounts for: those that the MachineDeployment
// lists as returned, and as many as are left of the raise among machines that are gone. Names of
// other machines stay, since replicas are restored for one machine after the other.
func settleNames(all map[string]bool, was, is *v1alpha1.MachineDeployment, raised int, inReserve func(machine string) bool) {
	before := keep.Returned(was)
	for name := range keep.Returned(is) {
		delete(all, name)
		if !before[name] {
			raised--
		}
	}
	for name := range all {
		if raised > 0 && !inReserve(is.Namespace+"/"+name) {
			delete(all, name)
			raised--
		}
	}
}

// completeNames reports machines that are being deleted as named if they were, and returns how many
// of those that were are gone.
func (s *states) completeNames(d *v1alpha1.MachineDeployment, machines []pool.Machine) (gone int) {
	s.locked(keyOf(d), func(one *state) {
		all := maps.Clone(one.named.validFor(d))
		if len(all) == 0 {
			return // as for most MachineDeployments
		}
		settled := keep.Returned(d)
		for i, m := range machines {
			name := m.Object.Name
			machines[i].Named = m.Named || all[name] && !settled[name] && pool.BeingDeleted(m.Object)
			delete(all, name)
		}
		gone = len(all)
	})
	return gone
}

// putEntry sets an entry of a map that may have to be made first: most MachineDeployments need
// none.
func putEntry[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// passed reports whether a time is set and over.
func passed(until, now time.Time) bool { return !until.IsZero() && now.After(until) }
