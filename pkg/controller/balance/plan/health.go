// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

const (
	// How long a member that fails to create machines gets no requests. It doubles with each
	// consecutive failure.
	firstRetry = time.Minute
	lastRetry  = 16 * time.Minute
	// temporaryFor is how long a failure to create a machine counts as temporary, unless capacity
	// is missing.
	temporaryFor = 30 * time.Second
)

// health summarizes a member's machines.
type health struct {
	// blocked: the member fails to create machines, or too many of its Nodes are not ready. probing: one
	// machine may be tried all the same.
	blocked, probing bool
	// unready: too many of its Nodes are not ready. changes is when that may change without an event;
	// zero means never.
	unready bool
	changes time.Time
	// serving and reserve are the ready machines. Stuck are those that serve, cannot be created, and
	// would be deleted before any other; working are all others that serve, ready or not.
	serving, reserve, working, stuck int
	// kept reports whether a machine that serves does not work and is preserved, so that nothing
	// replaces it.
	kept bool
	// open are those of the machines in reserve that are not cordoned.
	open int
	// booting are those of the working machines that may still become ready.
	booting int
	// leaving are being deleted.
	leaving int
}

// examine sets the health of a member, and what to remember about it.
func (r *round) examine(z *zone) {
	was, now, patience := r.Memory.Failing[z.name], r.Now, r.Settings.BootPatience
	var h health
	var stuckOnes, working []Machine
	bad, recovered := false, false
	for _, m := range z.Machines {
		stuck := m.isStuck(now, patience)
		switch {
		case m.Leaving():
			h.leaving++
			continue
		case m.Reserve():
		case stuck:
			stuckOnes = append(stuckOnes, m)
		default:
			working = append(working, m)
			h.kept = h.kept || m.Preserved && pool.Unhealthy(m.Phase())
			if m.boots() {
				h.booting++
			}
		}
		if bad = bad || stuck; m.Ready() {
			h.countReady(m, was, now)
			recovered = recovered || m.joinedAfter(was.Since)
		}
	}
	h.stuck = countFirst(stuckOnes, working)
	h.working = len(working) + len(stuckOnes) - h.stuck
	h.unready, h.changes = r.isUnready(z, was)
	is := was.nextState(bad, h.unready, recovered, now)
	h.blocked, h.probing = is.Failures > 0, is.Probing
	z.health, r.failing[z.name] = h, is
}

// countReady counts a ready machine, unless it is in reserve and its Node is not ready for good.
func (h *health) countReady(m Machine, was Failure, now time.Time) {
	switch unready, _, _ := m.nodeState(was, now); {
	case !m.Reserve():
		h.serving++
		return
	case unready:
		return
	case !m.Cordoned():
		h.open++
	}
	h.reserve++
}

// joinedAfter reports whether a ready machine became ready for the first time after this time. What
// happened to an older one since, such as a Node that recovered, does not show that machines can be
// created.
func (m Machine) joinedAfter(t time.Time) bool {
	last := m.Object.Status.LastOperation
	return m.Object.CreationTimestamp.After(t) || last.Type == mcm.MachineOperationCreate && last.LastUpdateTime.After(t)
}

// nextState returns what to remember if machines are bad, if too many Nodes are not ready, or if a
// machine has become ready since. Where only Nodes are not ready, nothing was tried yet, so that one
// machine may be at once.
func (i Failure) nextState(bad, unready, recovered bool, now time.Time) Failure {
	cured := !unready && (i.Unready || recovered)
	i.Unready = unready
	switch {
	case bad && (i.Failures == 0 || i.Probing):
		return Failure{Since: now, Failures: i.Failures + 1, Until: now.Add(retryDelay(i.Failures)), Unready: unready}
	case unready && i.Failures == 0:
		return Failure{Since: now, Failures: 1, Until: now, Probing: true, Unready: true}
	case bad || i.Failures == 0:
		return i
	case cured:
		return Failure{}
	}
	i.Probing = i.Probing || !now.Before(i.Until)
	return i
}

