// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"fmt"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// Reasons of events about machines that enter or leave the reserve.
const (
	reserveHeld     = "ReserveHeld"
	reserveReleased = "ReserveReleased"
)

// namesShown is how many machines an event of a MachineDeployment names.
const namesShown = 10

// announce records a new state of a Machine as an event about it, where kubectl describe machine
// shows it.
func (c *Controller) announce(m *mcm.Machine, change plan.MachineChange) {
	if change.Mark == plan.Free && change.Why != "" {
		c.metrics.released.WithLabelValues(string(change.Why)).Inc()
	}
	if change.State == nil || *change.State == "" {
		return
	}
	reason := reserveReleased
	if strings.HasPrefix(*change.State, plan.HeldState) {
		reason = reserveHeld
	}
	c.recorder.Event(&corev1.ObjectReference{
		APIVersion: mcm.SchemeGroupVersion.String(), Kind: "Machine",
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
	}, corev1.EventTypeNormal, reason, *change.State)
}

// announceMoves records machines that entered or left the reserve together as one event about their
// MachineDeployment for each cause.
func (c *Controller) announceMoves(d *v1alpha1.MachineDeployment, moved []plan.MachineChange) {
	type cause struct {
		mark plan.Marking
		why  reserve.Why
	}
	names := map[cause][]string{}
	for _, m := range moved {
		if m.Mark != plan.Keep && m.Why != "" {
			names[cause{m.Mark, m.Why}] = append(names[cause{m.Mark, m.Why}], m.Name)
		}
	}
	for key, machines := range names {
		reason, did := reserveHeld, "entered the reserve"
		if key.mark == plan.Free {
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
