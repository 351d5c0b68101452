// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"maps"
	"strconv"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
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
	// serving and reserve are those that are ready, by what they do; stuck are those that serve, but cannot be made.
	serving, reserve, stuck int
	// leaving are on their way out.
	leaving int
}

// examine tells how a member is, and what to remember of that.
func examine(z *zone, was Ill, now time.Time, patience time.Duration) (health, Ill) {
	var h health
	bad, recovered := 0, false
	for _, m := range z.Machines {
		switch {
		case m.leaving(z.Object):
			h.leaving++
		case m.ready():
			if m.inReserve() {
				h.reserve++
			} else {
				h.serving++
			}
			recovered = recovered || m.Object.Status.CurrentStatus.LastUpdateTime.After(was.Since)
		case m.stuck(now, patience):
			bad++
			if !m.inReserve() {
				h.stuck++
			}
		}
	}
	is := was
	switch {
	case bad > 0 && (was.Failures == 0 || was.Probing):
		is = Ill{Since: now, Failures: was.Failures + 1, Until: now.Add(pause(was.Failures))}
	case bad == 0 && recovered && was.Failures > 0:
		is = Ill{}
	case bad == 0 && was.Failures > 0 && !now.Before(was.Until):
		is.Probing = true
	}
	h.blocked, h.probing = is.Failures > 0, is.Probing
	return h, is
}

// pause after so many failures before this one.
func pause(failures int) time.Duration {
	if failures > 5 {
		return lastRetry
	}
	return min(lastRetry, firstRetry<<failures)
}

// ready says that workload could run there now.
func (m Machine) ready() bool {
	phase := m.Object.Status.CurrentStatus.Phase
	return phase == mcm.MachineRunning || phase == mcm.MachineAvailable
}

func (m Machine) inReserve() bool { return m.Object.Annotations[v1alpha1.ReserveAnnotation] != "" }

// leaving says that it is on its way out, whoever sent it.
func (m Machine) leaving(d *v1alpha1.MachineDeployment) bool {
	o := m.Object
	if o.DeletionTimestamp != nil || o.Status.CurrentStatus.Phase == mcm.MachineTerminating {
		return true
	}
	if o.Annotations[machineutils.MachinePriority] == "1" && o.Annotations[machineutils.MarkedForDeletionTime] != "" {
		return true
	}
	for item := range strings.SplitSeq(d.Annotations[machineutils.TriggerDeletionByMCM], ",") {
		if name, _, _ := strings.Cut(item, "~"); name == o.Name {
			return true
		}
	}
	return false
}

// stuck says that it cannot be made, or is not made in time.
func (m Machine) stuck(now time.Time, patience time.Duration) bool {
	o := m.Object
	switch o.Status.CurrentStatus.Phase {
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
	if m.ready() || m.stuck(now, patience) {
		return time.Time{}
	}
	born := o.CreationTimestamp.Time
	if last := o.Status.LastOperation; last.State == mcm.MachineStateFailed && now.Before(born.Add(passing)) {
		return born.Add(passing)
	}
	switch o.Status.CurrentStatus.Phase {
	case "", mcm.MachinePending, mcm.MachineCrashLoopBackOff:
		if patience > 0 {
			return born.Add(patience)
		}
	}
	return time.Time{}
}

// kept says that nothing here may let it go: it is preserved, or somebody ranked it.
func (m Machine) kept(now time.Time) bool {
	o := m.Object
	if expiry := o.Status.CurrentStatus.PreserveExpiryTime; expiry != nil && expiry.After(now) {
		return true
	}
	n, err := strconv.Atoi(o.Annotations[machineutils.MachinePriority])
	return err == nil && n > 3
}

// allocatable is what one machine has for pods, nil where that is not known.
func (z *zone) allocatable() corev1.ResourceList {
	if z.Template == nil {
		return nil
	}
	return maps.Clone(z.Template.Allocatable)
}
