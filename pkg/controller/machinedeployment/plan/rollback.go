// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/internal/requeue"
)

// Reasons of events about rollbacks.
const (
	rolledBack        = "DeploymentRollback"
	revisionNotFound  = "DeploymentRollbackRevisionNotFound"
	templateUnchanged = "DeploymentRollbackTemplateUnchanged"
)

// rollBack gives the MachineDeployment the template and the annotations of an earlier MachineSet, and
// removes the request. What follows from the template is for the next plan. The template that it had
// becomes a revision without machines first, if it is none yet, so that people can go back to it.
func (p *Plan) rollBack(d *deployment) {
	p.Again = requeue.Sooner(p.Again, soon)
	if d.newest == nil {
		p.NewSets = append(p.NewSets, d.newSet())
		p.reportDeployment(d, rolling)
		return
	}
	target := d.findRevision()
	if target != nil && isAvoided(target) {
		d.preferAgain(target)
		p.reportDeployment(d, resting)
		return
	}
	d.goBack(target)
}

// isAvoided reports whether the scheduler was asked to prefer other Nodes than those of a MachineSet.
func isAvoided(s *set) bool {
	_, is := s.stored.Annotations[PreferNoSchedule]
	return is
}

// goBack ends a rollback to a MachineSet, nil if it was not found.
func (d *deployment) goBack(target *set) {
	to := d.stored.Spec.RollbackTo.Revision
	d.Object.Spec.RollbackTo = nil
	switch {
	case target == nil && to == 0:
		d.warn(revisionNotFound, "No machine set has an earlier revision")
	case target == nil:
		d.warn(revisionNotFound, fmt.Sprintf("No machine set has revision %d", to))
	case sameMachines(target.stored.Spec.Template, d.stored.Spec.Template):
		d.warn(templateUnchanged, fmt.Sprintf("Machine set %s has the same template", target.stored.Name))
	default:
		d.takeTemplate(target)
		d.events = append(d.events, Event{nil, corev1.EventTypeNormal, rolledBack, fmt.Sprintf("Rolled back to revision %d, machine set %s", revisionOf(target.Object), target.stored.Name)})
	}
}

func (d *deployment) warn(reason, message string) {
	d.events = append(d.events, Event{nil, corev1.EventTypeWarning, reason, message})
}

// findRevision returns the MachineSet with the revision to go back to, nil if none has it. Revision 0 is
// the second highest one.
func (d *deployment) findRevision() *set {
	to, all := d.stored.Spec.RollbackTo.Revision, d.sets()
	if to == 0 {
		to = lastRevision(all)
	}
	i := slices.IndexFunc(all, func(s *set) bool { return to != 0 && revisionOf(s.Object) == to })
	if i < 0 {
		return nil
	}
	return all[i]
}

// lastRevision returns the second highest revision; 0 if there is none.
func lastRevision(all []*set) int64 {
	revisions := []int64{0}
	for _, s := range all {
		revisions = append(revisions, revisionOf(s.Object))
	}
	slices.Sort(revisions)
	return revisions[len(revisions)-2]
}

// takeTemplate gives the MachineDeployment what is that of a MachineSet.
func (d *deployment) takeTemplate(s *set) {
	template := s.stored.Spec.Template.DeepCopy()
	template.Labels = without(template.Labels, hashLabel)
	d.Object.Spec.Template = *template
	isOwn := func(key, _ string) bool { return slices.Contains(ownAnnotations, key) }
	annotations := maps.Clone(s.stored.Annotations)
	maps.DeleteFunc(annotations, isOwn)
	for key, value := range d.Object.Annotations {
		if isOwn(key, value) {
			annotations = with(annotations, key, value)
		}
	}
	d.Object.Annotations = annotations
}
