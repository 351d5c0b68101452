// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"maps"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// grow lets each machine go on by one step, and pods find their places.
func (w *world) grow(context.Context) (moved bool, again time.Duration, err error) {
	for _, d := range w.deployments.all() {
		machines := w.machinesOf(d)
		for _, m := range machines {
			moved = w.step(d, m, machines) || moved
		}
		moved = w.bind(d) || moved
	}
	return moved, 0, nil
}

// step lets a machine go on; all are those of its MachineDeployment.
func (w *world) step(d *machine.MachineDeployment, m *mcm.Machine, all []*mcm.Machine) (moved bool) {
	key, phase := keyOf(m), m.Status.CurrentStatus.Phase
	if m.DeletionTimestamp != nil {
		if phase == mcm.MachineTerminating {
			w.bury(m)
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
		w.register(d, m, all)
	case mcm.MachineUnknown:
		w.note("Machine %s is Unknown; the forecast is that it stays so", key)
		return false
	default:
		return false
	}
	w.machines[key] = m
	return true
}

// register makes the Node of a machine that has booted, like those of its MachineDeployment that are there.
func (w *world) register(d *machine.MachineDeployment, m *mcm.Machine, all []*mcm.Machine) {
	name := m.Labels[mcm.NodeLabelKey]
	if !w.still.Target || name == "" || w.nodes["/"+name] != nil {
		return
	}
	template := m.Spec.NodeTemplateSpec
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations)}}
	for _, other := range all {
		if like := w.nodes["/"+other.Labels[mcm.NodeLabelKey]]; like != nil {
			node.Labels, node.Status.Allocatable, node.Status.Capacity = maps.Clone(like.Labels), like.Status.Allocatable, like.Status.Capacity
			break
		}
	}
	if class := w.classOf(d); class != nil && node.Status.Capacity == nil {
		node.Status.Capacity, node.Status.Allocatable = class.Capacity, class.Capacity
		metav1.SetMetaDataLabel(&node.ObjectMeta, corev1.LabelTopologyZone, class.Zone)
	}
	metav1.SetMetaDataLabel(&node.ObjectMeta, corev1.LabelHostname, name)
	node.UID, node.CreationTimestamp, node.Spec.Taints = types.UID(name), metav1.NewTime(w.now), template.Spec.Taints
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now)}}
	w.nodes[keyOf(node)] = node
}

func (w *world) classOf(d *machine.MachineDeployment) *mcm.NodeTemplate {
	for _, class := range w.still.Classes {
		if class.Namespace == d.Namespace && class.Name == d.Spec.Template.Spec.Class.Name {
			return class.NodeTemplate
		}
	}
	return nil
}

// bury takes a machine and its Node away. Its pods wait for another place.
func (w *world) bury(m *mcm.Machine) {
	delete(w.machines, keyOf(m))
	name := m.Labels[mcm.NodeLabelKey]
	if name == "" {
		return
	}
	delete(w.nodes, "/"+name)
	for key, pod := range w.pods {
		switch {
		case pod.Spec.NodeName != name:
		case staysHome(pod):
			delete(w.pods, key)
		default:
			pod = pod.DeepCopy()
			pod.Spec.NodeName = ""
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, evictedFrom, owner(m))
			w.pods[key] = pod
		}
	}
}

// evictedFrom says, on a pod of a forecast, of which MachineSet its machine was.
const evictedFrom = "forecast/evicted-from"

func owner(m *mcm.Machine) string {
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		return string(owner.UID)
	}
	return ""
}

// staysHome says that a pod belongs to its Node.
func staysHome(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOfNoCopy(pod)
	return mirror || owner != nil && owner.Kind == "DaemonSet" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
