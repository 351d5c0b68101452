// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// machines returns the machines of a MachineDeployment as they are shown.
func (r *reading) machines(s pool.Snapshot) []Machine {
	all := make([]Machine, 0, len(s.Machines))
	for _, m := range slices.SortedStableFunc(slices.Values(s.Machines), func(a, b pool.Machine) int {
		return a.Object.CreationTimestamp.Compare(b.Object.CreationTimestamp.Time)
	}) {
		all = append(all, r.machine(m))
	}
	slices.SortStableFunc(all, func(a, b Machine) int {
		return slices.Index(States, a.State) - slices.Index(States, b.State)
	})
	return all
}

func (r *reading) machine(m pool.Machine) Machine {
	o, state := m.Object, stateOf(m)
	shown := Machine{Name: o.Name, Node: o.Labels[mcm.NodeLabelKey], State: state, Pods: m.Pods, Since: stateStart(o, state), Why: r.machineProblem(o, state)}
	if m.Reserve() {
		shown.Dedicated, shown.Images = o.Annotations[v1alpha1.DedicatedAnnotation], imagesText(r.preparers[shown.Node])
	}
	if r.PodsUnknown || m.Unseen {
		shown.Pods = -1
	}
	return shown
}

func stateOf(m pool.Machine) State {
	_, failing := pool.Failure(m.Object)
	switch {
	case m.Leaving():
		return Leaving
	case pool.Unhealthy(m.Phase()) || failing:
		return Failed
	case m.Reserve() && m.Ready():
		return ReserveReady
	case m.Reserve():
		return ReserveBooting
	case m.Ready():
		return Working
	}
	return Booting
}

// stateStart returns when the machine entered its state.
func stateStart(o *mcm.Machine, state State) time.Time {
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

// leavingPatience is how long a machine may be leaving before that counts as a problem. Draining
// may take long.
const leavingPatience = 30 * time.Minute

// machineProblem returns what is wrong with a machine.
func (r *reading) machineProblem(o *mcm.Machine, state State) string {
	last, phase := o.Status.LastOperation, o.Status.CurrentStatus.Phase
	switch {
	case state == Failed && phase == mcm.MachineUnknown:
		return "its Node does not respond"
	case state == Failed && last.Description != "":
		return oneLine(providerMessage(last))
	case state == Failed:
		return "phase " + string(phase)
	case (state == Booting || state == ReserveBooting) && !pool.UpdatedInPlace(phase) && r.At.Sub(o.CreationTimestamp.Time) >= r.BootPatience:
		return fmt.Sprintf("has been booting for more than %s", formatDuration(r.BootPatience))
	case state == Leaving && o.DeletionTimestamp != nil && r.At.Sub(o.DeletionTimestamp.Time) >= leavingPatience:
		return fmt.Sprintf("has been leaving for more than %s", formatDuration(leavingPatience))
	}
	return ""
}

// providerMessage returns the message of a provider, without the text that
// machine-controller-manager adds around it.
func providerMessage(last mcm.LastOperation) string {
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

// briefLength limits providers' messages so that they fit beside other text.
const briefLength = 160

// oneLine shortens a message to one line of limited length.
func oneLine(text string) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > briefLength {
		return string(line[:briefLength-3]) + "..."
	}
	return string(line)
}

// formatDuration formats a duration in its largest units: 45s, 12m, 3h20m, 5d.
func formatDuration(d time.Duration) string {
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
