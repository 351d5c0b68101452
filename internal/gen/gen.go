// SPDX-License-Identifier: Apache-2.0

// Package gen builds objects for tests: valid ones, with only what the test
// cares about named by it.
//
//	gen.MachineDeployment("pool", 3, func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = true })
//
// All objects that have a namespace are made in "default".
package gen

import (
	"fmt"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Namespace is where objects are made.
const Namespace = "default"

// Class is the name of the MachineClass that machines are made of.
const Class = "class"

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: Namespace}
}

func named(name string) map[string]string { return map[string]string{"name": name} }

// MachineDeployment has machines of Class and replaces them one by one: one more
// than wanted, none less.
func MachineDeployment(name string, replicas int32, change ...func(*machinev1alpha1.MachineDeployment)) *machinev1alpha1.MachineDeployment {
	d := &machinev1alpha1.MachineDeployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: machinev1alpha1.SchemeGroupVersion.String(), Kind: "MachineDeployment"},
		ObjectMeta: meta(name),
		Spec: machinev1alpha1.MachineDeploymentSpec{
			Replicas: replicas,
			Selector: &metav1.LabelSelector{MatchLabels: named(name)},
			Strategy: machinev1alpha1.MachineDeploymentStrategy{
				Type: machinev1alpha1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: &machinev1alpha1.RollingUpdateMachineDeployment{
					UpdateConfiguration: machinev1alpha1.UpdateConfiguration{
						MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
					},
				},
			},
			Template: machinev1alpha1.MachineTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: named(name)},
				Spec: machinev1alpha1.MachineSpec{
					Class: machinev1alpha1.ClassSpec{Kind: "MachineClass", Name: Class},
				},
			},
		},
	}
	return changed(d, change)
}

// Machine is one of Class that nobody owns.
func Machine(name string, change ...func(*machinev1alpha1.Machine)) *machinev1alpha1.Machine {
	return changed(&machinev1alpha1.Machine{
		TypeMeta:   metav1.TypeMeta{APIVersion: machinev1alpha1.SchemeGroupVersion.String(), Kind: "Machine"},
		ObjectMeta: meta(name),
		Spec:       machinev1alpha1.MachineSpec{Class: machinev1alpha1.ClassSpec{Kind: "MachineClass", Name: Class}},
	}, change)
}

// MachineClass is of the provider "virtual", with an empty providerSpec.
func MachineClass(name string, change ...func(*machinev1alpha1.MachineClass)) *machinev1alpha1.MachineClass {
	c := &machinev1alpha1.MachineClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: machinev1alpha1.SchemeGroupVersion.String(), Kind: "MachineClass"},
		ObjectMeta: meta(name),
		Provider:   "virtual",
		SecretRef:  &corev1.SecretReference{Name: name, Namespace: Namespace},
	}
	c.ProviderSpec.Raw = []byte("{}")
	return changed(c, change)
}

// Node is ready and has room for 4 CPUs, 16Gi and 110 pods.
func Node(name string, change ...func(*corev1.Node)) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return changed(&corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Spec:       corev1.NodeSpec{ProviderID: fmt.Sprintf("virtual:///%s", name)},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room.DeepCopy(),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
		},
	}, change)
}

// Pod asks for one CPU and is bound to no node.
func Pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	return changed(&corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta(name),
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "work", Image: "registry.example/work:1",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		}}},
	}, change)
}

func changed[T any](object *T, change []func(*T)) *T {
	for _, c := range change {
		c(object)
	}
	return object
}
