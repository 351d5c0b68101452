// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"maps"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/evenkeel/evenkeel/internal/fixture"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
)

// Finalizer is the one of machine controllers.
const Finalizer = "machine.sapcloud.io/machine-controller-manager"

// unhealthy is how long a machine is Unknown before it is Failed.
const unhealthy = 10 * time.Minute

// Cloud does what a machine-controller with its provider and the kubelets do: machines boot, a Node
// of the same name appears, they become sick and recover, they drain and are gone. It measures by
// the clock of the test, not by that of the server, which jumps.
//
// Its fields may change while the Pulse is locked. The functions may be nil, and are called under
// the lock, except Keep.
type Cloud struct {
	Pulse *Pulse
	// Boot is how long a machine is Pending, Drain how long it is Terminating.
	Boot, Drain time.Duration
	// Refused reports whether a machine cannot be created.
	Refused func(*mcm.Machine) bool
	// Sick reports whether a machine's Node is not ready.
	Sick func(*mcm.Machine) bool
	// Late reports whether a machine does not boot for now.
	Late func(*mcm.Machine) bool
	// Node changes the Node that a machine gets.
	Node func(*mcm.Machine, *corev1.Node)
	// Keep keeps the Node of a machine that runs.
	Keep func(ctx context.Context, core kubernetes.Interface, m *mcm.Machine) error
}

// Look is its part of an Actor.
func (c *Cloud) Look(ctx context.Context, core kubernetes.Interface, ours versioned.Interface) (again time.Duration, err error) {
	list, err := ours.MachineV1alpha1().Machines(fixture.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	for _, m := range list.Items {
		failed := (&machineStep{Cloud: c, core: core, ours: ours, m: &m}).take(ctx) != nil
		if failed || m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase != mcm.MachineRunning {
			again = c.pause()
		}
	}
	return again, nil
}

// pause is how long to wait for machines that may change though nothing is written: less often the
// longer that is, and in the end never.
func (c *Cloud) pause() time.Duration {
	switch still := c.Pulse.Still(); {
	case still > 15*time.Minute:
		return 0
	case still > max(time.Minute, c.Boot, c.Drain):
		return 30 * time.Second
	}
	return time.Second
}

// machineStep is the next step of a machine.
type machineStep struct {
	*Cloud
	core kubernetes.Interface
	ours versioned.Interface
	m    *mcm.Machine
}

// is evaluates a condition under the lock.
func (s *machineStep) is(condition func(*mcm.Machine) bool) (yes bool) {
	s.Pulse.Do(func() { yes = condition != nil && condition(s.m) })
	return yes
}

// lasted reports whether the machine has had its phase for this time.
func (s *machineStep) lasted(d time.Duration) bool {
	return time.Since(s.m.Status.CurrentStatus.LastUpdateTime.Time) >= d
}

func (s *machineStep) take(ctx context.Context) error {
	m, phase := s.m, s.m.Status.CurrentStatus.Phase
	switch {
	case m.DeletionTimestamp != nil:
		return s.end(ctx)
	case !slices.Contains(m.Finalizers, Finalizer):
		m.Finalizers = append(m.Finalizers, Finalizer)
		return s.update(ctx)
	case m.Spec.ProviderID == "" && s.is(s.Refused):
		if phase == mcm.MachineCrashLoopBackOff {
			return nil
		}
		return s.report(ctx, mcm.MachineCrashLoopBackOff, mcm.MachineStateFailed, "ResourceExhausted")
	case m.Spec.ProviderID == "":
		m.Spec.ProviderID, m.Labels = "sim:///"+m.Name, With(m.Labels, mcm.NodeLabelKey, m.Name)
		if m.Annotations["machinepriority.machine.sapcloud.io"] == "" {
			m.Annotations = With(m.Annotations, "machinepriority.machine.sapcloud.io", "3")
		}
		return s.update(ctx)
	case phase == "" || phase == mcm.MachineCrashLoopBackOff:
		return s.report(ctx, mcm.MachinePending, mcm.MachineStateProcessing, "")
	case phase == mcm.MachinePending:
		return s.boot(ctx)
	case phase == mcm.MachineRunning && s.is(s.Sick):
		return s.report(ctx, mcm.MachineUnknown, mcm.MachineStateProcessing, "")
	case phase == mcm.MachineUnknown && !s.is(s.Sick):
		return s.report(ctx, mcm.MachineRunning, mcm.MachineStateSuccessful, "")
	case phase == mcm.MachineUnknown && s.lasted(unhealthy):
		return s.report(ctx, mcm.MachineFailed, mcm.MachineStateFailed, "")
	case phase == mcm.MachineFailed || s.Keep == nil:
		return nil
	}
	return s.Keep(ctx, s.core, m)
}

func (s *machineStep) boot(ctx context.Context) error {
	if _, err := s.core.CoreV1().Nodes().Get(ctx, s.m.Name, metav1.GetOptions{}); err == nil {
		return s.report(ctx, mcm.MachineRunning, mcm.MachineStateSuccessful, "")
	}
	if !s.lasted(s.Boot) || s.is(s.Late) {
		return nil
	}
	node := fixture.Node(s.m.Name)
	if s.Node != nil {
		s.Pulse.Do(func() { s.Node(s.m, node) })
	}
	_, err := s.core.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	return err
}

// end drains a machine and removes it with its Node.
func (s *machineStep) end(ctx context.Context) error {
	if s.m.Status.CurrentStatus.Phase != mcm.MachineTerminating {
		return s.report(ctx, mcm.MachineTerminating, mcm.MachineStateProcessing, "")
	}
	nodes, drain := s.core.CoreV1().Nodes(), time.Duration(0)
	s.Pulse.Do(func() { drain = s.Drain })
	if !s.lasted(drain) {
		_, err := nodes.Patch(ctx, s.m.Name, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
		return err
	}
	if err := nodes.Delete(ctx, s.m.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	s.m.Finalizers = nil
	return s.update(ctx)
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

// With returns a copy of a map with one more entry.
func With(m map[string]string, key, value string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}
