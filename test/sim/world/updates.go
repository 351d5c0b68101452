// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"errors"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// Updates does what machine-controllers and node agents do for updates in place: the Node gets a
// condition that says how far it is, the Machine copies that and changes its phase, and in the end the
// agent says how the update went.
type Updates struct {
	Waker *Waker
	// Time is how long an update takes.
	Time time.Duration
	// Fail means that updates fail. It changes while the Waker is locked.
	Fail bool
	// AtOnce means that the success of an update that had failed shows in the condition and the phase of the
	// Machine at the same time. Machine-controllers need two writes, but stock would not wait for the second.
	AtOnce bool
}

// Reconcile is its part of an Actor.
func (c *Updates) Reconcile(ctx context.Context, core kubernetes.Interface, ours versioned.Interface) (again time.Duration, err error) {
	list, err := ours.MachineV1alpha1().Machines(fixture.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, m := range list.Items {
		node, err := core.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || m.DeletionTimestamp != nil {
			continue
		}
		if err == nil {
			u := nodeUpdate{Updates: c, core: core, ours: ours, m: &m, node: node}
			var wait time.Duration
			wait, err = u.step(ctx)
			again = requeue.Sooner(again, wait)
		}
		errs = append(errs, err)
	}
	return again, errors.Join(errs...)
}

// nodeUpdate is one machine with its Node.
type nodeUpdate struct {
	*Updates
	core kubernetes.Interface
	ours versioned.Interface
	m    *mcmapi.Machine
	node *corev1.Node
}

// step takes the next step of an update.
func (u *nodeUpdate) step(ctx context.Context) (time.Duration, error) {
	condition := conditionOf(u.node.Status.Conditions)
	if own := conditionOf(u.m.Status.Conditions); condition != nil && (own == nil || own.Reason != condition.Reason) {
		u.m.Status.Conditions = []corev1.NodeCondition{*condition}
		if phase := u.m.Status.CurrentStatus.Phase; u.AtOnce && condition.Reason == mcmapi.UpdateSuccessful && phase == mcmapi.MachineInPlaceUpdateFailed {
			return 0, u.setPhase(ctx, mcmapi.MachineInPlaceUpdateSuccessful, mcmapi.MachineStateSuccessful)
		}
		return 0, u.writeMachine(ctx)
	}
	reason, result := "", u.node.Labels[mcmapi.LabelKeyNodeUpdateResult]
	if condition != nil {
		reason = condition.Reason
	}
	_, candidate := u.node.Labels[mcmapi.LabelKeyNodeCandidateForUpdate]
	_, selected := u.node.Labels[mcmapi.LabelKeyNodeSelectedForUpdate]
	switch {
	case u.m.Status.CurrentStatus.Phase == mcmapi.MachineInPlaceUpdateSuccessful:
		return 0, u.setPhase(ctx, mcmapi.MachineRunning, mcmapi.MachineStateSuccessful)
	case !candidate:
		return 0, nil
	case reason == "" || reason == mcmapi.UpdateSuccessful && result == "":
		return 0, u.setReason(ctx, mcmapi.CandidateForUpdate)
	case reason == mcmapi.CandidateForUpdate && selected:
		return 0, u.setReason(ctx, mcmapi.SelectedForUpdate)
	case reason == mcmapi.SelectedForUpdate:
		return 0, u.drain(ctx)
	case reason == mcmapi.DrainSuccessful:
		return 0, u.setReason(ctx, mcmapi.ReadyForUpdate)
	}
	return u.finish(ctx, condition, result)
}

func conditionOf(all []corev1.NodeCondition) *corev1.NodeCondition {
	for i := range all {
		if all[i].Type == mcmapi.NodeInPlaceUpdate {
			return &all[i]
		}
	}
	return nil
}

// drain cordons the Node and begins the update.
func (u *nodeUpdate) drain(ctx context.Context) error {
	if u.m.Status.CurrentStatus.Phase != mcmapi.MachineInPlaceUpdating {
		return u.setPhase(ctx, mcmapi.MachineInPlaceUpdating, mcmapi.MachineStateProcessing)
	}
	if !u.node.Spec.Unschedulable {
		u.node.Spec.Unschedulable = true
		_, err := u.core.CoreV1().Nodes().Update(ctx, u.node, metav1.UpdateOptions{})
		return err
	}
	return u.setReason(ctx, mcmapi.DrainSuccessful)
}

// finish waits for the agent's result and reports it.
func (u *nodeUpdate) finish(ctx context.Context, condition *corev1.NodeCondition, result string) (time.Duration, error) {
	fails := false
	u.Waker.Do(func() { fails = u.Fail })
	phase := u.m.Status.CurrentStatus.Phase
	switch reason := condition.Reason; {
	case reason == mcmapi.ReadyForUpdate && result == "":
		if left := time.Until(condition.LastTransitionTime.Add(u.Time)); left > 0 {
			return left, nil
		}
		return 0, u.setResult(ctx, fails)
	case result == mcmapi.LabelValueNodeUpdateFailed && !fails:
		return 0, u.setResult(ctx, false)
	case result == mcmapi.LabelValueNodeUpdateFailed && reason != mcmapi.UpdateFailed:
		return 0, u.setReason(ctx, mcmapi.UpdateFailed)
	case result == mcmapi.LabelValueNodeUpdateFailed && phase != mcmapi.MachineInPlaceUpdateFailed:
		return 0, u.setPhase(ctx, mcmapi.MachineInPlaceUpdateFailed, mcmapi.MachineStateFailed)
	case result == mcmapi.LabelValueNodeUpdateSuccessful && reason != mcmapi.UpdateSuccessful:
		return 0, u.setReason(ctx, mcmapi.UpdateSuccessful)
	case result == mcmapi.LabelValueNodeUpdateSuccessful && (phase == mcmapi.MachineInPlaceUpdating || phase == mcmapi.MachineInPlaceUpdateFailed):
		return 0, u.setPhase(ctx, mcmapi.MachineInPlaceUpdateSuccessful, mcmapi.MachineStateSuccessful)
	}
	return 0, nil
}

// setResult is what the node agent says.
func (u *nodeUpdate) setResult(ctx context.Context, failed bool) error {
	u.node.Labels = WithEntry(u.node.Labels, mcmapi.LabelKeyNodeUpdateResult, mcmapi.LabelValueNodeUpdateSuccessful)
	delete(u.node.Annotations, mcmapi.AnnotationKeyMachineUpdateFailedReason)
	if failed {
		u.node.Labels[mcmapi.LabelKeyNodeUpdateResult] = mcmapi.LabelValueNodeUpdateFailed
		u.node.Annotations = WithEntry(u.node.Annotations, mcmapi.AnnotationKeyMachineUpdateFailedReason, "no space")
	}
	_, err := u.core.CoreV1().Nodes().Update(ctx, u.node, metav1.UpdateOptions{})
	return err
}

// setReason sets the Node's condition. When an update begins, the critical components of the last one
// have long been ready.
func (u *nodeUpdate) setReason(ctx context.Context, reason string) error {
	if reason == mcmapi.CandidateForUpdate && dropTaint(u.node, machineutils.TaintNodeCriticalComponentsNotReady) {
		_, err := u.core.CoreV1().Nodes().Update(ctx, u.node, metav1.UpdateOptions{})
		return err
	}
	condition := corev1.NodeCondition{Type: mcmapi.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now()}
	if c := conditionOf(u.node.Status.Conditions); c != nil {
		*c = condition
	} else {
		u.node.Status.Conditions = append(u.node.Status.Conditions, condition)
	}
	_, err := u.core.CoreV1().Nodes().UpdateStatus(ctx, u.node, metav1.UpdateOptions{})
	return err
}

func dropTaint(node *corev1.Node, key string) (dropped bool) {
	var left []corev1.Taint
	for _, t := range node.Spec.Taints {
		if t.Key != key {
			left = append(left, t)
		}
	}
	dropped = len(left) < len(node.Spec.Taints)
	node.Spec.Taints = left
	return dropped
}

func (u *nodeUpdate) setPhase(ctx context.Context, phase mcmapi.MachinePhase, state mcmapi.MachineState) error {
	now := metav1.Now()
	u.m.Status.CurrentStatus = mcmapi.CurrentStatus{Phase: phase, LastUpdateTime: now, PreserveExpiryTime: u.m.Status.CurrentStatus.PreserveExpiryTime}
	u.m.Status.LastOperation = mcmapi.LastOperation{Description: string(phase), LastUpdateTime: now, State: state, Type: mcmapi.MachineOperationInPlaceUpdate}
	return u.writeMachine(ctx)
}

func (u *nodeUpdate) writeMachine(ctx context.Context) error {
	_, err := u.ours.MachineV1alpha1().Machines(u.m.Namespace).UpdateStatus(ctx, u.m, metav1.UpdateOptions{})
	return err
}
