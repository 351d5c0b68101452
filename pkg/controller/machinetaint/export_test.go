// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/still"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
)

// Remembered counts all that the controller holds beside its stores.
func (c *Controller) Remembered() map[string]int {
	c.states.mu.Lock()
	defer c.states.mu.Unlock()
	n := map[string]int{
		"memories": 0, "resizes": 0, "removals": 0, "reductions": 0, "releases": 0, "doubts": 0, "openings": 0, "listening": 0, "names": 0, "freed": 0, "states": len(c.states.all),
		"written": c.latest.deployments.Len(), "machines": c.latest.machines.Len(), "nodes": c.latest.nodes.Len(), "told": c.latest.external.Len(),
	}
	count := func(what string, there bool) {
		if there {
			n[what]++
		}
	}
	for _, s := range c.states.all {
		count("memories", s.memory != nil)
		count("reductions", s.reduction != nil)
		count("listening", s.listener != nil)
		count("names", len(s.named.all) > 0)
		count("freed", !s.freedAt.IsZero())
		n["resizes"] += len(s.resizes)
		n["removals"] += len(s.removals)
		n["releases"] += len(s.releases)
		n["doubts"] += len(s.doubts)
		n["openings"] += len(s.openings)
	}
	return n
}

// Reduce begins a reduction.
func (c *Controller) Reduce(d *v1alpha1.MachineDeployment, shown, asked int) (ended func(error), err error) {
	return c.guards.reduce(d, shown, asked)
}

// Retires reports whether retirements start after the last of the other writes of a batch has ended,
// if the MachineDeployment has changed by then, or has not.
func (c *Controller) Retires(key string, changed bool) (started bool) {
	raised, done := c.states.listen(key)
	defer done()
	if changed {
		c.states.notify(key)
	}
	w := &batch{c: c, key: key, retirements: []func(){func() { started = true }}}
	w.retire(context.Background(), raised)
	return started
}

// Doubt records that a Machine may have entered the reserve.
func (c *Controller) Doubt(key string, m *mcm.Machine) { c.states.noteDoubt(key, m, c.clock.Now()) }

// Opening records that the Node of a Machine may have been opened.
func (c *Controller) Opening(key string, m *mcm.Machine) {
	c.states.noteOpening(key, m.UID, &corev1.Node{}, c.clock.Now())
}

// Full reports whether machines leave no room below max; see [creationCount.fill].
func Full(staying, leaving, leavingReserve, workload, limit int) bool {
	return creationCount{staying: staying, leaving: leaving, leavingReserve: leavingReserve}.isFull(workload, limit)
}

// Remembered counts all that the controller holds beside its stores.
func (p *Preview) Remembered() map[string]int { return p.c.Remembered() }

// WokenBy returns the keys that are synced because an object came (was is nil), changed, or went
// (is is nil).
func (p *Preview) WokenBy(was, is any) []string {
	return slices.Sorted(maps.Keys(p.DelaysAfter([2]any{was, is})))
}

// DelaysAfter returns when each key is synced because of changes from one object to another that come
// at once.
func (p *Preview) DelaysAfter(changes ...[2]any) map[string][]time.Duration {
	delays, begun := map[string][]time.Duration{}, time.Now()
	p.c.loop = loop.New("test", func(_ context.Context, key string) (time.Duration, error) {
		delays[key] = append(delays[key], time.Since(begun))
		return 0, nil
	}, loop.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, change := range changes {
		was, is := change[0], change[1]
		switch cmp.Or(is, was).(type) {
		case *v1alpha1.MachineDeployment:
			p.c.deploymentChanged(was, is)
		case *mcm.MachineSet:
			p.c.setChanged(was, is)
		case *mcm.Machine:
			p.c.machineChanged(was, is)
		case *mcm.MachineClass:
			p.c.classChanged(was, is)
		case *corev1.Node:
			p.c.nodeChanged(was, is)
		case *corev1.Pod:
			p.c.podChanged(was, is)
		}
	}
	p.c.loop.Run(ctx)
	return delays
}

// SettleNames removes the names that a raise of R accounts for.
var SettleNames = settleNames

// Resizes are the writes of the replicas of one MachineSet.
type Resizes struct{ state state }

// Begin begins a write.
func (r *Resizes) Begin(replicas int) { r.state.beginResize("ns/set", replicas) }

// End ends the last write: with the version that it has led to, or an error.
func (r *Resizes) End(version string, err error, now time.Time) {
	r.state.endResize("ns/set", &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}, err, now)
}

// Range returns the fewest and the most machines that the MachineSet may be asking for, where it is
// shown with these replicas.
func (r *Resizes) Range(version string, replicas int32, now time.Time) [2]int {
	set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", ResourceVersion: version}, Spec: mcm.MachineSetSpec{Replicas: replicas}}
	least, most := r.state.replicasOf(set, now)
	return [2]int{least, most}
}

// Reduced returns how many machines a MachineDeployment that shows 5 is to show, and whether that was
// reduced recently, after so long: while a reduction to 2 is in progress, or after reductions have
// ended one after the other, with an error or without one.
func Reduced(later time.Duration, ends ...error) (visible int, reduced bool) {
	s, now := state{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.beginReduction(2)
	for i, err := range ends {
		if i > 0 {
			s.beginReduction(2)
		}
		s.endReduction(err, now)
	}
	return s.visible(5, now.Add(later))
}

// Removed reports whether a Machine counts as being deleted, after so long: while its deletion is in
// progress, or after deletions have ended one after the other, with an error or without one.
func Removed(later time.Duration, ends ...error) bool {
	s, now := state{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.beginRemoval("uid")
	for i, err := range ends {
		if i > 0 {
			s.beginRemoval("uid")
		}
		s.endRemoval("uid", err, now)
	}
	return s.isRemoved("uid", now.Add(later))
}

// Superfluous returns why a Machine of a MachineDeployment must not be created while others with these
// names are being created; nil if it may.
func (p *Preview) Superfluous(namespace, deployment string, inProgress ...string) error {
	creation := view.Creation{Deployment: types.NamespacedName{Namespace: namespace, Name: deployment}, Machine: &mcm.Machine{}}
	for _, name := range inProgress {
		creation.InProgress = append(creation.InProgress, view.InProgress{Name: name})
	}
	return p.c.Superfluous(creation)
}

// SetSeen makes a MachineDeployment what machine-controller-manager's store shows.
func (p *Preview) SetSeen(d *mcm.MachineDeployment) error {
	return still.Replace(p.c.stores.seenDeployments, []*mcm.MachineDeployment{d})
}

// NotedNames are the reserve machines that are named by a write of a MachineDeployment, and for which replicas may have to be restored. If
// they are gone, so many of them count for a later version.
func NotedNames(was, is, later *v1alpha1.MachineDeployment, inReserve func(machine string) bool) (names []string, gone int) {
	s := newStates()
	s.noteNames(was, is, time.Time{}, inReserve)
	s.locked(keyOf(is), func(one *state) { names = slices.Sorted(maps.Keys(one.named.all)) })
	return names, s.completeNames(later, nil)
}
