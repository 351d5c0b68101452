// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"
	"strconv"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FreezeLabel is the label of an object that is not scaled.
const FreezeLabel = "freeze"

// Frozen reports whether a MachineSet or a MachineDeployment is frozen.
func Frozen(o metav1.Object) bool { return o.GetLabels()[FreezeLabel] == "True" }

// DefaultPriority is the deletion priority of a machine without an explicit one.
const DefaultPriority = 3

// Named returns the machines that a MachineDeployment names for deletion, with the time given for
// each, which is zero if there is none. It ignores names with a malformed time.
func Named(deployment metav1.Object) map[string]time.Time {
	names := map[string]time.Time{}
	text := deployment.GetAnnotations()[machineutils.TriggerDeletionByMCM]
	if text == "" {
		return names // the usual case, and some callers ask for each machine: an error from parsing the time costs more than the rest
	}
	for item := range strings.SplitSeq(text, ",") {
		name, when, timed := strings.Cut(item, "~")
		if at, err := time.Parse(time.RFC3339, when); name != "" && (!timed || err == nil) {
			names[name] = at
		}
	}
	return names
}

// Condemned reports whether it is written to a machine that it is named for deletion.
func Condemned(m *mcm.Machine) bool {
	return m.Annotations[machineutils.MachinePriority] == "1" && m.Annotations[machineutils.MarkedForDeletionTime] != ""
}

// Priority is the deletion priority: machines with a lower one are deleted first.
func Priority(m *mcm.Machine) int {
	if n, err := strconv.Atoi(m.Annotations[machineutils.MachinePriority]); err == nil && !HasLeftoverPriority(m) {
		return n
	}
	return DefaultPriority
}

// HasLeftoverPriority reports whether a machine in reserve has a deletion priority that versions before
// 0.1 wrote: it has no effect.
func HasLeftoverPriority(m *mcm.Machine) bool {
	text := m.Annotations[machineutils.MachinePriority]
	return Marked(m) && (text == "2" || text == "5")
}

// Failure returns why the machine cannot be created, if the error makes the machine controller wait for
// minutes. Errors after which it retries within seconds do not count.
func Failure(m *mcm.Machine) (code codes.Code, failed bool) {
	last := m.Status.LastOperation
	if last.Type != mcm.MachineOperationCreate || last.State != mcm.MachineStateFailed {
		return codes.OK, false
	}
	switch code := codes.StringToCode(last.ErrorCode); code {
	case codes.Unknown, codes.DeadlineExceeded, codes.Aborted, codes.Unavailable:
		return codes.OK, false
	default:
		return code, true
	}
}

// changedAt is the annotation with the time when a client that names machines last changed
// replicas.
const changedAt = machineutils.LastDeploymentReplicaChangeByScalerTime

// NameForDeletion returns the annotations that name further machines for deletion. Write them
// together with the number of replicas.
//
// Where the number falls, named machines are deleted first. If the number stays the same, they are
// deleted only if they were named no later than replicas were changed, so the time of the change is
// written, too. Otherwise, the time of naming is later, so that nothing is deleted before the number
// falls. A missing time counts as the present, so a past time is written. The time never goes back,
// whatever clock the previous writer had.
func NameForDeletion(deployment metav1.Object, machines []string, fewer bool, now time.Time) map[string]string {
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

// Overdue is how long a named machine may stay before it is named again.
const Overdue = 10 * time.Second

// Remind returns the annotation that has named machines deleted of a MachineDeployment that still exist although they were named long ago, because replicas were
// raised in the meantime. It is empty if there are none; due is then when the next one will be
// overdue, or zero.
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

// present returns the time in whole seconds, as annotations keep it, but not before the last
// change, so that machines that another clock named are deleted, too. It also returns that last
// change, zero if it cannot be read.
func present(deployment metav1.Object, now time.Time) (at, last time.Time) {
	at = now.UTC().Truncate(time.Second)
	last, _ = time.Parse(time.RFC3339, deployment.GetAnnotations()[changedAt])
	if last = last.UTC(); last.After(at) {
		at = last
	}
	return at, last
}
