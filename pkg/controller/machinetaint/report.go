// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/keep"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// report writes the status if it has changed, and records an event if the reason has changed. If the
// last one is too recent, it returns how long to wait.
func (c *Controller) report(ctx context.Context, d *v1alpha1.MachineDeployment, p keep.Plan) (wait time.Duration, err error) {
	now := c.clock.Now()
	s := keep.NewStatus(d, p.Report, metav1.NewTime(now))
	if equality.Semantic.DeepEqual(d.Status, c.withoutPruned(d, s)) {
		return 0, nil
	}
	if wait := c.states.reportIn(keyOf(d), now); wait > 0 {
		return wait, nil
	}
	answer, err := c.clients.Machine.MachineDeployments(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, statusPatch(d, s), metav1.PatchOptions{}, "status")
	c.metrics.countWrite("status", err)
	if err != nil {
		return 0, written.IgnoreNotFound(fmt.Errorf("write status of machine deployment %s: %w", d.Name, err))
	}
	c.states.noteReported(keyOf(d), now)
	c.countRedundant(d.ResourceVersion, answer.ResourceVersion)
	c.latest.deployments.Record(answer)
	if s.ExcessReplicas > 0 {
		c.numbersPruned.Store(answer.Status.ExcessReplicas == 0)
	}
	if s.Selector != "" {
		c.selectorPruned.Store(answer.Status.Selector == "")
	}
	if c.settings.Drain && p.Report.Silent {
		klog.FromContext(ctx).Info("The reserve is given up")
	}
	if kind, event := p.Report.EventAfter(keep.Condition(d)); event != "" {
		c.recorder.Event(v1alpha1.ReferenceTo(d), kind, event, p.Report.Message)
	}
	return 0, nil
}

// withoutPruned returns a status in which fields that the API server drops are as a
// MachineDeployment shows them.
func (c *Controller) withoutPruned(d *v1alpha1.MachineDeployment, s v1alpha1.MachineDeploymentStatus) v1alpha1.MachineDeploymentStatus {
	if c.numbersPruned.Load() {
		s.ExcessReplicas, s.ReadyExcessReplicas = d.Status.ExcessReplicas, d.Status.ReadyExcessReplicas
	}
	if c.selectorPruned.Load() {
		s.Selector = d.Status.Selector
	}
	return s
}

// noteReported records that the status was written.
func (s *states) noteReported(key string, now time.Time) {
	s.locked(key, func(one *state) { one.reportedAt = now })
}

// reportIn returns how long the status has to wait until it may be written again: not at all if the
// clock was set back meanwhile.
func (s *states) reportIn(key string, now time.Time) (wait time.Duration) {
	s.locked(key, func(one *state) {
		if since := now.Sub(one.reportedAt); since >= 0 && since < reportDelay {
			wait = reportDelay - since
		}
	})
	return wait
}

// Reasons of events about machines that enter or leave the reserve.
const (
	reserveHeld     = "ReserveHeld"
	reserveReleased = "ReserveReleased"
)

// namesShown is how many machines an event of a MachineDeployment names.
const namesShown = 10

// announce records a new state of a Machine as an event about it, where kubectl describe machine
// shows it.
func (c *Controller) announce(m *mcm.Machine, change keep.MachineChange) {
	if change.Mark == keep.Free && change.Why != "" {
		c.metrics.released.WithLabelValues(string(change.Why)).Inc()
	}
	if change.State == nil || *change.State == "" {
		return
	}
	reason := reserveReleased
	if strings.HasPrefix(*change.State, keep.HeldState) {
		reason = reserveHeld
	}
	c.recorder.Event(&corev1.ObjectReference{
		APIVersion: mcm.SchemeGroupVersion.String(), Kind: "Machine",
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
	}, corev1.EventTypeNormal, reason, *change.State)
}

// announceMoves records machines that entered or left the reserve together as one event about their
// MachineDeployment for each cause.
func (c *Controller) announceMoves(d *v1alpha1.MachineDeployment, moved []keep.MachineChange) {
	type cause struct {
		mark keep.Marking
		why  reserve.Why
	}
	names := map[cause][]string{}
	for _, m := range moved {
		if m.Mark != keep.Keep && m.Why != "" {
			names[cause{m.Mark, m.Why}] = append(names[cause{m.Mark, m.Why}], m.Name)
		}
	}
	for key, machines := range names {
		reason, did := reserveHeld, "entered the reserve"
		if key.mark == keep.Free {
			reason, did = reserveReleased, "left the reserve"
		}
		c.recorder.Eventf(v1alpha1.ReferenceTo(d), corev1.EventTypeNormal, reason, "%s %s (%s)", listNames(machines), did, key.why)
	}
}

// listNames names machines in order, and counts those that are too many to name.
func listNames(machines []string) string {
	slices.Sort(machines)
	if len(machines) == 1 {
		return "Machine " + machines[0]
	}
	text := "Machines " + strings.Join(machines[:min(len(machines), namesShown)], ", ")
	if more := len(machines) - namesShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (c *Controller) announceShrink(d *v1alpha1.MachineDeployment, was, is reserve.Applied) {
	if is.Excess < was.Excess {
		c.recorder.Eventf(v1alpha1.ReferenceTo(d), corev1.EventTypeNormal, "ReserveShrunk", "Applied excess reduced from %d to %d", was.Excess, is.Excess)
	}
}
