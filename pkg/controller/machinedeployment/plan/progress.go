// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/requeue"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Reasons of the condition Progressing.
const (
	newSetCreated   = "NewMachineSetCreated"
	newSetFound     = "FoundNewMachineSet"
	newSetUpdated   = "MachineSetUpdated"
	newSetAvailable = "NewMachineSetAvailable"
	newSetRefused   = "MachineSetCreateError"
	deadlinePassed  = "ProgressDeadlineExceeded"
	paused          = "DeploymentPaused"
	resumed         = "DeploymentResumed"
)

// occasion is what a status is written for.
type occasion int

const (
	// resting is every occasion without a step of the strategy. It says nothing about progress.
	resting occasion = iota
	rolling
)

// reportDeployment adds the status of a MachineDeployment if it differs from the stored one. When the
// newest MachineSet is created, the status only says so: the counts follow once it has machines.
func (p *Plan) reportDeployment(d *deployment, o occasion) {
	after := d.status()
	switch {
	case len(p.NewSets) > 0:
		after = *d.stored.Status.DeepCopy()
		d.noteFreeze(&after)
		d.setProgress(&after, mcm.ConditionTrue, newSetCreated, fmt.Sprintf("Created new machine set %q", p.NewSets[0].Name))
	case o == rolling:
		p.judgeProgress(d, &after)
	}
	events := d.reportReserve(&after)
	p.DeploymentStatus = d.change(after, events...)
}

// change returns the change of a status, nil if it is as it was.
func (d *deployment) change(after machine.MachineDeploymentStatus, events ...Event) *DeploymentStatusChange {
	if equality.Semantic.DeepEqual(after, d.stored.Status) {
		return nil
	}
	return &DeploymentStatusChange{after, events}
}

// reportInvalidDeployment adds a condition. The observed generation stays behind, so that the
// MachineDeployment does not look as if its spec was acted on.
func (p *Plan) reportInvalidDeployment(d *deployment, f Failure) {
	after := *d.stored.Status.DeepCopy()
	d.setCondition(&after, mcm.MachineDeploymentReplicaFailure, mcm.ConditionTrue, f.Reason, f.Message)
	p.DeploymentStatus = d.change(after, Event{nil, corev1.EventTypeWarning, f.Reason, f.Message})
}

// InvalidSpecOf returns what is wrong with the spec of a MachineDeployment, so that nothing is done about
// its machines; empty if nothing is.
func (p *Plan) InvalidSpecOf(d *machine.MachineDeployment) string {
	status := d.Status
	if p.DeploymentStatus != nil {
		status = p.DeploymentStatus.After
	}
	for _, c := range status.Conditions {
		if c.Status == mcm.ConditionTrue && (c.Reason == InvalidSpec || c.Reason == SelectingAll) {
			return c.Message
		}
	}
	return ""
}

// WithRefused returns the status of a MachineDeployment whose new MachineSet the API server refuses. It
// replaces the one in the plan.
func (v View) WithRefused(message string) *DeploymentStatusChange {
	d := &deployment{View: v, stored: v.Deployment}
	after := *d.stored.Status.DeepCopy()
	d.setProgress(&after, mcm.ConditionFalse, newSetRefused, message)
	return d.change(after, Event{nil, corev1.EventTypeWarning, newSetRefused, message})
}

// WithCollision returns the status of a MachineDeployment whose new MachineSet gets another name. It
// replaces the one in the plan.
func (v View) WithCollision() *DeploymentStatusChange {
	after := *v.Deployment.Status.DeepCopy()
	after.CollisionCount = ptr.To(ptr.Deref(after.CollisionCount, 0) + 1)
	return &DeploymentStatusChange{After: after}
}

