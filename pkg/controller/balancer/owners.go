// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
)

// byTarget indexes Balancers and autoscalers by the workloads that they scale.
const byTarget = "target"

func targetKey(namespace, apiVersion, kind, name string) string {
	return schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind().String() + "/" + namespace + "/" + name
}

func targetKeys(b *v1alpha1.Balancer) []string {
	keys := make([]string, 0, len(b.Spec.Targets))
	for _, t := range b.Spec.Targets {
		keys = append(keys, targetKey(b.Namespace, t.ScaleTargetRef.APIVersion, t.ScaleTargetRef.Kind, t.ScaleTargetRef.Name))
	}
	return keys
}

func indexByTarget(item any) ([]string, error) {
	switch object := item.(type) {
	case *v1alpha1.Balancer:
		return targetKeys(object), nil
	case *autoscalingv2.HorizontalPodAutoscaler:
		return []string{autoscaledKey(object)}, nil
	}
	return nil, nil
}

func autoscaledKey(hpa *autoscalingv2.HorizontalPodAutoscaler) string {
	ref := hpa.Spec.ScaleTargetRef
	return targetKey(hpa.Namespace, ref.APIVersion, ref.Kind, ref.Name)
}

// olderRival returns the oldest Balancer that is older than this one, has a target in common with
// it, is valid, and has no such rival itself: a Balancer that writes nothing blocks no other.
func (c *Controller) olderRival(b *v1alpha1.Balancer) (rival, contested string) {
	return c.rivalOf(b, map[string]bool{})
}

// rivalOf remembers by name which Balancers are invalid or have a rival. It continues with older and
// older ones, so it ends.
func (c *Controller) rivalOf(b *v1alpha1.Balancer, idle map[string]bool) (rival, contested string) {
	oldest := b
	for i, key := range targetKeys(b) {
		items, _ := c.balancers.ByIndex(byTarget, key)
		for _, item := range items {
			other, ok := item.(*v1alpha1.Balancer)
			if !ok || other.DeletionTimestamp != nil || !isOlder(other, oldest) {
				continue
			}
			if _, known := idle[other.Name]; !known {
				its, _ := c.rivalOf(other, idle)
				idle[other.Name] = its != "" || !plan.IsValid(other.Spec)
			}
			if !idle[other.Name] {
				oldest, rival, contested = other, other.Name, b.Spec.Targets[i].Name
			}
		}
	}
	return rival, contested
}

func isOlder(a, b *v1alpha1.Balancer) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// otherWriter returns which other client writes the replicas of a target.
func (c *Controller) otherWriter(t plan.Target, object *unstructured.Unstructured) plan.Hold {
	if t.Object.Resource.Group == machineGroup {
		if hold := heldByAnnotation(object.GetAnnotations()); hold != (plan.Hold{}) {
			return hold
		}
	}
	ref := t.Spec.ScaleTargetRef
	if hpa := c.autoscaler(targetKey(t.Object.Namespace, ref.APIVersion, ref.Kind, ref.Name)); hpa != nil {
		return polling("Autoscaled", fmt.Sprintf("HorizontalPodAutoscaler %s also scales it: let the autoscaler scale the Balancer instead", hpa.Name))
	}
	return plan.Hold{}
}

// Annotations of MachineDeployments, as in pkg/apis/machine. That package is not imported, because it contains
// machine-controller-manager's types.
const (
	boundsAnnotation          = "evenkeel.machine.sapcloud.io/bounds"
	balanceAnnotation         = "evenkeel.machine.sapcloud.io/balance"
	appliedReplicasAnnotation = "evenkeel.machine.sapcloud.io/applied-replicas"
)

// heldByAnnotation returns the annotation by which another client writes the replicas of a
// MachineDeployment. If the balance controller writes them because of the mode of its flag, this
// shows in the replicas that it applies.
func heldByAnnotation(annotations map[string]string) plan.Hold {
	if annotations[boundsAnnotation] != "" {
		return polling("HasBounds", fmt.Sprintf("an autoscaler scales it within its annotation %s: remove the annotation, or the target", boundsAnnotation))
	}
	mode := annotations[balanceAnnotation]
	if _, applied := annotations[appliedReplicasAnnotation]; applied || mode == "ScaleUp" || mode == "Continuous" {
		return polling("KeptEven", fmt.Sprintf("the balance controller keeps its replicas even with other zones: set its annotation %s to Off, or remove the target", balanceAnnotation))
	}
	return plan.Hold{}
}
