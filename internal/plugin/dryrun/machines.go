// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"maps"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

func (w *world) remove(m *mcm.Machine) {
	m = m.DeepCopy()
	m.DeletionTimestamp = ptr.To(metav1.NewTime(w.now))
	m.Status.CurrentStatus.Phase = mcm.MachineTerminating
	w.machines[keyOf(m)] = m
}

// advanceMachines moves each machine forward by one step and binds pods.
func (w *world) advanceMachines(context.Context) (moved bool, again time.Duration, err error) {
	for _, d := range w.deployments.sorted() {
		read := sync.OnceValue(func() pool.Snapshot { return w.snapshot(d) })
		for _, m := range w.machinesOf(d) {
			moved = w.advanceMachine(d, m, read) || moved
		}
		moved = w.bindPods(d) || moved
	}
	return moved, 0, nil
}

// advanceMachine moves a machine forward; read reads its MachineDeployment.
func (w *world) advanceMachine(d *machine.MachineDeployment, m *mcm.Machine, read func() pool.Snapshot) (moved bool) {
	key, phase := keyOf(m), m.Status.CurrentStatus.Phase
	if m.DeletionTimestamp != nil {
		if phase == mcm.MachineTerminating {
			w.deleteMachine(m)
			return true
		}
		w.remove(m)
		return true
	}
	switch phase {
	case "":
		m = m.DeepCopy()
		if last, fails := w.unmade[keyOf(d)]; fails {
			m.Status.CurrentStatus.Phase, m.Status.LastOperation = mcm.MachineCrashLoopBackOff, last
			break
		}
		m.Status.CurrentStatus.Phase = mcm.MachinePending
		m.Spec.ProviderID = "forecast:///" + m.Name
		metav1.SetMetaDataLabel(&m.ObjectMeta, mcm.NodeLabelKey, m.Name)
		if m.Annotations[machineutils.MachinePriority] == "" {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, machineutils.MachinePriority, "3")
		}
	case mcm.MachinePending:
		if m.Spec.ProviderID == "" {
			return false
		}
		m = m.DeepCopy()
		m.Status.CurrentStatus = mcm.CurrentStatus{Phase: mcm.MachineRunning, LastUpdateTime: metav1.NewTime(w.now)}
		w.register(m, read)
	case mcm.MachineUnknown:
		w.addNote("Machine %s is Unknown; the prediction assumes that it does not recover", key)
		return false
	default:
		return false
	}
	w.machines[key] = m
	return true
}

// register creates the Node of a machine that has booted: like the Node that shows what machines of
// its MachineDeployment offer, otherwise as the MachineClass describes it, otherwise like any of
// them.
func (w *world) register(m *mcm.Machine, read func() pool.Snapshot) {
	name := m.Labels[mcm.NodeLabelKey]
	if !w.still.seesTarget() || name == "" || w.nodes["/"+name] != nil {
		return
	}
	template := m.Spec.NodeTemplateSpec
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations)}}
	s := read()
	if like := example(s); like != nil {
		node.Labels, node.Status.Allocatable, node.Status.Capacity = maps.Clone(like.Labels), like.Status.Allocatable, like.Status.Capacity
	} else if s.Allocatable != nil {
		node.Status.Capacity, node.Status.Allocatable = s.Allocatable, s.Allocatable
		metav1.SetMetaDataLabel(&node.ObjectMeta, corev1.LabelTopologyZone, s.Class.NodeTemplate.Zone)
	}
	metav1.SetMetaDataLabel(&node.ObjectMeta, corev1.LabelHostname, name)
	node.UID, node.CreationTimestamp, node.Spec.Taints = types.UID(name), metav1.NewTime(w.now), template.Spec.Taints
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now)}}
	w.nodes[keyOf(node)] = node
}

// example returns a Node like that of a new machine, nil if the MachineClass describes it, or
// nothing does.
func example(s pool.Snapshot) *corev1.Node {
	if s.Sample != nil || s.Allocatable != nil {
		return s.Sample
	}
	for _, m := range s.Machines {
		if m.Node != nil {
			return m.Node
		}
	}
	return nil
}

// deleteMachine removes a machine and its Node. Its pods wait for another node.
func (w *world) deleteMachine(m *mcm.Machine) {
	delete(w.machines, keyOf(m))
	name := m.Labels[mcm.NodeLabelKey]
	if name == "" {
		return
	}
	delete(w.nodes, "/"+name)
	for key, pod := range w.pods {
		switch {
		case pod.Spec.NodeName != name:
		case !pool.IsWorkload(pod):
			delete(w.pods, key)
		default:
			pod = pod.DeepCopy()
			pod.Spec.NodeName = ""
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, evictedFrom, owningSet(m))
			w.pods[key] = pod
		}
	}
}

// evictedFrom, on a pod of a prediction, names the MachineSet of its former machine.
const evictedFrom = "forecast/evicted-from"

func owningSet(m *mcm.Machine) string {
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		return string(owner.UID)
	}
	return ""
}
