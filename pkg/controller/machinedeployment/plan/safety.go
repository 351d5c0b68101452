// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/requeue"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// overshooting is the reason of the condition Frozen.
const overshooting = "OverShootingReplicaCount"

// leavingPatience is how long machines of a MachineSet that was scaled down may take to go until they are too
// many. Stock looks once a minute.
const leavingPatience = time.Minute

// guard freezes a MachineSet that has too many machines, whoever created them: it creates no more until
// enough of them have gone. Only the number of machines decides that. A label that people set, or remove,
// is put right, and their annotation makes the decision anew.
//
// The label is the truth, and is written first. The condition follows it.
func (s *set) guard() {
	s.frozen = frozenCondition(s.stored.Status.Conditions)
	if !s.isGuarded() {
		return
	}
	n := int64(s.count().labeled)
	upper, lower := s.limits()
	going, until := s.going()
	wasFrozen := pool.Frozen(s.stored)
	if s.takeUnfreeze() {
		wasFrozen, s.frozen = false, nil
	}
	switch {
	case n >= upper && n-going < upper && !wasFrozen:
		s.guardAgain = until
		s.thaw()
	case n >= upper && !wasFrozen:
		s.note("FrozeMachineSet", "Froze machine set %s: it has %d machines, and %d are the limit", s.Object.Name, n, upper)
		s.freeze(n, lower)
	case n > lower && wasFrozen:
		s.freeze(n, lower)
	default:
		s.thaw()
	}
}

// going returns how many machines have begun to leave a moment ago, and in how long that is no longer so for one of
// them. While machines are missing, others may be created in their place, so none counts.
func (s *set) going() (n int64, until time.Duration) {
	if s.missing() > 0 {
		return 0, 0
	}
	template := labels.SelectorFromSet(s.Object.Spec.Template.Labels)
	for _, m := range s.machines {
		if m.DeletionTimestamp == nil || !template.Matches(labels.Set(m.Labels)) {
			continue
		}
		if left := leavingPatience - s.Now.Sub(m.DeletionTimestamp.Time); left > 0 {
			n, until = n+1, requeue.Sooner(until, left)
		}
	}
	return n, until
}

// isGuarded reports whether a MachineSet has limits. It has none while it goes, or while nothing says
// how many machines its MachineDeployment is to have.
func (s *set) isGuarded() bool {
	d := s.Deployment
	return s.stored.DeletionTimestamp == nil && (d == nil || d.DeletionTimestamp == nil && d.Spec.Replicas >= 0)
}

// limits returns how many machines freeze a MachineSet, and how many thaw it: fewer, so that the same
// number does not do both in turn. What the MachineSet may have in a rollout does not freeze it, and
// thaws it in any case. Machines that are leaving count: they take up what the cloud grants, too.
func (s *set) limits() (upper, lower int64) {
	most := 2 * int64(s.stored.Spec.Replicas)
	if d := s.Deployment; d != nil {
		replicas := ptr.Deref(s.total, d.Spec.Replicas)
		// Without a surge, it is 0. A MachineSet may have more that has yet to be scaled down.
		surge, _ := intstr.GetScaledValueFromIntOrPercent(maxSurge(d), int(replicas), true)
		most = max(int64(replicas)+int64(surge), int64(s.stored.Spec.Replicas))
	}
	upper = most + int64(max(1, s.Settings.SafetyUp))
	return upper, max(most, upper-int64(max(1, s.Settings.SafetyDown)))
}

// maxSurge returns what the strategy of a MachineDeployment allows beyond replicas, nil if it says nothing.
// A block of another strategy counts, too: the strategy may have been changed in a rollout.
func maxSurge(d *machine.MachineDeployment) *intstr.IntOrString {
	switch strategy := d.Spec.Strategy; {
	case strategy.RollingUpdate != nil:
		return strategy.RollingUpdate.MaxSurge
	case strategy.InPlaceUpdate != nil:
		return strategy.InPlaceUpdate.MaxSurge
	}
	return nil
}

// takeUnfreeze removes the annotation by which people ask to unfreeze a MachineSet, and reports whether
// it was there. While its MachineDeployment has the annotation, the MachineSet gets it, and keeps it.
func (s *set) takeUnfreeze() bool {
	if d := s.Deployment; d != nil {
		if _, passes := d.Annotations[Unfreeze]; passes {
			s.Object.Annotations = with(s.Object.Annotations, Unfreeze, "True")
			return false
		}
	}
	s.Object.Annotations = without(s.Object.Annotations, Unfreeze)
	_, asked := s.stored.Annotations[Unfreeze]
	return asked
}

