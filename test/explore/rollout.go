// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"sort"
	"sync"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/controller"
)

// seenSets is what machine-controller-manager decides on when it resizes MachineSets.
type seenSets struct {
	total, template uint8
	sets            [2]seenSet
}

type seenSet struct {
	there            bool
	asks, total      uint8
	count, available uint8
}

// seenSets reads the stores of machine-controller-manager. The status of a MachineSet is as recent
// as its machines there.
func (w *World) seenSets() seenSets {
	in := seenSets{total: w.deploymentSeen, template: w.templateSeen}
	for s := range w.sets {
		set := &w.sets[s]
		in.sets[s] = seenSet{there: set.seen, asks: set.asksSeen, total: set.totalSeen}
	}
	for i := range w.machines {
		m := &w.machines[i]
		if !m.there || !m.shown.there {
			continue
		}
		in.sets[m.set].count++
		if m.shown.phase == running {
			in.sets[m.set].available++
		}
	}
	return in
}

// resizes remembers what machine-controller-manager decides.
type resizes struct {
	mu  sync.RWMutex
	all map[seenSets][]resize
}

func (r *resizes) planFor(in seenSets) []resize {
	r.mu.RLock()
	list, known := r.all[in]
	r.mu.RUnlock()
	if !known {
		list = in.decide()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all[in] = list
	}
	return list
}

// synchronization is one synchronization of a MachineDeployment. The functions that compute numbers
// are machine-controller-manager's own; those that call them need clients, and are repeated here.
type synchronization struct {
	d       *mcm.MachineDeployment
	current *mcm.MachineSet
	old     []*mcm.MachineSet
	writes  []resize
}

// decide returns the writes of one synchronization, in their order.
func (in seenSets) decide() []resize {
	y := &synchronization{d: &mcm.MachineDeployment{Spec: mcm.MachineDeploymentSpec{Replicas: int32(in.total), Strategy: rollingUpdate()}}}
	for s, set := range in.sets {
		if !set.there {
			continue
		}
		o := newMachineSet(uint8(s), set.asks, set.total)
		o.Status.Replicas, o.Status.AvailableReplicas = int32(set.count), int32(set.available)
		y.d.Status.Replicas += o.Status.Replicas
		if uint8(s) == in.template {
			y.current = o
		} else {
			y.old = append(y.old, o)
		}
	}
	switch {
	case y.current != nil && y.isScaling():
		y.scale()
	case y.current == nil:
		y.current = newMachineSet(in.template, 0, 0)
		n, err := stock.NewISNewReplicas(y.d, y.all(), y.current)
		if err == nil {
			y.writes = append(y.writes, resize{pending: true, fresh: true, set: in.template, asks: uint8(n)})
		}
	default:
		y.continueRollout()
	}
	return y.writes
}

func (y *synchronization) all() []*mcm.MachineSet { return append(slices.Clone(y.old), y.current) }

func setTotal(s *mcm.MachineSet, total int32) bool {
	return stock.SetReplicasAnnotations(s, total, total+surge)
}

// write resizes a MachineSet, and reports whether its size changes.
func (y *synchronization) write(s *mcm.MachineSet, n int32) bool {
	resized := s.Spec.Replicas != n
	if setTotal(s, y.d.Spec.Replicas) || resized {
		set := s.Name[len(s.Name)-1] - '0'
		write := resize{pending: true, set: set, asks: uint8(n), total: uint8(y.d.Spec.Replicas) + 1}
		if last := len(y.writes) - 1; last >= 0 && y.writes[last].set == set {
			y.writes[last] = write // two writes in a row count as one
		} else {
			y.writes = append(y.writes, write)
		}
	}
	s.Spec.Replicas = n
	return resized
}

// writeSize does the same, unless the size is right already.
func (y *synchronization) writeSize(s *mcm.MachineSet, n int32) bool {
	return s.Spec.Replicas != n && y.write(s, n)
}

// isScaling reports whether replicas have changed since the MachineSets were resized.
func (y *synchronization) isScaling() bool {
	active := stock.FilterActiveMachineSets(y.all())
	if len(active) == 0 {
		return y.d.Spec.Replicas > 0
	}
	return slices.ContainsFunc(active, func(s *mcm.MachineSet) bool {
		total, known := stock.GetDesiredReplicasAnnotation(s)
		return known && total != y.d.Spec.Replicas
	})
}

func (y *synchronization) scale() {
	if only := stock.FindActiveOrLatest(y.current, slices.Clone(y.old)); only != nil {
		y.write(only, y.d.Spec.Replicas)
		return
	}
	if stock.IsSaturated(y.d, y.current) {
		for _, s := range stock.FilterActiveMachineSets(y.old) {
			y.writeSize(s, 0)
		}
		return
	}
	active := stock.FilterActiveMachineSets(y.all())
	allowed := y.d.Spec.Replicas
	if allowed > 0 {
		allowed += stock.MaxSurge(*y.d)
	}
	add := allowed - stock.GetReplicaCountForMachineSets(active)
	if add < 0 {
		sort.Sort(stock.MachineSetsBySizeOlder(active))
	}
	sizes, added := map[string]int32{}, int32(0)
	for _, s := range active {
		sizes[s.Name] = s.Spec.Replicas
		if add < 0 {
			n := stock.GetProportion(s, *y.d, add, added)
			sizes[s.Name] += n
			added += n
		}
	}
	if add >= 0 {
		sizes[y.current.Name] = y.current.Spec.Replicas + add
	} else {
		sizes[active[0].Name] = max(sizes[active[0].Name]+add-added, 0)
	}
	for _, s := range active {
		y.write(s, sizes[s.Name])
	}
}

// continueRollout continues a rolling update.
func (y *synchronization) continueRollout() {
	n := y.d.Spec.Replicas
	switch {
	case y.current.Spec.Replicas > n:
	case y.current.Spec.Replicas < n:
		n, _ = stock.NewISNewReplicas(y.d, y.all(), y.current)
	}
	if y.writeSize(y.current, n) {
		return
	}
	old := stock.FilterActiveMachineSets(y.old)
	available := y.d.Spec.Replicas - stock.MaxUnavailable(*y.d)
	down := stock.GetReplicaCountForMachineSets(y.all()) - available - (y.current.Spec.Replicas - y.current.Status.AvailableReplicas)
	if stock.GetReplicaCountForMachineSets(old) == 0 || down <= 0 {
		return
	}
	for _, s := range old {
		n := min(down, s.Spec.Replicas-s.Status.AvailableReplicas)
		if n < 0 {
			return // machine-controller-manager reports an error
		}
		y.writeSize(s, s.Spec.Replicas-n)
		down -= n
	}
	down = stock.GetAvailableReplicaCountForMachineSets(y.all()) - available
	for _, s := range old {
		if n := min(down, s.Spec.Replicas); n > 0 {
			y.writeSize(s, s.Spec.Replicas-n)
			down -= n
		}
	}
}
