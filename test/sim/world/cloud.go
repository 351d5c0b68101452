// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// Finalizer is the one of machine controllers.
const Finalizer = "machine.sapcloud.io/machine-controller-manager"

// healthTimeout is how long a machine is Unknown before it is Failed.
const healthTimeout = 10 * time.Minute

// Cloud does what a machine-controller with its provider and the kubelets do: machines boot, a Node
// of the same name appears, they become sick and recover, they drain and are gone. It measures by
// the clock of the test, not by that of the server, which jumps.
//
// Its fields may change while the Waker is locked. The functions may be nil, and are called under
// the lock, except SyncNode.
type Cloud struct {
	Waker *Waker
	// Boot is how long a machine is Pending, Drain how long it is Terminating.
	Boot, Drain time.Duration
	// Settle is how long the Node of a machine that runs keeps the taint that every new one has.
	Settle time.Duration
	// Refused reports whether a machine cannot be created.
	Refused func(*mcm.Machine) bool
	// Unhealthy reports whether a machine's Node is not ready.
	Unhealthy func(*mcm.Machine) bool
	// BootBlocked reports whether a machine does not boot for now.
	BootBlocked func(*mcm.Machine) bool
	// ChangeNode changes the Node that a machine gets.
	ChangeNode func(*mcm.Machine, *corev1.Node)
	// SyncNode updates the Node of a machine that runs.
	SyncNode func(ctx context.Context, core kubernetes.Interface, m *mcm.Machine) error

	settling map[string]bool // Nodes with that taint
}

// notReady is the taint of a Node whose conditions have yet to be seen.
var notReady = corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}

// Reconcile is its part of an Actor. What a machine waits for is a time or a change of the Waker.
func (c *Cloud) Reconcile(ctx context.Context, core kubernetes.Interface, ours versioned.Interface) (again time.Duration, err error) {
	list, err := ours.MachineV1alpha1().Machines(fixture.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, m := range list.Items {
		wait, err := (&machineStep{Cloud: c, core: core, ours: ours, m: &m}).run(ctx)
		again, errs = requeue.Sooner(again, wait), append(errs, err)
	}
	return again, errors.Join(errs...)
}

// machineStep is the next step of a machine.
type machineStep struct {
	*Cloud
	core kubernetes.Interface
	ours versioned.Interface
	m    *mcm.Machine
}

// holds evaluates a condition under the lock.
func (s *machineStep) holds(condition func(*mcm.Machine) bool) (yes bool) {
	s.Waker.Do(func() { yes = condition != nil && condition(s.m) })
	return yes
}

// remaining returns how much is left of a time that begins with the machine's phase.
func (s *machineStep) remaining(d time.Duration) time.Duration {
	return max(0, time.Until(s.m.Status.CurrentStatus.LastUpdateTime.Add(d)))
}

// run takes the step, or returns when it is due.
func (s *machineStep) run(ctx context.Context) (wait time.Duration, err error) {
	m, phase := s.m, s.m.Status.CurrentStatus.Phase
	switch {
	case m.DeletionTimestamp != nil:
		return s.terminate(ctx)
	case !slices.Contains(m.Finalizers, Finalizer):
		m.Finalizers = append(m.Finalizers, Finalizer)
		return 0, s.update(ctx)
	case m.Spec.ProviderID == "":
		return 0, s.createInstance(ctx)
	case phase == "" || phase == mcm.MachineCrashLoopBackOff:
		return 0, s.report(ctx, mcm.MachinePending, mcm.MachineStateProcessing, "")
	case phase == mcm.MachinePending:
		return s.boot(ctx)
	case phase == mcm.MachineRunning && s.holds(s.Unhealthy):
		return 0, s.report(ctx, mcm.MachineUnknown, mcm.MachineStateProcessing, "")
	case phase == mcm.MachineUnknown && !s.holds(s.Unhealthy):
		return 0, s.report(ctx, mcm.MachineRunning, mcm.MachineStateSuccessful, "")
	case phase == mcm.MachineUnknown && s.remaining(healthTimeout) > 0:
		wait = s.remaining(healthTimeout)
	case phase == mcm.MachineUnknown:
		return 0, s.report(ctx, mcm.MachineFailed, mcm.MachineStateFailed, "")
	case phase == mcm.MachineFailed:
		return 0, nil
	case s.holds(s.settles):
		if wait = s.remaining(s.Settle); wait == 0 {
			return 0, s.settle(ctx)
		}
	}
	if s.SyncNode != nil {
		err = s.SyncNode(ctx, s.core, m)
	}
	return wait, err
}

func (c *Cloud) settles(m *mcm.Machine) bool { return c.settling[m.Name] }

// settle removes the taint of a new Node.
func (s *machineStep) settle(ctx context.Context) error {
	nodes := s.core.CoreV1().Nodes()
	node, err := nodes.Get(ctx, s.m.Name, metav1.GetOptions{})
	if err == nil {
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&notReady) })
		_, err = nodes.Update(ctx, node, metav1.UpdateOptions{})
	}
	if err == nil || apierrors.IsNotFound(err) {
		s.Waker.Do(func() { delete(s.settling, s.m.Name) })
		return nil
	}
	return err
}

