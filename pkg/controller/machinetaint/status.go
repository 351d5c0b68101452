// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"cmp"
	"fmt"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// Report is the content of the status.
type Report struct {
	// Reserve is the number of machines in reserve, Ready that of the ready ones.
	Reserve, Ready int32
	// Silent reports whether there is nothing to report: the status is then as it would be without
	// this controller.
	Silent  bool
	Reason  reserve.Reason
	Message string
}

// EventAfter returns the event for a report after another one, if any.
func (r Report) EventAfter(was *mcm.MachineDeploymentCondition) (kind, event string) {
	if was != nil && was.Reason == string(r.Reason) {
		return "", ""
	}
	now := reason.ReserveReady.Find(string(r.Reason))
	if now.Status == reason.True {
		return corev1.EventTypeNormal, now.Event
	}
	return corev1.EventTypeWarning, now.Event
}

// newReport describes the reserve, or what is wrong with its settings.
func newReport(v View, w desired, rule reserve.Plan, preparation func(Machine) Preparation) Report {
	s := rule.Summary
	r := Report{Reserve: pool.ClampInt32(s.Reserve), Ready: pool.ClampInt32(s.Ready), Reason: s.Reason, Message: s.Message}
	if n := rule.Applied.Counted; n > 0 {
		s.Message += fmt.Sprintf("; spec.replicas includes %d of them", n)
		r.Message = s.Message
	}
	draining, _ := v.draining()
	switch {
	case w.problem != nil:
		r.Reason, r.Message = w.problem.reason, w.problem.message+"; until this is fixed, the reserve stays as it is: "+s.Message
	case v.Unreachable != "" && s.Reason != reserve.NotWanted:
		r.Reason, r.Message = ClusterUnreachable, v.Unreachable+"; until it answers, no machine enters or leaves the reserve: "+s.Message
	case draining && s.Reserve > 0:
		r.Reason, r.Message = Draining, "the reserve is being removed: "+s.Message
	case s.Reason == reserve.NotWanted:
		r.Silent = true
	default:
		r.addIncomplete(v, preparation)
	}
	if w.requested != nil {
		r.Message += fmt.Sprintf("; Reserve %s requests %d", w.requested.Reserve, w.requested.Machines)
	}
	r.Message += w.conflictMessage(v)
	switch {
	case v.Pruned:
		r.Message += "; the API server does not store spec.excessReplicas: install the CustomResourceDefinitions of this release, or use the annotation"
	case v.WitnessPruned:
		r.Message += "; the API server does not store spec.reserveWitness, so spec.excessReplicas is restored even if you remove it: install the CustomResourceDefinitions of this release"
	}
	return r
}

// addIncomplete tells how many machines are ready by their phase and not for workload: they wait for taints to be
// removed, or are not prepared. They do not count as ready.
func (r *Report) addIncomplete(v View, preparation func(Machine) Preparation) {
	waiting, missing, taint, failure := int32(0), int32(0), "", ""
	for _, m := range v.Machines {
		if !m.Reserve() || !pool.Ready(m.Object.Status.CurrentStatus.Phase) {
			continue
		}
		if key := m.startupTaint(); key != "" {
			waiting, taint = waiting+1, cmp.Or(taint, key)
		} else if p := preparation(m); p.Missing {
			missing, failure = missing+1, cmp.Or(failure, p.Failure)
		}
	}
	complete := reason.ReserveReady.Find(string(r.Reason)).Status == reason.True
	switch {
	case complete && waiting > 0:
		r.Reason = reserve.NotReady
	case complete && failure != "":
		r.Reason = PreparationFailed
	case complete && missing > 0:
		r.Reason = Preparing
	}
	if waiting > 0 {
		r.Message += fmt.Sprintf("; %d of these still have the startup taint %s", waiting, taint)
	}
	if missing > 0 {
		r.Message += fmt.Sprintf("; %d of these are not prepared yet", missing)
	}
	if failure != "" {
		r.Message += ": " + failure
	}
	r.Ready = max(0, r.Ready-missing-waiting)
}

// selectorText returns the selector of the machines as the scale subresource shows it, empty if it
// is invalid. It stays in the status without a reserve: an autoscaler that scales replicas stops
// without it.
func selectorText(d *v1alpha1.MachineDeployment) string {
	s, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil || s.Empty() {
		return ""
	}
	return s.String()
}

// reported reports whether the status contains anything of this controller.
func reported(d *v1alpha1.MachineDeployment) bool {
	s := d.Status
	return s.ExcessReplicas != 0 || s.ReadyExcessReplicas != 0 || Condition(d) != nil
}

// Condition returns the condition ReserveReady of a MachineDeployment, nil if it has none.
func Condition(d *v1alpha1.MachineDeployment) *mcm.MachineDeploymentCondition {
	i := slices.IndexFunc(d.Status.Conditions, isOurs)
	if i < 0 {
		return nil
	}
	return &d.Status.Conditions[i]
}

func isOurs(c mcm.MachineDeploymentCondition) bool { return c.Type == v1alpha1.ReserveReady }

// NewStatus returns the status of a MachineDeployment with a report; the same status if nothing
// differs.
func NewStatus(d *v1alpha1.MachineDeployment, r Report, now metav1.Time) v1alpha1.MachineDeploymentStatus {
	s := *d.Status.DeepCopy()
	s.ExcessReplicas, s.ReadyExcessReplicas = r.Reserve, r.Ready
	if r.Silent {
		s.Conditions = slices.DeleteFunc(s.Conditions, isOurs)
		return s
	}
	s.Selector = selectorText(d)
	c := mcm.MachineDeploymentCondition{
		Type: v1alpha1.ReserveReady, Status: mcm.ConditionStatus(reason.ReserveReady.Find(string(r.Reason)).Status), Reason: string(r.Reason), Message: r.Message,
		LastUpdateTime: now, LastTransitionTime: now,
	}
	i := slices.IndexFunc(s.Conditions, isOurs)
	if i < 0 {
		s.Conditions = append(s.Conditions, c)
		return s
	}
	was := s.Conditions[i]
	if was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	if was.Status != c.Status || was.Reason != c.Reason || was.Message != c.Message {
		s.Conditions[i] = c
	}
	return s
}
