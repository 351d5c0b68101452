// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/base64"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Resource is one kind that a Server serves.
type Resource struct {
	Group, Version string
	Name           string // plural, lower case
	Kind           string
	ShortNames     []string
	Namespaced     bool

	// Type is the Go type of a built-in kind; a custom resource has none.
	Type runtime.Object
	// Status reports whether there is a status subresource. A status at creation is then dropped,
	// unless BornWithStatus is set.
	Status         bool
	BornWithStatus bool
	// Generation reports whether changes of anything except metadata and status are counted.
	Generation bool
	// Unconditional reports whether an update may omit the resourceVersion.
	Unconditional bool
	// Scale is where the scale subresource finds its numbers; nil means none.
	Scale *Scale
	// Fields can be used in field selectors, besides metadata.name and metadata.namespace.
	Fields []string
	// Known are the only fields of spec and status that a custom resource keeps; nil keeps all.
	Known *Known
	// Admit completes an object at creation.
	Admit func(object map[string]any)
}

// Scale names fields by path, as a CustomResourceDefinition does, without the leading dot.
type Scale struct{ SpecReplicas, StatusReplicas, Selector string }

// Known are names of top-level fields.
type Known struct{ Spec, Status []string }

const machineGroup, machineVersion = "machine.sapcloud.io", "v1alpha1"

// Machine contains machine-controller-manager's kinds, as its own CRDs declare them.
var Machine = []Resource{
	{
		Group: machineGroup, Version: machineVersion, Name: "machines", Kind: "Machine", ShortNames: []string{"mc"},
		Namespaced: true, Status: true, Generation: true,
	},
	{
		Group: machineGroup, Version: machineVersion, Name: "machinesets", Kind: "MachineSet", ShortNames: []string{"mcs"},
		Namespaced: true, Status: true, Generation: true, Scale: &Scale{SpecReplicas: "spec.replicas", StatusReplicas: "status.replicas"},
	},
	{
		Group: machineGroup, Version: machineVersion, Name: "machinedeployments", Kind: "MachineDeployment", ShortNames: []string{"mcd"},
		Namespaced: true, Status: true, Generation: true, Scale: &Scale{SpecReplicas: "spec.replicas", StatusReplicas: "status.replicas"},
	},
	{
		Group: machineGroup, Version: machineVersion, Name: "machineclasses", Kind: "MachineClass", ShortNames: []string{"mcc"},
		Namespaced: true, Generation: true,
	},
}

