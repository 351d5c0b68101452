// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

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
