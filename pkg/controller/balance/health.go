// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"maps"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"
)

const (
	// How long nothing is asked of a member that fails to make machines. It doubles with every failure in a row.
	firstRetry = time.Minute
	lastRetry  = 16 * time.Minute
	// passing is how long an error in making a machine that is none of capacity is taken for one that passes.
	passing = 30 * time.Second
)

// health is what a member's machines tell.
type health struct {
	// blocked: it fails to make machines. probing: but one may be tried.
	blocked, probing bool
	// serving and reserve are those that are ready, by what they do; working are all that serve, ready or on their way,
	// but for those that are stuck, which cannot be made.
	serving, reserve, working, stuck int
	// leaving are on their way out.
	leaving int
}

// examine tells how a member is, and what to remember of that.
func examine(z *zone, was Ill, now time.Time, patience time.Duration) (health, Ill) {
	var h health
	bad, recovered := false, false
	for _, m := range z.Machines {
		stuck := m.stuck(now, patience)
		switch {
		case m.Leaving():
			h.leaving++
			continue
		case m.Reserve():
		case stuck:
			h.stuck++
		default:
			h.working++
		}
		if bad = bad || stuck; m.Ready() {
			h.count(m)
			recovered = recovered || m.Object.Status.CurrentStatus.LastUpdateTime.After(was.Since)
		}
	}
	is := was.next(bad, recovered, now)
	h.blocked, h.probing = is.Failures > 0, is.Probing
	return h, is
}

// count counts a machine that is ready.
func (h *health) count(m Machine) {
	if m.Reserve() {
		h.reserve++
	} else {
		h.serving++
	}
}

// next is what to remember, where machines are bad or one has become ready since.
func (i Ill) next(bad, recovered bool, now time.Time) Ill {
	switch {
	case bad && (i.Failures == 0 || i.Probing):
		return Ill{Since: now, Failures: i.Failures + 1, Until: now.Add(pause(i.Failures))}
	case bad || i.Failures == 0:
		return i
	case recovered:
		return Ill{}
	}
	i.Probing = i.Probing || !now.Before(i.Until)
	return i
}

// unmade is how many of the replicas that count have no machine but one that is stuck.
func (z *zone) unmade() int { return max(0, min(z.health.stuck, z.applied-z.health.working)) }

// pause after so many failures before this one.
func pause(failures int) time.Duration {
	if failures > 5 {
		return lastRetry
	}
	return min(lastRetry, firstRetry<<failures)
}

// stuck says that it cannot be made, or is not made in time.
func (m Machine) stuck(now time.Time, patience time.Duration) bool {
	o := m.Object
	switch m.Phase() {
	case "", mcm.MachinePending, mcm.MachineCrashLoopBackOff, mcm.MachineFailed:
	default:
		return false
	}
	age := now.Sub(o.CreationTimestamp.Time)
	if patience > 0 && age >= patience {
		return true
	}
	last := o.Status.LastOperation
	if last.Type != mcm.MachineOperationCreate || last.State != mcm.MachineStateFailed {
		return false
	}
	return codes.StringToCode(last.ErrorCode) == codes.ResourceExhausted || age >= passing
}

// due is when a machine that is not ready will be stuck, the zero time where that is not known or it is.
func (m Machine) due(now time.Time, patience time.Duration) time.Time {
	o := m.Object
	if m.Ready() || m.stuck(now, patience) {
		return time.Time{}
	}
	born := o.CreationTimestamp.Time
	if last := o.Status.LastOperation; last.State == mcm.MachineStateFailed && now.Before(born.Add(passing)) {
		return born.Add(passing)
	}
	switch m.Phase() {
	case "", mcm.MachinePending, mcm.MachineCrashLoopBackOff:
		if patience > 0 {
			return born.Add(patience)
		}
	}
	return time.Time{}
}

// allocatable is what one machine has for pods, nil where that is not known.
func (z *zone) allocatable() corev1.ResourceList {
	if z.Template == nil {
		return nil
	}
	return maps.Clone(z.Template.Allocatable)
}