// freeze stops creations, and says since when and why.
func (s *set) freeze(n, lower int64) {
	s.Object.Labels = with(s.Object.Labels, pool.FreezeLabel, "True")
	if s.frozen == nil || s.frozen.Status != mcm.ConditionTrue {
		s.frozen = &mcm.MachineSetCondition{
			Type: mcm.MachineSetFrozen, Status: mcm.ConditionTrue, LastTransitionTime: metav1.NewTime(s.Now), Reason: overshooting,
			Message: fmt.Sprintf("There are %d machines. No more are created until there are %d or fewer", n, lower),
		}
	}
}

// thaw ends that a MachineSet is frozen.
func (s *set) thaw() {
	s.frozen = nil
	if pool.Frozen(s.stored) {
		s.Object.Labels = without(s.Object.Labels, pool.FreezeLabel)
		s.note("UnfrozeMachineSet", "Unfroze machine set %s", s.Object.Name)
	}
}

// note adds an event about the MachineSet, which is reported once that is changed.
func (s *set) note(reason, format string, args ...any) {
	s.events = append(s.events, Event{s.stored, corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...)})
}

// frozenCondition returns the condition Frozen, nil if there is none.
func frozenCondition(all []mcm.MachineSetCondition) *mcm.MachineSetCondition {
	if i := slices.IndexFunc(all, isFrozenCondition); i >= 0 {
		return &all[i]
	}
	return nil
}

func isFrozenCondition(c mcm.MachineSetCondition) bool { return c.Type == mcm.MachineSetFrozen }

// withFrozen returns conditions with the condition Frozen as it was decided.
func (s *set) withFrozen(all []mcm.MachineSetCondition) []mcm.MachineSetCondition {
	i := slices.IndexFunc(all, isFrozenCondition)
	switch {
	case s.frozen == nil:
		return slices.DeleteFunc(all, isFrozenCondition)
	case i >= 0:
		all[i] = *s.frozen
		return all
	}
	return append(all, *s.frozen)
}

// frozenSet returns a MachineSet that is frozen, nil if none is.
func (d *deployment) frozenSet() *set {
	sets := d.sets()
	if i := slices.IndexFunc(sets, func(s *set) bool { return s.frozen != nil }); i >= 0 {
		return sets[i]
	}
	return nil
}

// syncFreeze labels a MachineDeployment as frozen as long as one of its MachineSets is. The annotation by
// which people ask to unfreeze it goes once all MachineSets have it.
func (d *deployment) syncFreeze() {
	if d.passedUnfreeze() {
		d.Object.Annotations = without(d.Object.Annotations, Unfreeze)
	}
	switch {
	case d.frozenSet() != nil:
		d.Object.Labels = with(d.Object.Labels, pool.FreezeLabel, "True")
	case pool.Frozen(d.stored):
		d.Object.Labels = without(d.Object.Labels, pool.FreezeLabel)
	}
}

// passedUnfreeze reports whether all MachineSets have the annotation by which people ask to unfreeze the
// MachineDeployment.
func (d *deployment) passedUnfreeze() bool {
	_, asked := d.stored.Annotations[Unfreeze]
	return asked && !slices.ContainsFunc(d.sets(), func(s *set) bool {
		_, has := s.stored.Annotations[Unfreeze]
		return !has && s.stored.DeletionTimestamp == nil
	})
}

// noteFreeze sets the condition Frozen of a MachineDeployment, which is that of its MachineSet. When people
// ask to unfreeze it, that begins anew.
func (d *deployment) noteFreeze(after *machine.MachineDeploymentStatus) {
	s := d.frozenSet()
	if s == nil || d.passedUnfreeze() {
		after.Conditions = slices.DeleteFunc(after.Conditions, isFrozenDeployment)
	}
	if s != nil {
		d.setCondition(after, mcm.MachineDeploymentFrozen, mcm.ConditionTrue, s.frozen.Reason, s.frozen.Message)
	}
}

func isFrozenDeployment(c mcm.MachineDeploymentCondition) bool {
	return c.Type == mcm.MachineDeploymentFrozen
}