// Core contains the built-in kinds that machines and their controllers use.
var Core = []Resource{
	{Version: "v1", Name: "namespaces", Kind: "Namespace", ShortNames: []string{"ns"}, Type: &corev1.Namespace{}, Status: true, Unconditional: true},
	{
		Version: "v1", Name: "nodes", Kind: "Node", ShortNames: []string{"no"}, Type: &corev1.Node{},
		Status: true, BornWithStatus: true, Unconditional: true, Fields: []string{"spec.unschedulable"},
	},
	{
		Version: "v1", Name: "pods", Kind: "Pod", ShortNames: []string{"po"}, Type: &corev1.Pod{}, Namespaced: true,
		Status: true, Generation: true, Unconditional: true, Admit: initialPhase("Pending"),
		Fields: []string{"spec.nodeName", "spec.schedulerName", "status.phase"},
	},
	{Version: "v1", Name: "configmaps", Kind: "ConfigMap", ShortNames: []string{"cm"}, Type: &corev1.ConfigMap{}, Namespaced: true, Unconditional: true},
	{
		Version: "v1", Name: "secrets", Kind: "Secret", Type: &corev1.Secret{}, Namespaced: true, Unconditional: true,
		Fields: []string{"type"}, Admit: admitSecret,
	},
	{Version: "v1", Name: "serviceaccounts", Kind: "ServiceAccount", ShortNames: []string{"sa"}, Type: &corev1.ServiceAccount{}, Namespaced: true, Unconditional: true},
	{
		Version: "v1", Name: "events", Kind: "Event", ShortNames: []string{"ev"}, Type: &corev1.Event{}, Namespaced: true, Unconditional: true,
		Fields: []string{"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "reason", "type"},
	},
	{
		Group: "events.k8s.io", Version: "v1", Name: "events", Kind: "Event", Type: &eventsv1.Event{}, Namespaced: true, Unconditional: true,
		Fields: []string{"regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid", "reason", "type"},
	},
	{
		Version: "v1", Name: "persistentvolumes", Kind: "PersistentVolume", ShortNames: []string{"pv"}, Type: &corev1.PersistentVolume{},
		Status: true, Unconditional: true, Admit: initialPhase("Pending"),
	},
	{
		Version: "v1", Name: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", ShortNames: []string{"pvc"}, Type: &corev1.PersistentVolumeClaim{},
		Namespaced: true, Status: true, Unconditional: true, Admit: initialPhase("Pending"),
	},
	{Group: "coordination.k8s.io", Version: "v1", Name: "leases", Kind: "Lease", Type: &coordinationv1.Lease{}, Namespaced: true},
	{
		Group: "policy", Version: "v1", Name: "poddisruptionbudgets", Kind: "PodDisruptionBudget", ShortNames: []string{"pdb"},
		Type: &policyv1.PodDisruptionBudget{}, Namespaced: true, Status: true, Generation: true,
	},
	{Group: "storage.k8s.io", Version: "v1", Name: "volumeattachments", Kind: "VolumeAttachment", Type: &storagev1.VolumeAttachment{}, Status: true},
}

// Workloads contains the built-in kinds that run replicas of pods.
var Workloads = []Resource{
	{
		Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment", ShortNames: []string{"deploy"}, Type: &appsv1.Deployment{},
		Namespaced: true, Status: true, Generation: true, Unconditional: true, Scale: podScale,
	},
	{
		Group: "apps", Version: "v1", Name: "replicasets", Kind: "ReplicaSet", ShortNames: []string{"rs"}, Type: &appsv1.ReplicaSet{},
		Namespaced: true, Status: true, Generation: true, Unconditional: true, Scale: podScale,
	},
	{
		Group: "apps", Version: "v1", Name: "statefulsets", Kind: "StatefulSet", ShortNames: []string{"sts"}, Type: &appsv1.StatefulSet{},
		Namespaced: true, Status: true, Generation: true, Unconditional: true, Scale: podScale,
	},
	{
		Group: "apps", Version: "v1", Name: "daemonsets", Kind: "DaemonSet", ShortNames: []string{"ds"}, Type: &appsv1.DaemonSet{},
		Namespaced: true, Status: true, Generation: true, Unconditional: true,
	},
	{
		Group: "autoscaling", Version: "v2", Name: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", ShortNames: []string{"hpa"},
		Type: &autoscalingv2.HorizontalPodAutoscaler{}, Namespaced: true, Status: true, Unconditional: true,
	},
}

// Shapes are built-in kinds with pods of one shape, beside Workloads, and what limits their number.
var Shapes = []Resource{
	{
		Version: "v1", Name: "replicationcontrollers", Kind: "ReplicationController", ShortNames: []string{"rc"}, Type: &corev1.ReplicationController{},
		Namespaced: true, Status: true, Generation: true, Unconditional: true,
	},
	{Group: "batch", Version: "v1", Name: "jobs", Kind: "Job", Type: &batchv1.Job{}, Namespaced: true, Status: true, Generation: true, Unconditional: true},
	{Version: "v1", Name: "podtemplates", Kind: "PodTemplate", Type: &corev1.PodTemplate{}, Namespaced: true, Generation: true, Unconditional: true},
	{Version: "v1", Name: "resourcequotas", Kind: "ResourceQuota", ShortNames: []string{"quota"}, Type: &corev1.ResourceQuota{}, Namespaced: true, Status: true, Unconditional: true},
}

// PodGroups are groups of pods that start together.
var PodGroups = Resource{
	Group: "scheduling.k8s.io", Version: "v1alpha2", Name: "podgroups", Kind: "PodGroup", Type: &schedulingv1alpha2.PodGroup{}, Namespaced: true, Status: true, Generation: true,
}

// Devices are what decides about claims to devices.
var Devices = []Resource{
	{Group: "resource.k8s.io", Version: "v1", Name: "resourceslices", Kind: "ResourceSlice", Type: &resourceapi.ResourceSlice{}, Generation: true},
	{Group: "resource.k8s.io", Version: "v1", Name: "deviceclasses", Kind: "DeviceClass", Type: &resourceapi.DeviceClass{}, Generation: true},
	{Group: "resource.k8s.io", Version: "v1", Name: "resourceclaims", Kind: "ResourceClaim", Type: &resourceapi.ResourceClaim{}, Namespaced: true, Status: true, Generation: true},
	{Group: "resource.k8s.io", Version: "v1", Name: "resourceclaimtemplates", Kind: "ResourceClaimTemplate", Type: &resourceapi.ResourceClaimTemplate{}, Namespaced: true, Generation: true},
}

var podScale = &Scale{SpecReplicas: "spec.replicas", StatusReplicas: "status.replicas", Selector: "spec.selector"}

func initialPhase(name string) func(map[string]any) {
	return func(object map[string]any) { object["status"] = map[string]any{"phase": name} }
}

// admitSecret moves stringData to the field where the server stores it.
func admitSecret(object map[string]any) {
	texts, ok := object["stringData"].(map[string]any)
	if !ok {
		return
	}
	data, _ := object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}
	for name, text := range texts {
		data[name] = base64.StdEncoding.EncodeToString([]byte(text.(string)))
	}
	object["data"] = data
	delete(object, "stringData")
}