// createInstance gives a machine an instance of the provider.
func (s *machineStep) createInstance(ctx context.Context) error {
	m := s.m
	switch refused := s.holds(s.Refused); {
	case refused && m.Status.CurrentStatus.Phase == mcm.MachineCrashLoopBackOff:
		return nil
	case refused:
		return s.report(ctx, mcm.MachineCrashLoopBackOff, mcm.MachineStateFailed, "ResourceExhausted")
	}
	m.Spec.ProviderID, m.Labels = "sim:///"+m.Name, WithEntry(m.Labels, mcm.NodeLabelKey, m.Name)
	if m.Annotations[machineutils.MachinePriority] == "" {
		m.Annotations = WithEntry(m.Annotations, machineutils.MachinePriority, "3")
	}
	return s.update(ctx)
}

func (s *machineStep) boot(ctx context.Context) (wait time.Duration, err error) {
	if left := s.remaining(s.Boot); left > 0 {
		return left, nil
	}
	nodes := s.core.CoreV1().Nodes()
	if _, err := nodes.Get(ctx, s.m.Name, metav1.GetOptions{}); err == nil {
		return 0, s.report(ctx, mcm.MachineRunning, mcm.MachineStateSuccessful, "")
	}
	if s.holds(s.BootBlocked) {
		return 0, nil
	}
	node := fixture.Node(s.m.Name)
	if s.ChangeNode != nil {
		s.Waker.Do(func() { s.ChangeNode(s.m, node) })
	}
	if s.Settle > 0 {
		node.Spec.Taints = append(slices.Clone(node.Spec.Taints), notReady)
		s.Waker.Do(func() { s.settling = WithEntry(s.settling, node.Name, true) })
	}
	_, err = nodes.Create(ctx, node, metav1.CreateOptions{})
	return 0, err
}

// terminate drains a machine and removes it with its Node.
func (s *machineStep) terminate(ctx context.Context) (wait time.Duration, err error) {
	if s.m.Status.CurrentStatus.Phase != mcm.MachineTerminating {
		return 0, s.report(ctx, mcm.MachineTerminating, mcm.MachineStateProcessing, "")
	}
	nodes, drain := s.core.CoreV1().Nodes(), time.Duration(0)
	s.Waker.Do(func() { drain = s.Drain })
	if left := s.remaining(drain); left > 0 {
		if _, err = nodes.Patch(ctx, s.m.Name, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{}); apierrors.IsNotFound(err) {
			err = nil
		}
		return left, err
	}
	if err := nodes.Delete(ctx, s.m.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return 0, err
	}
	s.m.Finalizers = nil
	return 0, s.update(ctx)
}

func (s *machineStep) update(ctx context.Context) error {
	_, err := s.ours.MachineV1alpha1().Machines(s.m.Namespace).Update(ctx, s.m, metav1.UpdateOptions{})
	return err
}

func (s *machineStep) report(ctx context.Context, phase mcm.MachinePhase, state mcm.MachineState, code string) error {
	operation := mcm.MachineOperationCreate
	if phase == mcm.MachineTerminating {
		operation = mcm.MachineOperationDelete
	}
	now := metav1.Now()
	s.m.Status.CurrentStatus = mcm.CurrentStatus{Phase: phase, LastUpdateTime: now}
	s.m.Status.LastOperation = mcm.LastOperation{Description: string(operation), LastUpdateTime: now, State: state, Type: operation, ErrorCode: code}
	_, err := s.ours.MachineV1alpha1().Machines(s.m.Namespace).UpdateStatus(ctx, s.m, metav1.UpdateOptions{})
	return err
}

// WithEntry returns a copy of a map with one more entry.
func WithEntry[V any](m map[string]V, key string, value V) map[string]V {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]V{}
	}
	m[key] = value
	return m
}
