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

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/pkg/signs"
)

// machinesIn are the machines of a MachineDeployment as they are shown.
func (r *reading) machinesIn(d *v1alpha1.MachineDeployment, objects []*mcm.Machine) []Machine {
	named := signs.Named(d)
	machines := make([]Machine, 0, len(objects))
	slices.SortFunc(objects, func(a, b *mcm.Machine) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, m := range objects {
		_, isNamed := named[m.Name]
		machines = append(machines, r.machine(m, isNamed))
	}
	slices.SortStableFunc(machines, func(a, b Machine) int {
		return slices.Index(States, a.State) - slices.Index(States, b.State)
	})
	return machines
}

func (r *reading) machine(o *mcm.Machine, named bool) Machine {
	_, failing := signs.Failure(o)
	node := o.Labels[mcm.NodeLabelKey]
	pods, strangers := r.guests(node)
	m := Machine{Name: o.Name, Node: node, Pods: pods}
	if r.PodsUnknown {
		m.Pods = -1
	}
	plain := reserve.Machine{
		Phase: o.Status.CurrentStatus.Phase, Failing: failing, Deleted: o.DeletionTimestamp != nil,
		Named: named || signs.Condemned(o),
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
