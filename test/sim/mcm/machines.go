// SPDX-License-Identifier: Apache-2.0

package mcm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	machinefactory "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	finalizer = "machine.sapcloud.io/machine-controller-manager"
	priority  = "machinepriority.machine.sapcloud.io"
	// again is the delay before a failed step is repeated.
	again = time.Second
)

// Machines acts on Machines as a machine-controller and its cloud do: they boot, a Node of the same
// name appears, they run; when deleted, they terminate and disappear. It adopts every Machine of
// the namespace, and keeps no state of its own.
type Machines struct {
	// Boot is how long a machine takes from its creation to a ready Node; nil means no time.
	Boot func(*machinev1alpha1.Machine) time.Duration
	// Drain is how long a machine is Terminating; nil means no time.
	Drain func(*machinev1alpha1.Machine) time.Duration

	machines versioned.Interface
	nodes    kubernetes.Interface
	queue    workqueue.TypedDelayingInterface[string]
}

// Run acts until ctx ends.
func (m Machines) Run(ctx context.Context, control, target *rest.Config) error {
	var err error
	if m.machines, err = versioned.NewForConfig(control); err != nil {
		return fmt.Errorf("make machine client: %w", err)
	}
	if m.nodes, err = kubernetes.NewForConfig(target); err != nil {
		return fmt.Errorf("make target client: %w", err)
	}
	m.queue = workqueue.NewTypedDelayingQueue[string]()
	factory := machinefactory.NewSharedInformerFactoryWithOptions(m.machines, 0, machinefactory.WithNamespace(Namespace))
	add := func(o any) {
		if machine, ok := o.(*machinev1alpha1.Machine); ok {
			m.queue.Add(machine.Name)
		}
	}
	if _, err := factory.Machine().V1alpha1().Machines().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, o any) { add(o) },
	}); err != nil {
		return fmt.Errorf("watch machines: %w", err)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.runWorker(ctx)
	}()
	<-ctx.Done()
	m.queue.ShutDown()
	<-ended
	return nil
}

func (m Machines) runWorker(ctx context.Context) {
	for {
		name, quit := m.queue.Get()
		if quit {
			return
		}
		wait, err := m.nextStep(ctx, name)
		if err != nil {
			wait = again
		}
		m.queue.Done(name)
		if wait > 0 {
			m.queue.AddAfter(name, wait)
		}
	}
}

// nextStep takes a machine's next step, based on its live state, and returns when to look again.
func (m Machines) nextStep(ctx context.Context, name string) (time.Duration, error) {
	machine, err := m.machines.MachineV1alpha1().Machines(Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil
	case err != nil:
		return 0, err
	case machine.DeletionTimestamp != nil:
		return m.terminate(ctx, machine)
	case !slices.Contains(machine.Finalizers, finalizer):
		machine.Finalizers = append(machine.Finalizers, finalizer)
		return 0, m.update(ctx, machine)
	case machine.Status.CurrentStatus.Phase == "":
		return 0, m.report(ctx, machine, machinev1alpha1.MachinePending, machinev1alpha1.MachineOperationCreate)
	case machine.Status.CurrentStatus.Phase == machinev1alpha1.MachinePending:
		return m.bootMachine(ctx, machine)
	}
	return 0, nil
}

// bootMachine creates the machine's Node when it is due, and then sets the machine Running.
func (m Machines) bootMachine(ctx context.Context, machine *machinev1alpha1.Machine) (time.Duration, error) {
	if left := remaining(machine.CreationTimestamp, m.Boot, machine); left > 0 {
		return left, nil
	}
	_, err := m.nodes.CoreV1().Nodes().Create(ctx, newNode(machine), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return 0, err
	}
	if machine.Labels[machinev1alpha1.NodeLabelKey] == "" {
		machine.Labels = withEntry(machine.Labels, machinev1alpha1.NodeLabelKey, machine.Name)
		if machine.Annotations[priority] == "" {
			machine.Annotations = withEntry(machine.Annotations, priority, "3")
		}
		machine.Spec.ProviderID = "sim:///" + machine.Name
		return 0, m.update(ctx, machine)
	}
	return 0, m.report(ctx, machine, machinev1alpha1.MachineRunning, machinev1alpha1.MachineOperationCreate)
}

// terminate ends a machine: its phase, then its Node, then the Machine.
func (m Machines) terminate(ctx context.Context, machine *machinev1alpha1.Machine) (time.Duration, error) {
	if machine.Status.CurrentStatus.Phase != machinev1alpha1.MachineTerminating {
		return 0, m.report(ctx, machine, machinev1alpha1.MachineTerminating, machinev1alpha1.MachineOperationDelete)
	}
	if left := remaining(*machine.DeletionTimestamp, m.Drain, machine); left > 0 {
		return left, nil
	}
	err := m.nodes.CoreV1().Nodes().Delete(ctx, machine.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, err
	}
	machine.Finalizers = slices.DeleteFunc(machine.Finalizers, func(f string) bool { return f == finalizer })
	return 0, m.update(ctx, machine)
}

func (m Machines) update(ctx context.Context, machine *machinev1alpha1.Machine) error {
	_, err := m.machines.MachineV1alpha1().Machines(Namespace).Update(ctx, machine, metav1.UpdateOptions{})
	return err
}

func (m Machines) report(ctx context.Context, machine *machinev1alpha1.Machine, phase machinev1alpha1.MachinePhase, operation machinev1alpha1.MachineOperationType) error {
	state := machinev1alpha1.MachineStateProcessing
	if phase == machinev1alpha1.MachineRunning {
		state = machinev1alpha1.MachineStateSuccessful
	}
	now := metav1.Now()
	machine.Status.CurrentStatus = machinev1alpha1.CurrentStatus{Phase: phase, LastUpdateTime: now}
	machine.Status.LastOperation = machinev1alpha1.LastOperation{Description: string(operation), LastUpdateTime: now, State: state, Type: operation}
	_, err := m.machines.MachineV1alpha1().Machines(Namespace).UpdateStatus(ctx, machine, metav1.UpdateOptions{})
	return err
}

// remaining returns how much of a delay remains.
func remaining(since metav1.Time, delay func(*machinev1alpha1.Machine) time.Duration, machine *machinev1alpha1.Machine) time.Duration {
	if delay == nil {
		return 0
	}
	return time.Until(since.Add(delay(machine)))
}

func withEntry(m map[string]string, name, value string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	m[name] = value
	return m
}

// newNode returns a machine's Node, ready, with the content of the machine's template.
func newNode(machine *machinev1alpha1.Machine) *corev1.Node {
	template := machine.Spec.NodeTemplateSpec
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: machine.Name, Labels: template.Labels, Annotations: template.Annotations},
		Spec:       corev1.NodeSpec{ProviderID: "sim:///" + machine.Name, Taints: template.Spec.Taints},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastTransitionTime: metav1.Now(),
		}}},
	}
}
