// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Conditions of a MachineDeployment that this controller writes.
const (
	// ConditionBalanced reports whether replicas are balanced across similar MachineDeployments. It
	// exists only with a mode.
	ConditionBalanced mcm.MachineDeploymentConditionType = "ZonesBalanced"
	// ConditionShare reports how the excess of the pool is spread. It exists only if the pool has
	// one.
	ConditionShare mcm.MachineDeploymentConditionType = "PoolExcessSpread"
	// ConditionRights reports which rights the process lacks. It exists only while some are missing
	// and a reserve is requested.
	ConditionRights mcm.MachineDeploymentConditionType = "RightsGranted"
)

// ReasonUnreachable: the target cluster does not answer, so nothing is decided that depends on pods.
const ReasonUnreachable = "ClusterUnreachable"

// Reasons of events.
const (
	// EventMoved: replicas moved from one MachineDeployment to others.
	EventMoved = "BalanceMoved"
	// EventBlocked: replicas are uneven, and a person must act.
	EventBlocked = "BalanceBlocked"
)

// Condition is a desired condition.
type Condition struct {
	Type            mcm.MachineDeploymentConditionType
	Status          bool
	Reason, Message string
}

// Event is an event to record.
type Event struct{ Reason, Message string }

// verdict is the content of a condition; the zero value means no condition.
type verdict struct {
	status          bool
	reason, message string
}

func falseVerdict(reason, message string) verdict { return verdict{reason: reason, message: message} }

// conditions returns the desired conditions of a member.
func (r *round) conditions(z *zone) []Condition {
	var all []Condition
	if z.balanced() || z.verdict.reason != "" {
		v := z.verdict
		if v.reason == "" {
			v = verdict{status: true, reason: "Even", message: "replicas are balanced across similar MachineDeployments"}
		}
		all = append(all, Condition{ConditionBalanced, v.status, v.reason, v.message})
	}
	v := z.spread
	if len(z.errors) > 0 {
		v = falseVerdict("Invalid", strings.Join(z.errors, "; "))
	}
	if v.reason != "" {
		all = append(all, Condition{ConditionShare, v.status, v.reason, v.message})
	}
	if len(r.Missing) > 0 && z.reserves() {
		all = append(all, Condition{ConditionRights, false, "Forbidden", strings.Join(r.Missing, ". ")})
	}
	return all
}

// NewConditions returns the conditions of a status with ours, and whether they differ. It does not
// change others.
func NewConditions(was []v1alpha1.MachineDeploymentCondition, wanted []Condition, now metav1.Time) ([]v1alpha1.MachineDeploymentCondition, bool) {
	is, differs := []v1alpha1.MachineDeploymentCondition{}, false
	for _, c := range was {
		if c.Type != ConditionBalanced && c.Type != ConditionShare && c.Type != ConditionRights {
			is = append(is, c)
			continue
		}
		at := slices.IndexFunc(wanted, func(w Condition) bool { return w.Type == c.Type })
		if at < 0 {
			differs = true
			continue
		}
		is = append(is, wanted[at].replace(c, now))
		differs = differs || is[len(is)-1] != c
	}
	for _, w := range wanted {
		if !slices.ContainsFunc(was, func(c v1alpha1.MachineDeploymentCondition) bool { return c.Type == w.Type }) {
			is, differs = append(is, w.replace(v1alpha1.MachineDeploymentCondition{Type: w.Type}, now)), true
		}
	}
	return is, differs
}

// replace returns the condition that replaces an older one, or the older one if nothing changes.
func (c Condition) replace(was v1alpha1.MachineDeploymentCondition, now metav1.Time) v1alpha1.MachineDeploymentCondition {
	status := mcm.ConditionFalse
	if c.Status {
		status = mcm.ConditionTrue
	}
	if was.Status == status && was.Reason == c.Reason && was.Message == c.Message {
		return was
	}
	is := v1alpha1.MachineDeploymentCondition{Type: c.Type, Status: status, Reason: c.Reason, Message: c.Message, LastUpdateTime: now, LastTransitionTime: was.LastTransitionTime}
	if was.Status != status {
		is.LastTransitionTime = now
	}
	return is
}
