// SPDX-License-Identifier: Apache-2.0

package machinedeployment

import (
	"fmt"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// Reasons of events about machines that enter or leave the reserve.
const (
	reserveHeld     = "ReserveHeld"
	reserveReleased = "ReserveReleased"
)

// namesShown is how many machines an event of a MachineDeployment names.
const namesShown = 10

// announceMoves records the machines that have entered or left the reserve: one event about each, where
// kubectl describe machine shows it, and one about the MachineDeployment for each cause.
func (a *application) announceMoves(moves []machinetaint.MachineChange) {
	type cause struct {
		mark machinetaint.Marking
		why  reserve.Why
	}
	names := map[cause][]string{}
	for _, c := range moves {
		m := a.writtenMachine(c.Name)
		if m == nil {
			continue
		}
		if c.State != nil && *c.State != "" {
			reason := reserveReleased
			if strings.HasPrefix(*c.State, machinetaint.HeldState) {
				reason = reserveHeld
			}
			a.recorder.Event(referenceTo("Machine", m), corev1.EventTypeNormal, reason, *c.State)
		}
		if c.Mark == machinetaint.Keep || c.Why == "" {
			continue
		}
		names[cause{c.Mark, c.Why}] = append(names[cause{c.Mark, c.Why}], c.Name)
		if c.Mark == machinetaint.Free {
			a.reserves.metrics.released.WithLabelValues(string(c.Why)).Inc()
		}
	}
	for of, machines := range names {
		reason, did := reserveHeld, "entered the reserve"
		if of.mark == machinetaint.Free {
			reason, did = reserveReleased, "left the reserve"
		}
		a.recorder.Eventf(referenceTo(deploymentKind, a.deployment), corev1.EventTypeNormal, reason, "%s %s (%s)", listNames(machines), did, of.why)
	}
}

// writtenMachine returns a machine that this plan has written; nil if it has not.
func (a *application) writtenMachine(name string) *mcm.Machine {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.machinesWritten[name]
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

func (a *application) recordEvents(events []plan.Event) {
	for _, e := range events {
		var about *corev1.ObjectReference
		if e.Set != nil {
			about = referenceTo(setKind, e.Set)
		} else {
			about = referenceTo(deploymentKind, a.deployment)
		}
		a.recorder.Event(about, e.Type, e.Reason, e.Message)
	}
}

// referenceTo returns a reference to an object, for events. Decoded objects lack their kind.
func referenceTo(of kind, o metav1.Object) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: mcm.SchemeGroupVersion.String(), Kind: string(of),
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
	}
}
