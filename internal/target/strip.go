// SPDX-License-Identifier: Apache-2.0

package target

import (
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/kueue"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/fit/devices"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// Strip is the transform of all informers. It changes neither its argument nor earlier results.
func Strip(item any) (any, error) {
	switch o := item.(type) {
	case *corev1.Pod:
		return StripPod(o), nil
	case *corev1.Node:
		return stripNode(o), nil
	case *policyv1.PodDisruptionBudget:
		return stripBudget(o), nil
	case *appsv1.DaemonSet:
		return stripDaemonSet(o), nil
	case *appsv1.ReplicaSet:
		return stripReplicaSet(o), nil
	case *batchv1.Job:
		return stripJob(o), nil
	case *resourceapi.ResourceClaim:
		return devices.Slim(o), nil
	case *resourceapi.ResourceClaimTemplate:
		return devices.SlimTemplate(o), nil
	case *corev1.PodTemplate:
		return stripPodTemplate(o), nil
	case *schedulingv1alpha2.PodGroup:
		return stripPodGroup(o), nil
	case *corev1.PersistentVolumeClaim:
		return stripClaim(o), nil
	case *corev1.PersistentVolume:
		return stripVolume(o), nil
	case *storagev1.StorageClass:
		return stripClass(o), nil
	case *storagev1.CSIDriver:
		return stripDriver(o), nil
	}
	return item, nil
}

// StripAll returns objects as an informer keeps them.
func StripAll[T any](items []T) ([]T, error) {
	slim := make([]T, len(items))
	for i, item := range items {
		stripped, err := Strip(item)
		if err != nil {
			return nil, err
		}
		slim[i] = stripped.(T)
	}
	return slim, nil
}

// podAnnotations are the annotations of pods that are read, with the values that have a meaning.
// Without values, presence counts.
var podAnnotations = map[string][]string{
	corev1.MirrorPodAnnotationKey: nil,
	pool.SafeToEvict:              {"true", "false", pool.OnCompletion},
	similar.DaemonSetPod:          {"true"},
}

// StripPod keeps what package fit reads, and what keeps the pod's machine from being deleted.
func StripPod(pod *corev1.Pod) *corev1.Pod {
	slim := fit.SlimMovable(pod)
	if len(slim.Spec.Tolerations) == 0 { // the pod has none, or fit does not keep them
		slim.Spec.Tolerations = pool.ReserveTolerations(pod)
	}
	for key, values := range podAnnotations {
		value, exists := pod.Annotations[key]
		if values == nil {
			value = ""
		} else {
			exists = slices.Contains(values, value)
		}
		if exists {
			metav1.SetMetaDataAnnotation(&slim.ObjectMeta, key, value)
		}
	}
	if name := machine.RequestOf(pod); name != "" {
		metav1.SetMetaDataAnnotation(&slim.ObjectMeta, provisioningv1.ConsumeAnnotation, bounded(name))
	}
	group, pods := kueue.Group(pod)
	kueue.SetGroup(slim, bounded(group), pods)
	keepEviction(slim, pod)
	return slim
}

// onDisk stands for whatever makes a volume local.
var onDisk = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}

// keepEviction keeps what else decides whether a pod may be evicted: one local volume is enough, and
// its grace period matters only while it is being deleted. Pods that have no Node are not evicted.
func keepEviction(slim, pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		slim.Spec.TerminationGracePeriodSeconds = pod.Spec.TerminationGracePeriodSeconds
	}
	if name, local := pool.LocalVolume(pod); local && pod.Spec.NodeName != "" {
		slim.Spec.Volumes = append(slices.Clip(slim.Spec.Volumes), corev1.Volume{Name: name, VolumeSource: onDisk})
	}
}

// stripNode drops what no controller reads and no write of the main resource changes, because
// machine-controller-manager writes whole Nodes back. Users usually cannot create Nodes.
func stripNode(node *corev1.Node) *corev1.Node {
	slim := &corev1.Node{TypeMeta: node.TypeMeta, ObjectMeta: node.ObjectMeta, Spec: node.Spec}
	slim.ManagedFields = nil
	slim.Status.Capacity, slim.Status.Allocatable, slim.Status.Conditions = node.Status.Capacity, node.Status.Allocatable, node.Status.Conditions
	return slim
}

// stripBudget keeps what decides which pods may be evicted. If the selector is too large, the
// budget allows no eviction in its namespace.
func stripBudget(budget *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	slim := &policyv1.PodDisruptionBudget{ObjectMeta: identity(budget)}
	slim.Spec.Selector, slim.Status.DisruptionsAllowed = budget.Spec.Selector, budget.Status.DisruptionsAllowed
	if slim.Spec.Selector.Size() > fit.MaxBytes {
		slim.Spec.Selector, slim.Status.DisruptionsAllowed = &metav1.LabelSelector{}, 0
	}
	return slim
}

// SystemPriority is the prefix of the names of Kubernetes' own priority classes. In the cache, it
// stands for all of them.
const SystemPriority = "system-"

// stripDaemonSet keeps the pod template as package fit reads it, and by what its pods are known.
func stripDaemonSet(set *appsv1.DaemonSet) *appsv1.DaemonSet {
	pod := fit.Slim(templatePod(set))
	slim := &appsv1.DaemonSet{ObjectMeta: identity(set)}
	slim.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}, Spec: pod.Spec}
	if generation := bounded(set.Annotations[appsv1.DeprecatedTemplateGeneration]); generation != "" {
		metav1.SetMetaDataAnnotation(&slim.ObjectMeta, appsv1.DeprecatedTemplateGeneration, generation)
	}
	if strings.HasPrefix(set.Spec.Template.Spec.PriorityClassName, SystemPriority) {
		slim.Spec.Template.Spec.PriorityClassName = SystemPriority
	}
	return slim
}

