// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"strconv"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FreezeLabel is the label by which machine-controller-manager stops scaling an object.
const FreezeLabel = "freeze"

// Frozen reports whether machine-controller-manager has frozen a MachineSet or a MachineDeployment.
func Frozen(o metav1.Object) bool { return o.GetLabels()[FreezeLabel] == "True" }

// usual is the priority of a machine without an explicit one.
const usual = 3

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

// Condemned reports whether machine-controller-manager has noticed that the machine is named for
// deletion.
func Condemned(m *mcm.Machine) bool {
	return m.Annotations[machineutils.MachinePriority] == "1" && m.Annotations[machineutils.MarkedForDeletionTime] != ""
}

// Priority is the deletion priority: machines with a lower one are deleted first.
func Priority(m *mcm.Machine) int {
	if n, err := strconv.Atoi(m.Annotations[machineutils.MachinePriority]); err == nil {
		return n
	}
	return usual
}

// Failure returns why the machine cannot be created, if the error makes machine-controller-manager
// wait for minutes. Errors after which it retries within seconds do not count.
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
