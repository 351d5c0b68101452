// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// KwokAnnotation with the value KwokFake makes kwok serve a Node: Lease, readiness and pods.
	// With KwokHeld, the driver serves the Node itself while a fault lasts.
	KwokAnnotation = "kwok.x-k8s.io/node"
	KwokFake       = "fake"
	KwokHeld       = "held"

	// reasonHealthy and reasonFault are the reasons of the conditions that the driver writes.
	reasonHealthy = "VirtualMachine"
	reasonFault   = "VirtualFault"

	// kubeletVersion is not a real release, but parsers of versions accept it.
	kubeletVersion = "v0.0.0-virtual"
)

// healthy contains the status of each condition that a kubelet reports if all is well.
var healthy = []corev1.NodeCondition{
	{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
	{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
	{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse},
	{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse},
	{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
}

// nodeOf returns the Node with which a machine registers. Its taints are those of the Machine's
// node template now.
func nodeOf(v VM, taints []corev1.Taint, f Fault, now time.Time) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        v.Name,
			Labels:      v.Labels(),
			Annotations: map[string]string{KwokAnnotation: KwokFake},
		},
		Spec: corev1.NodeSpec{ProviderID: v.ProviderID()},
		Status: corev1.NodeStatus{
			Capacity:    v.Hardware.Capacity,
			Allocatable: v.Hardware.Allocatable,
			Conditions:  conditionsAtFirst(f, now),
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: v.Name}},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: v.Hardware.Architecture, OperatingSystem: "linux", KubeletVersion: kubeletVersion,
			},
		},
	}
	node.Spec.Taints = v.TaintsWith(taints)
	if v.Hardware.TaintsAtRegistration && len(taints) > 0 {
		recordTaints(node, distinctTaints(taints))
	}
	return node
}

// TaintsWith returns the taints with which the Node registers, if the Machine's node template has
// these.
func (v VM) TaintsWith(template []corev1.Taint) []corev1.Taint {
	var taints []corev1.Taint
	if v.Hardware.TaintsAtRegistration {
		taints = distinctTaints(template)
	}
	if startup := v.Hardware.StartupTaint; startup != nil && !slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(startup) }) {
		taints = append(taints, *startup)
	}
	return taints
}

// Labels returns the labels with which the Node registers.
func (v VM) Labels() map[string]string {
	return map[string]string{
		corev1.LabelHostname:           v.Name,
		corev1.LabelOSStable:           "linux",
		corev1.LabelArchStable:         v.Hardware.Architecture,
		corev1.LabelTopologyZone:       v.Hardware.Zone,
		corev1.LabelTopologyRegion:     v.Hardware.Region,
		corev1.LabelInstanceTypeStable: v.Hardware.InstanceType,
	}
}

// distinctTaints returns taints that API servers accept: a key with an effect only once. As for MCM, the
// last one counts.
func distinctTaints(taints []corev1.Taint) (distinct []corev1.Taint) {
	for _, t := range taints {
		t.TimeAdded = nil // MCM compares the pointer and would write the Node forever
		distinct = slices.DeleteFunc(distinct, func(former corev1.Taint) bool { return former.MatchTaint(&t) })
		distinct = append(distinct, t)
	}
	return distinct
}

// recordTaints records that the template's taints are applied, as MCM does. MCM removes only taints that it
// remembers to have applied; without the annotation, a taint that is removed from the Machine would stay on
// the Node forever.
func recordTaints(node *corev1.Node, taints []corev1.Taint) {
	applied := v1alpha1.NodeTemplateSpec{Spec: corev1.NodeSpec{Taints: taints}}
	if note, err := json.Marshal(applied); err == nil {
		node.Annotations[machineutils.LastAppliedALTAnnotation] = string(note)
	}
}

func conditionsAtFirst(f Fault, now time.Time) []corev1.NodeCondition {
	var conditions []corev1.NodeCondition
	for _, c := range healthy {
		conditions = append(conditions, conditionOf(c.Type, c.Status, reasonHealthy, now))
	}
	return mergeConditions(conditions, faulty(f, conditions, now))
}

func conditionOf(kind corev1.NodeConditionType, s corev1.ConditionStatus, reason string, now time.Time) corev1.NodeCondition {
	message := "set by the virtual provider"
	if reason == reasonFault {
		message = "a fault of the ConfigMap " + FaultsConfigMap
	}
	return corev1.NodeCondition{
		Type: kind, Status: s, Reason: reason, Message: message,
		LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
	}
}
