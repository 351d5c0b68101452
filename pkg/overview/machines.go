// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// machinesIn are the machines of a MachineDeployment as they are shown.
func (r *reading) machinesIn(d *v1alpha1.MachineDeployment, objects []*mcm.Machine) []Machine {
	named := namedBy(d)
	machines := make([]Machine, 0, len(objects))
	slices.SortFunc(objects, func(a, b *mcm.Machine) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, m := range objects {
		machines = append(machines, r.machine(m, named[m.Name]))
	}
	slices.SortStableFunc(machines, func(a, b Machine) int {
		return slices.Index(States, a.State) - slices.Index(States, b.State)
	})
	return machines
}

func (r *reading) machine(o *mcm.Machine, named bool) Machine {
	node := o.Labels[mcm.NodeLabelKey]
	pods, strangers := r.guests(node)
	m := Machine{Name: o.Name, Node: node, Pods: pods}
	if r.PodsUnknown {
		m.Pods = -1
	}
	plain := reserve.Machine{
		Phase: o.Status.CurrentStatus.Phase, Failing: failing(o.Status.LastOperation), Deleted: o.DeletionTimestamp != nil,
		Named: named || o.Annotations[machineutils.MachinePriority] == "1" && o.Annotations[machineutils.MarkedForDeletionTime] != "",
		// Where a pod runs that does not tolerate the taint, the machine serves, whatever its mark says.
		Reserve: o.Annotations[v1alpha1.ReserveAnnotation] != "" && strangers == 0,
	}
	m.State = stateOf(plain)
	m.Since, m.Why = since(o, m.State), r.why(o, plain, m.State)
	return m
}

func stateOf(m reserve.Machine) State {
	switch {
	case m.Leaving():
		return Leaving
	case m.Sick() || m.Failing:
		return Failed
	case m.Reserve && m.Ready():
		return ReserveReady
	case m.Reserve:
		return ReserveBooting
	case m.Ready():
		return Working
	}
	return Booting
}

func since(o *mcm.Machine, state State) time.Time {
	switch {
	case state == Leaving && o.DeletionTimestamp != nil:
		return o.DeletionTimestamp.Time
	case state == Failed && !o.Status.CurrentStatus.LastUpdateTime.IsZero():
		return o.Status.CurrentStatus.LastUpdateTime.Time
	case state == ReserveReady || state == ReserveBooting:
		if mark, err := v1alpha1.ParseReserve(o.Annotations[v1alpha1.ReserveAnnotation]); err == nil {
			return mark.Since
		}
	}
	return o.CreationTimestamp.Time
}

// leavingPatience is how long a machine may be on its way out before that is worth a look: draining may take long.
const leavingPatience = 30 * time.Minute

// why says what is wrong with a machine.
func (r *reading) why(o *mcm.Machine, m reserve.Machine, state State) string {
	last := o.Status.LastOperation
	switch {
	case state == Failed && m.Phase == mcm.MachineUnknown:
		return "its node does not answer"
	case state == Failed && last.Description != "":
		return brief(told(last))
	case state == Failed:
		return "phase " + string(m.Phase)
	case (state == Booting || state == ReserveBooting) && r.At.Sub(o.CreationTimestamp.Time) >= r.BootPatience:
		return fmt.Sprintf("boots for longer than %s", span(r.BootPatience))
	case state == Leaving && o.DeletionTimestamp != nil && r.At.Sub(o.DeletionTimestamp.Time) >= leavingPatience:
		return fmt.Sprintf("leaving for longer than %s", span(leavingPatience))
	}
	return ""
}

// told is what a provider said, without what machine-controller-manager puts around it.
func told(last mcm.LastOperation) string {
	_, message, wrapped := strings.Cut(last.Description, "message = [")
	if !wrapped {
		return last.Description
	}
	message, _, _ = strings.Cut(message, "]")
	if last.ErrorCode != "" {
		return last.ErrorCode + ": " + message
	}
	return message
}

// failing says that making the machine failed with an error after which machine-controller-manager waits for minutes.
func failing(last mcm.LastOperation) bool {
	if last.Type != mcm.MachineOperationCreate || last.State != mcm.MachineStateFailed {
		return false
	}
	switch codes.StringToCode(last.ErrorCode) {
	case codes.Unknown, codes.DeadlineExceeded, codes.Aborted, codes.Unavailable:
		return false
	}
	return true
}

// namedBy are the machines that a MachineDeployment names for deletion, as machine-controller-manager reads it.
func namedBy(d *v1alpha1.MachineDeployment) map[string]bool {
	names := map[string]bool{}
	for item := range strings.SplitSeq(d.Annotations[machineutils.TriggerDeletionByMCM], ",") {
		name, at, timed := strings.Cut(item, "~")
		if _, err := time.Parse(time.RFC3339, at); name != "" && (!timed || err == nil) {
			names[name] = true
		}
	}
	return names
}

// briefLength keeps what providers say to what fits beside other things.
const briefLength = 160

// brief is a message in one line that is not too long.
func brief(text string) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > briefLength {
		return string(line[:briefLength-3]) + "..."
	}
	return string(line)
}

// span is a duration in its largest units: 45s, 12m, 3h20m, 5d.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + "m"
	case d < 24*time.Hour && d%time.Hour >= time.Minute:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	case d < 24*time.Hour:
		return strconv.Itoa(int(d.Hours())) + "h"
	}
	return strconv.Itoa(int(d.Hours())/24) + "d"
}
