// SPDX-License-Identifier: Apache-2.0

package signs

import (
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// changedAt is the annotation with the time when a client that names machines last changed
// replicas.
const changedAt = machineutils.LastDeploymentReplicaChangeByScalerTime

// Name returns the annotations that name further machines for deletion, to be written together with the number of replicas.
//
// Named machines go first when machine-controller-manager has fewer machines to run. Where it has as many as before, it
// deletes them only if they were named no later than replicas were changed: then the time of the change is written, too.
// Otherwise they are named later than that. machine-controller-manager acts on the time before it acts on the number, and
// would make machines in the place of those it has deleted, and delete them again. Where there is no time it takes the
// present for it, so one is written that has passed. The time never goes back, whatever the clock of an earlier writer.
func Name(deployment metav1.Object, machines []string, fewer bool, now time.Time) map[string]string {
	is := deployment.GetAnnotations()
	to := map[string]string{}
	at, last := present(deployment, now)
	switch {
	case !fewer:
		to[changedAt] = at.Format(time.RFC3339)
	case last.IsZero():
		to[changedAt] = at.Add(-time.Second).Format(time.RFC3339)
	case !at.After(last):
		at = last.Add(time.Second)
	}
	var items []string
	if text := is[machineutils.TriggerDeletionByMCM]; text != "" {
		items = append(items, text)
	}
	for _, name := range slices.Sorted(slices.Values(machines)) {
		items = append(items, name+"~"+at.Format(time.RFC3339))
	}
	to[machineutils.TriggerDeletionByMCM] = strings.Join(items, ",")
	return to
}

// Overdue is how long machine-controller-manager may take to delete a named machine by itself.
const Overdue = 10 * time.Second

// Remind returns the annotation by which machine-controller-manager deletes machines of a MachineDeployment that are still
// there though they were named long enough ago, since replicas were raised meanwhile. It is empty where there are none; then
// due is when the next one will be overdue, or zero.
func Remind(deployment metav1.Object, there func(name string) bool, now time.Time) (to map[string]string, due time.Time) {
	at, last := present(deployment, now)
	for name, since := range Named(deployment) {
		switch overdue := since.Add(Overdue); {
		case !since.After(last) || !there(name):
		case !now.Before(overdue):
			to = map[string]string{changedAt: at.Format(time.RFC3339)}
		case due.IsZero() || overdue.Before(due):
			due = overdue
		}
	}
	return to, due
}

// present is the time in whole seconds, but not before the last change, so that machines named by another clock go, too; and
// that last change, zero where there is none that can be read.
func present(deployment metav1.Object, now time.Time) (at, last time.Time) {
	at = now.UTC().Truncate(time.Second)
	last, err := time.Parse(time.RFC3339, deployment.GetAnnotations()[changedAt])
	if err != nil {
		return at, time.Time{}
	}
	if last = last.UTC(); last.After(at) {
		at = last
	}
	return at, last
}