// uncreated returns how many of the replicas have no machine, or only a stuck one. In a rollout, it is
// none: machine-controller-manager spreads a reduction over MachineSets, and would delete machines
// that work.
func (z *zone) uncreated() int {
	if z.Rollout.Spread {
		return 0
	}
	return max(0, min(z.health.stuck, z.applied-z.health.working))
}

// countFirst returns how many machines machine-controller-manager deletes before any of the others,
// if it is to run fewer. Of equal ones, it deletes the oldest first.
func countFirst(machines, others []Machine) int {
	if len(others) == 0 {
		return len(machines)
	}
	first := slices.MinFunc(others, deletionOrder)
	return len(slices.DeleteFunc(machines, func(m Machine) bool { return deletionOrder(first, m) < 0 }))
}

// deletionOrder orders machines as machine-controller-manager deletes them, except by age.
func deletionOrder(a, b Machine) int {
	return cmp.Or(
		-compareTrueFirst(a.Preserved, b.Preserved),
		cmp.Compare(pool.Priority(a.Object), pool.Priority(b.Object)),
		compareTrueFirst(!a.markedAt().IsZero(), !b.markedAt().IsZero()),
		a.markedAt().Compare(b.markedAt()),
		cmp.Compare(phaseRank(a.Phase()), phaseRank(b.Phase())),
	)
}

// markedAt returns when a machine was marked for deletion, zero if it was not. A client that keeps the
// machine sets its priority back and leaves the mark.
func (m Machine) markedAt() time.Time {
	at, _ := time.Parse(time.RFC3339, m.Object.Annotations[machineutils.MarkedForDeletionTime])
	return at
}

// phaseRank ranks phases as machine-controller-manager does, which does not rank those of an in-place
// update.
func phaseRank(p mcm.MachinePhase) int {
	return slices.Index([]mcm.MachinePhase{
		mcm.MachineFailed, mcm.MachineCrashLoopBackOff, mcm.MachineUnknown, mcm.MachinePending, mcm.MachineAvailable, mcm.MachineRunning,
	}, p)
}

// retryDelay returns the delay after this number of earlier failures.
func retryDelay(failures int) time.Duration {
	if failures > 5 {
		return lastRetry
	}
	return min(lastRetry, firstRetry<<failures)
}

// isStuck reports whether a machine cannot be created, or is not ready in time. A machine that ran
// before it failed could be created. A preserved machine may stay for days, and nothing tries to
// create it again.
func (m Machine) isStuck(now time.Time, patience time.Duration) bool {
	if m.Preserved {
		return false
	}
	o := m.Object
	age := now.Sub(o.CreationTimestamp.Time)
	switch m.Phase() {
	case "", mcm.MachinePending, mcm.MachineCrashLoopBackOff:
		if patience > 0 && age >= patience {
			return true
		}
	case mcm.MachineFailed:
	default:
		return false
	}
	last := o.Status.LastOperation
	if last.Type != mcm.MachineOperationCreate || last.State != mcm.MachineStateFailed {
		return false
	}
	return codes.StringToCode(last.ErrorCode) == codes.ResourceExhausted || age >= temporaryFor
}

// boots reports whether a machine has not been ready yet, and may become ready.
func (m Machine) boots() bool {
	switch m.Phase() {
	case "", mcm.MachinePending, mcm.MachineCrashLoopBackOff:
		return true
	}
	return false
}

// stuckAt returns when a machine that is not ready will count as stuck; zero if that is unknown, or
// if it already does.
func (m Machine) stuckAt(now time.Time, patience time.Duration) time.Time {
	o := m.Object
	if m.Ready() || m.isStuck(now, patience) {
		return time.Time{}
	}
	born := o.CreationTimestamp.Time
	if last := o.Status.LastOperation; last.State == mcm.MachineStateFailed && now.Before(born.Add(temporaryFor)) {
		return born.Add(temporaryFor)
	}
	if m.boots() && patience > 0 {
		return born.Add(patience)
	}
	return time.Time{}
}

