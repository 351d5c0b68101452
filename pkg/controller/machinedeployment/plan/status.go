// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// report adds the status of a MachineSet if it differs from the stored one.
func (p *Plan) report(s *set) {
	if after := s.status(nil); s.differs(after) {
		p.Statuses = append(p.Statuses, StatusChange{Set: s.stored, After: after})
	}
}

// reportInvalid adds a condition. The observed generation stays behind, so that the MachineSet does
// not look as if its spec was acted on.
func (p *Plan) reportInvalid(s *set, f Failure) {
	after := withFailure(*s.stored.Status.DeepCopy(), &f, s.Now)
	if !equality.Semantic.DeepEqual(after, s.stored.Status) {
		after.LastOperation.LastUpdateTime = metav1.NewTime(s.Now)
		p.Statuses = append(p.Statuses, StatusChange{s.stored, after, []Event{{s.stored, corev1.EventTypeWarning, f.Reason, f.Message}}})
	}
}

// WithFailure returns the status of a MachineSet some of whose machines could not be created. It
// replaces the one in the plan.
func (v View) WithFailure(s Set, f Failure) (StatusChange, bool) {
	v = v.withTotal()
	selector, _ := validate(s.Object)
	claimed, _ := claim(s, selector, nil, nil)
	one := &set{View: v, stored: s.Object, Object: s.Object.DeepCopy(), machines: claimed}
	one.guard()
	after := one.status(&f)
	return StatusChange{Set: s.Object, After: after}, one.differs(after)
}

// status describes the claimed machines, those that are leaving included.
func (s *set) status(failure *Failure) mcm.MachineSetStatus {
	after := withFailure(*s.stored.Status.DeepCopy(), failure, s.Now)
	after.Conditions = s.withFrozen(after.Conditions)
	after.ObservedGeneration = s.stored.Generation
	after.LastOperation.LastUpdateTime = metav1.NewTime(s.Now)
	n := s.count()
	after.Replicas, after.FullyLabeledReplicas = int32(n.all), int32(n.labeled)
	after.AvailableReplicas, after.ReadyReplicas = int32(n.available), int32(n.ready)
	after.AutoPreserveFailedMachineCount, after.PreservedFailedReplicas = int32(n.autoPreserved), int32(n.preserved)
	after.FailedMachines = nil
	if failed := s.failures(); len(failed) > 0 {
		after.FailedMachines = &failed
	}
	return after
}

// count counts the claimed machines, those that are leaving included.
func (s *set) count() (n counts) {
	template := labels.SelectorFromSet(s.Object.Spec.Template.Labels)
	for _, m := range s.machines {
		n.all++
		n.labeled.add(template.Matches(labels.Set(m.Labels)))
		n.available.add(pool.Ready(m.Status.CurrentStatus.Phase))
		n.ready.add(m.Status.CurrentStatus.Phase == mcm.MachineRunning)
		n.autoPreserved.add(isAutoPreserved(m))
		n.preserved.add(isPreservedFailed(m))
	}
	return n
}

// failures are the machines that failed in what was last done to them, except for those that are
// preserved.
func (s *set) failures() (failed []mcm.MachineSummary) {
	for _, m := range s.machines {
		if !isPreservedFailed(m) && m.Status.LastOperation.State == mcm.MachineStateFailed {
			failed = append(failed, s.summary(m))
		}
	}
	return failed
}

func isPreservedFailed(m *mcm.Machine) bool {
	return isFailed(m) && m.Status.CurrentStatus.PreserveExpiryTime != nil
}

// counts are numbers of machines.
type counts struct{ all, labeled, available, ready, autoPreserved, preserved count }

type count int

func (c *count) add(one bool) {
	if one {
		*c++
	}
}

// addAll adds what the status of a MachineDeployment counts.
func (c *counts) addAll(other counts) {
	c.all += other.all
	c.available += other.available
	c.ready += other.ready
	c.preserved += other.preserved
}

func (s *set) summary(m *mcm.Machine) mcm.MachineSummary {
	return mcm.MachineSummary{Name: m.Name, ProviderID: m.Spec.ProviderID, LastOperation: m.Status.LastOperation, OwnerRef: s.Object.Name}
}

// withFailure returns a status whose condition ReplicaFailure reports a failure, or is gone.
func withFailure(status mcm.MachineSetStatus, f *Failure, now time.Time) mcm.MachineSetStatus {
	i := slices.IndexFunc(status.Conditions, func(c mcm.MachineSetCondition) bool { return c.Type == mcm.MachineSetReplicaFailure })
	if f == nil {
		if i >= 0 {
			status.Conditions = slices.Delete(status.Conditions, i, i+1)
		}
		return status
	}
	if i < 0 {
		i = len(status.Conditions)
		status.Conditions = append(status.Conditions, mcm.MachineSetCondition{Type: mcm.MachineSetReplicaFailure})
	}
	c := &status.Conditions[i]
	if c.Status != mcm.ConditionTrue {
		c.Status, c.LastTransitionTime = mcm.ConditionTrue, metav1.NewTime(now)
	}
	c.Reason, c.Message = f.Reason, f.Message
	return status
}

// differs reports whether a status differs from the stored one in more than its time.
func (s *set) differs(after mcm.MachineSetStatus) bool {
	after.LastOperation = s.stored.Status.LastOperation
	return !equality.Semantic.DeepEqual(s.stored.Status, after)
}