// status counts the machines of all MachineSets.
func (d *deployment) status() machine.MachineDeploymentStatus {
	after := *d.stored.Status.DeepCopy()
	after.ObservedGeneration = d.stored.Generation
	after.FailedMachines = nil
	var n counts
	for _, s := range d.sets() {
		n.addAll(s.count())
		for _, failed := range s.failures() {
			after.FailedMachines = append(after.FailedMachines, &failed)
		}
	}
	after.Replicas, after.ReadyReplicas, after.AvailableReplicas = int32(n.all), int32(n.ready), int32(n.available)
	after.PreservedFailedReplicas = int32(n.preserved)
	after.UnavailableReplicas = max(0, sizes(d.sets())-after.AvailableReplicas)
	after.UpdatedReplicas = 0
	if d.newest != nil {
		after.UpdatedReplicas = int32(len(d.newest.machines))
	}
	d.omitSpares(&after)
	if least := d.replicas() - d.maxUnavailable() - after.PreservedFailedReplicas - d.unready(); after.AvailableReplicas >= least {
		d.setCondition(&after, mcm.MachineDeploymentAvailable, mcm.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability.")
	} else {
		d.setCondition(&after, mcm.MachineDeploymentAvailable, mcm.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
	}
	d.noteBegin(&after)
	d.copyFailure(&after)
	d.noteFreeze(&after)
	return after
}

// noteBegin begins the condition Progressing, when the MachineDeployment is paused or resumed, or has
// found its MachineSet.
func (d *deployment) noteBegin(after *machine.MachineDeploymentStatus) {
	reason := reasonOf(progressing(d.stored.Status))
	switch {
	case reason == deadlinePassed:
	case d.stored.Spec.Paused:
		d.setProgress(after, mcm.ConditionUnknown, paused, "Deployment is paused")
	case reason == paused:
		d.setProgress(after, mcm.ConditionUnknown, resumed, "Deployment is resumed")
	case reason == "" && d.newest != nil:
		d.setProgress(after, mcm.ConditionTrue, newSetFound, fmt.Sprintf("Found new machine set %q", d.newest.Object.Name))
	}
}

// judgeProgress sets the condition Progressing in a rollout. Once that is complete, the condition stays
// as it is until another one begins.
func (p *Plan) judgeProgress(d *deployment, after *machine.MachineDeploymentStatus) {
	current := progressing(*after)
	about := fmt.Sprintf("Machine Deployment %q", d.stored.Name)
	if d.newest != nil {
		about = fmt.Sprintf("MachineSet %q", d.newest.Object.Name)
	}
	switch reason := reasonOf(current); {
	case after.Replicas == after.UpdatedReplicas && reason == newSetAvailable:
	case d.isDone():
		d.setProgress(after, mcm.ConditionTrue, newSetAvailable, about+" has successfully progressed.")
	case d.hasProgressed(*after):
		d.setProgress(after, mcm.ConditionTrue, newSetUpdated, about+" is progressing.")
		progressing(*after).LastUpdateTime = metav1.NewTime(d.Now)
	case reason == newSetAvailable && d.newest != nil:
		d.setProgress(after, mcm.ConditionTrue, newSetFound, about+" is getting machines.")
	case reason != "" && reason != newSetAvailable && reason != deadlinePassed && d.stored.Spec.ProgressDeadlineSeconds != nil:
		deadline := current.LastUpdateTime.Add(time.Duration(*d.stored.Spec.ProgressDeadlineSeconds) * time.Second)
		if d.Now.After(deadline) {
			d.setProgress(after, mcm.ConditionFalse, deadlinePassed, about+" has timed out progressing.")
		} else {
			p.Again = requeue.Sooner(p.Again, deadline.Sub(d.Now)+time.Second)
		}
	}
}

// hasProgressed reports whether there are more new machines, more that serve, or fewer old ones than the
// stored status says.
func (d *deployment) hasProgressed(after machine.MachineDeploymentStatus) bool {
	was := d.stored.Status
	return after.UpdatedReplicas > was.UpdatedReplicas || after.Replicas-after.UpdatedReplicas < was.Replicas-was.UpdatedReplicas ||
		after.ReadyReplicas > was.ReadyReplicas || after.AvailableReplicas > was.AvailableReplicas
}

// setProgress sets the condition Progressing.
func (d *deployment) setProgress(status *machine.MachineDeploymentStatus, is mcm.ConditionStatus, reason, message string) {
	d.setCondition(status, mcm.MachineDeploymentProgressing, is, reason, message)
}

// copyFailure copies the condition ReplicaFailure of a MachineSet, of the newest first.
func (d *deployment) copyFailure(after *machine.MachineDeploymentStatus) {
	sets := d.sets()
	slices.Reverse(sets)
	for _, s := range sets {
		for _, c := range s.stored.Status.Conditions {
			if c.Type == mcm.MachineSetReplicaFailure {
				d.setCondition(after, mcm.MachineDeploymentReplicaFailure, c.Status, c.Reason, c.Message)
				return
			}
		}
	}
	after.Conditions = slices.DeleteFunc(after.Conditions, func(c mcm.MachineDeploymentCondition) bool { return c.Type == mcm.MachineDeploymentReplicaFailure })
}

// setCondition sets a condition, unless it has that status for that reason.
func (d *deployment) setCondition(status *machine.MachineDeploymentStatus, of mcm.MachineDeploymentConditionType, is mcm.ConditionStatus, reason, message string) {
	now := metav1.NewTime(d.Now)
	c := mcm.MachineDeploymentCondition{Type: of, Status: is, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now}
	i := slices.IndexFunc(status.Conditions, func(c mcm.MachineDeploymentCondition) bool { return c.Type == of })
	if i < 0 {
		status.Conditions = append(status.Conditions, c)
		return
	}
	was := status.Conditions[i]
	if was.Status == is && was.Reason == reason {
		return
	}
	if was.Status == is {
		c.LastTransitionTime = was.LastTransitionTime
	}
	status.Conditions[i] = c
}

// progressing returns the condition Progressing, nil if there is none.
func progressing(status machine.MachineDeploymentStatus) *mcm.MachineDeploymentCondition {
	i := slices.IndexFunc(status.Conditions, func(c mcm.MachineDeploymentCondition) bool { return c.Type == mcm.MachineDeploymentProgressing })
	if i < 0 {
		return nil
	}
	return &status.Conditions[i]
}

func reasonOf(c *mcm.MachineDeploymentCondition) string {
	if c == nil {
		return ""
	}
	return c.Reason
}

// isComplete reports whether a status says that all machines are those of the newest MachineSet, and
// available.
func (d *deployment) isComplete(s mcm.MachineDeploymentStatus) bool {
	r := d.replicas()
	return s.UpdatedReplicas == r && s.Replicas == r && s.AvailableReplicas == r && s.ObservedGeneration >= d.stored.Generation
}