const (
	// unhealthy is why no machine moves while so many Nodes of the cluster are not ready.
	unhealthy = "too many Nodes of the cluster are not ready"
	// unreadyFor is how long a Node must not have been ready to count as unready.
	unreadyFor = 30 * time.Second
	// steadyFor is how long the Nodes of a member must have been ready again before it counts as well,
	// so that nothing moves back and forth while Nodes flap.
	steadyFor = 5 * time.Minute
)

func (r *round) unhealthy() bool {
	return r.Settings.Unready.Exceeded(r.UnreadyCount, r.NodeCount)
}

// isUnready reports whether too many Nodes of a member are not ready, and when that may change without
// an event. It stays as it was while Nodes are not known.
func (r *round) isUnready(z *zone, was Failure) (unready bool, changes time.Time) {
	if !r.NodesKnown {
		return was.Unready, time.Time{}
	}
	bad, all := 0, 0
	for _, m := range z.Machines {
		isBad, until, counts := m.nodeState(was, r.Now)
		if !counts {
			continue
		}
		all++
		if isBad {
			bad++
		}
		if changes.IsZero() || !until.IsZero() && until.Before(changes) {
			changes = until
		}
	}
	return r.Settings.Unready.ZoneExceeded(bad, all), changes
}

// nodeState reports whether the Node of a machine counts as unready, until when that is so without an
// event, zero for ever, and whether the Node counts at all. Machines that boot, leave or are updated do
// not count, and neither do those that are kept though they failed. If the member is unready, its Nodes
// count as unready until they have been ready for a while, except for new ones.
func (m Machine) nodeState(was Failure, now time.Time) (unready bool, until time.Time, counts bool) {
	failed := pool.Unhealthy(m.Phase())
	if m.Leaving() || m.boots() || pool.UpdatedInPlace(m.Phase()) || failed && m.Preserved {
		return false, time.Time{}, false
	}
	if m.Node == nil { // it had one, unless it could not be created
		counts = failed && m.Object.Status.LastOperation.Type != mcm.MachineOperationCreate
		return counts, time.Time{}, counts
	}
	at := slices.IndexFunc(m.Node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if at < 0 {
		return false, time.Time{}, false
	}
	since := m.Node.Status.Conditions[at].LastTransitionTime.Time
	lasted := func(d time.Duration) (bool, time.Time) {
		if now.Sub(since).Abs() >= d { // the clock of the kubelet may be ahead
			return true, time.Time{}
		}
		return false, since.Add(d)
	}
	switch ready := !pool.Unready(m.Node); {
	case ready && (!was.Unready || m.joinedAfter(was.Since)):
		return false, time.Time{}, true
	case ready:
		steady, until := lasted(steadyFor)
		return !steady, until, true
	case was.Unready:
		return true, time.Time{}, true
	}
	unready, until = lasted(unreadyFor)
	return unready, until, true
}

func (z *zone) isUnready() bool { return z.health.unready }

// keepOneHealthy ignores the Nodes of members if there is no other member of the pool that could stand
// in for them: shares and growth then stay where they are.
func (r *round) keepOneHealthy() {
	for _, pool := range r.pools {
		if slices.ContainsFunc(pool, func(z *zone) bool { return !z.health.blocked && !z.excluded() }) {
			continue
		}
		for _, z := range pool {
			if z.isUnready() {
				z.health.blocked, z.health.probing = false, false
			}
		}
	}
}

// reportUnready says why growth goes to others.
func (r *round) reportUnready() {
	for _, z := range r.zones {
		if z.balanced() && z.verdict.reason == "" && z.health.blocked && z.isUnready() {
			z.verdict = falseVerdict("NodesNotReady", fmt.Sprintf("too many Nodes of %s are not ready, so other zones get its growth", z.name))
			r.blocks[z.name] = "NodesNotReady"
		}
	}
}
