// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// candidate is a machine with what decides how early it goes, the most important first.
type candidate struct {
	machine *mcm.Machine
	// Preserved machines go last: first those that were preserved by themselves, then by expiry. Others have none.
	explicitly bool
	expiry     time.Time
	priority   int
	// Marked machines go before others, in the order of their marks.
	unmarked bool
	mark     time.Time
	phase    int
}

// firstToGo returns machines in the order in which they are deleted. What machine-controller-manager
// leaves to chance stays in the order in which the machines are given.
func firstToGo(machines []*mcm.Machine, now time.Time) []*mcm.Machine {
	candidates := make([]candidate, 0, len(machines))
	for _, m := range machines {
		candidates = append(candidates, newCandidate(m, now))
	}
	slices.SortStableFunc(candidates, candidate.compare)
	ordered := make([]*mcm.Machine, 0, len(machines))
	for _, c := range candidates {
		ordered = append(ordered, c.machine)
	}
	return ordered
}

func newCandidate(m *mcm.Machine, now time.Time) candidate {
	c := candidate{machine: m, priority: pool.Priority(m), phase: health[m.Status.CurrentStatus.Phase]}
	if pool.Preserved(m, now) {
		c.explicitly, c.expiry = !isAutoPreserved(m), m.Status.CurrentStatus.PreserveExpiryTime.Time
	}
	mark, isMarked := markOf(m)
	c.mark, c.unmarked = mark, !isMarked
	return c
}

func (c candidate) compare(d candidate) int {
	return cmp.Or(
		falseFirst(c.explicitly, d.explicitly), c.expiry.Compare(d.expiry),
		cmp.Compare(c.priority, d.priority),
		falseFirst(c.unmarked, d.unmarked), c.mark.Compare(d.mark),
		cmp.Compare(c.phase, d.phase),
		c.machine.CreationTimestamp.Compare(d.machine.CreationTimestamp.Time),
	)
}

// health orders phases: the lower, the earlier a machine goes. A machine in a phase that is not
// listed goes first, such as one that has none yet.
var health = map[mcm.MachinePhase]int{
	mcm.MachineFailed: 1, mcm.MachineCrashLoopBackOff: 2, mcm.MachineUnknown: 3, mcm.MachinePending: 4, mcm.MachineAvailable: 5, mcm.MachineRunning: 6,
}

// markOf returns when a machine was marked for deletion.
func markOf(m *mcm.Machine) (at time.Time, marked bool) {
	at, err := time.Parse(time.RFC3339, m.Annotations[machineutils.MarkedForDeletionTime])
	return at, err == nil
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