// stripReplicaSet keeps how many pods are desired, and whether they cannot be created. There are
// many old ReplicaSets.
func stripReplicaSet(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	slim := &appsv1.ReplicaSet{ObjectMeta: identity(set), Spec: appsv1.ReplicaSetSpec{Replicas: set.Spec.Replicas}}
	for _, c := range set.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure {
			slim.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return slim
}

// stripJob keeps how many pods are desired, and whether any are created now. Of conditions, only
// those that hold are read: a Job with one has ended, or is suspended. There are many old Jobs.
func stripJob(job *batchv1.Job) *batchv1.Job {
	slim := &batchv1.Job{ObjectMeta: identity(job), Spec: batchv1.JobSpec{
		Parallelism: job.Spec.Parallelism, Completions: job.Spec.Completions, CompletionMode: job.Spec.CompletionMode,
		Suspend: job.Spec.Suspend, ManagedBy: job.Spec.ManagedBy,
	}}
	slim.Status.StartTime = job.Status.StartTime
	slim.Status.Succeeded, slim.Status.Failed, slim.Status.Terminating = job.Status.Succeeded, job.Status.Failed, job.Status.Terminating
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			slim.Status.Conditions = []batchv1.JobCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return slim
}

// stripPodTemplate keeps the pod as package fit reads it.
func stripPodTemplate(template *corev1.PodTemplate) *corev1.PodTemplate {
	pod := fit.TemplatePod(template.Namespace, "", &template.Template)
	pod.Spec.NodeName = ""
	pod = fit.Slim(pod)
	return &corev1.PodTemplate{ObjectMeta: identity(template), Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}, Spec: pod.Spec}}
}

// stripPodGroup keeps how many pods start together, and whether the group has other rules.
func stripPodGroup(group *schedulingv1alpha2.PodGroup) *schedulingv1alpha2.PodGroup {
	slim := &schedulingv1alpha2.PodGroup{ObjectMeta: identity(group)}
	slim.Spec.SchedulingPolicy = group.Spec.SchedulingPolicy
	if group.Spec.SchedulingConstraints != nil {
		slim.Spec.SchedulingConstraints = &schedulingv1alpha2.PodGroupSchedulingConstraints{}
	}
	if len(group.Spec.ResourceClaims) > 0 {
		slim.Spec.ResourceClaims = []schedulingv1alpha2.PodGroupResourceClaim{{}}
	}
	return slim
}

// identity returns the name of an object, its version, by which handlers tell changes of the spec
// from those of the status, and whether it is being deleted.
func identity(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(),
		CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp(),
	}
}

// maxShapes limits how many shapes of pods are remembered. Beyond it, all are forgotten.
const maxShapes = 2_000

// sharing lets pods share what they have in common with the last one of their shape. An owner may
// have hundreds of thousands of pods, and most of them differ only in their names.
type sharing struct {
	mu   sync.Mutex
	last map[shape]*corev1.Pod
}

// shape identifies pods that probably have most in common: those of one owner, or of none, with or
// without a Node.
type shape struct {
	owner types.UID
	bound bool
}

// stripAndShare does what [Strip] does, and lets pods share parts. An informer whose list is
// streamed calls it twice for each pod, the second time with what the first call returned.
func (s *sharing) stripAndShare(item any) (any, error) {
	pod, ok := item.(*corev1.Pod)
	if !ok {
		return Strip(item)
	}
	if isStripped(pod) {
		return pod, nil
	}
	pod = StripPod(pod)
	s.shareParts(pod)
	return pod, nil
}

// isStripped reports whether a pod has been stripped. An API server accepts no container without an
// image, and a stripped pod has no other.
func isStripped(pod *corev1.Pod) bool {
	return len(pod.Spec.Containers) == 1 && pod.Spec.Containers[0].Image == ""
}

// shareParts replaces parts of a slim pod by the same parts of an earlier one. Neither is changed
// afterwards.
func (s *sharing) shareParts(pod *corev1.Pod) {
	at := shape{bound: pod.Spec.NodeName != ""}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		at.owner = owner.UID
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.last[at]; last != nil {
		share(&pod.Namespace, last.Namespace)
		share(&pod.Labels, last.Labels)
		share(&pod.Annotations, last.Annotations)
		share(&pod.OwnerReferences, last.OwnerReferences)
		share(&pod.Status, last.Status)
		shareSpec(&pod.Spec, &last.Spec)
	} else if len(s.last) >= maxShapes {
		clear(s.last)
	}
	s.last[at] = pod
}

func shareSpec(spec, last *corev1.PodSpec) {
	share(&spec.Containers, last.Containers)
	share(&spec.Affinity, last.Affinity)
	share(&spec.Tolerations, last.Tolerations)
	share(&spec.NodeSelector, last.NodeSelector)
	share(&spec.TopologySpreadConstraints, last.TopologySpreadConstraints)
	share(&spec.Volumes, last.Volumes)
	share(&spec.SchedulingGates, last.SchedulingGates)
	share(&spec.SchedulerName, last.SchedulerName)
	share(&spec.Priority, last.Priority)
	share(&spec.PreemptionPolicy, last.PreemptionPolicy)
}

// share lets a part be the same as that of another pod if they are equal.
func share[T any](part *T, other T) {
	if equality.Semantic.DeepEqual(*part, other) {
		*part = other
	}
}
