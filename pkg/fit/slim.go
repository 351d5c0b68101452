// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Limits on what is read of one pod, whatever its author wrote. Common pods stay far below them.
const (
	// MaxContainers includes init containers.
	MaxContainers = 64
	// MaxRequests is a number of resource requests, over all containers.
	MaxRequests = 256
	// MaxRules is a number of required pod affinity and anti-affinity terms and hard topology
	// spread constraints.
	MaxRules = 32
	// MaxTolerations is a number of tolerations.
	MaxTolerations = 64
	// MaxClaims and MaxHostPorts are numbers of volumes and of host ports.
	MaxClaims    = 64
	MaxHostPorts = 64
	// MaxResourceClaims is a number of claims to devices.
	MaxResourceClaims = 16
	// MaxBytes is the size of everything that is kept of one pod, in protobuf.
	MaxBytes = 8 << 10
)

// Annotations of slim pods that exceed a limit, with the limit as their value. Slim pods have no
// other annotations.
const (
	// unread: neither labels nor rules are kept.
	unread = "fit/unread"
	// unmovable: what decides where else the pod could run is not kept.
	unmovable = "fit/unmovable"
)

// Slim returns a copy of a pod with only what this package and its callers read: at most
// [MaxBytes]. The copy has the same requests, ports, rules and shape. For a pod that has a node,
// only what matters to other pods is kept.
//
// A pod that exceeds a limit keeps its name, owner, state and requests. If it waits, it is
// [Undecided]. If it runs, it makes other pods undecided that its rules or labels may affect: those
// of its namespace, and of all namespaces if its anti-affinity refers to other namespaces.
func Slim(pod *corev1.Pod) *corev1.Pod {
	slim, reason := bounded(pod)
	if reason == "" {
		slim.Spec.Containers[0].Resources.Requests = Requests(pod)
		return slim
	}
	slim = outline(pod)
	slim.Annotations = map[string]string{unread: reason}
	slim.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: roughly(pod)}}}
	slim.Spec.Affinity = repelling(pod)
	return slim
}

// LabelsKnown reports whether a slim pod has the labels of the whole one.
func LabelsKnown(pod *corev1.Pod) bool { return pod.Annotations[unread] == "" }

// SlimMovable is [Slim], and also keeps what decides where else a pod that has a node could run. If
// only that exceeds a limit, the pod is undecided as a waiting pod, and counts for other pods as
// usual.
func SlimMovable(pod *corev1.Pod) *corev1.Pod {
	if pod.Spec.NodeName == "" {
		return Slim(pod)
	}
	waiting := *pod
	waiting.Spec.NodeName = ""
	slim := Slim(pod)
	movable, reason := bounded(&waiting)
	switch {
	case reason == "":
		movable.Spec.NodeName, movable.Spec.Containers[0].Resources = pod.Spec.NodeName, slim.Spec.Containers[0].Resources
		return movable
	case slim.Annotations[unread] == "":
		metav1.SetMetaDataAnnotation(&slim.ObjectMeta, unmovable, reason)
	}
	return slim
}

// bounded returns a slim pod without its requests, and the limit that it exceeds; empty if it
// exceeds none.
func bounded(pod *corev1.Pod) (slim *corev1.Pod, reason string) {
	if reason := pod.Annotations[unread]; reason != "" {
		return nil, truncateName(reason)
	}
	if reason := pod.Annotations[unmovable]; reason != "" && pod.Spec.NodeName == "" {
		return nil, truncateName(reason)
	}
	n, bytes := 0, 0
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for name := range containers[i].Resources.Requests {
				n, bytes = n+1, bytes+len(name)
			}
		}
	}
	slim = outline(pod)
	copyRules(pod, slim)
	s := &slim.Spec
	for _, bound := range []struct {
		n, most int
		what    string
	}{
		{len(pod.Spec.Containers) + len(pod.Spec.InitContainers), MaxContainers, "containers"},
		{n, MaxRequests, "requests"},
		{rulesOf(s), MaxRules, "pod affinity terms and topology spread constraints"},
		{len(s.Tolerations), MaxTolerations, "tolerations"},
		{len(s.Volumes), MaxClaims, "claims"},
		{max(len(s.ResourceClaims), len(slim.Status.ResourceClaimStatuses)), MaxResourceClaims, "claims to devices"},
		{len(s.Containers[0].Ports), MaxHostPorts, "host ports"},
		{bytes + slim.Size(), MaxBytes, "bytes that decide where it may run"},
	} {
		if bound.n > bound.most {
			return nil, fmt.Sprintf("has more than %d %s", bound.most, bound.what)
		}
	}
	return slim, ""
}

// rulesOf counts a slim pod's rules about other pods.
func rulesOf(s *corev1.PodSpec) int {
	n := len(s.TopologySpreadConstraints)
	if a := s.Affinity; a != nil && a.PodAffinity != nil {
		n += len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if a := s.Affinity; a != nil && a.PodAntiAffinity != nil {
		n += len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	return n
}

// outline returns what is kept of every pod.
func outline(pod *corev1.Pod) *corev1.Pod {
	slim := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
	}}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Size() < MaxBytes/8 {
		slim.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	slim.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, SchedulerName: truncateName(pod.Spec.SchedulerName), Priority: pod.Spec.Priority}
	if policy := pod.Spec.PreemptionPolicy; policy != nil && *policy == corev1.PreemptNever {
		slim.Spec.PreemptionPolicy = policy
	}
	if group := pod.Spec.SchedulingGroup; group != nil {
		slim.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(truncateName(ptr.Deref(group.PodGroupName, "")))}
	}
	slim.Status = corev1.PodStatus{Phase: pod.Status.Phase, NominatedNodeName: pod.Status.NominatedNodeName}
	if len(pod.Spec.SchedulingGates) > 0 {
		slim.Spec.SchedulingGates = pod.Spec.SchedulingGates[:1:1]
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			kept := corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason}
			if c.Status == corev1.ConditionTrue && c.LastTransitionTime.Sub(pod.CreationTimestamp.Time) > boundAtOnce {
				kept.LastTransitionTime = c.LastTransitionTime
			}
			slim.Status.Conditions = []corev1.PodCondition{kept}
		}
	}
	return slim
}

// boundAtOnce is how old a pod is when it is bound without having waited. When that was is not kept: most
// pods of one owner share their status in a cache.
const boundAtOnce = time.Second

// truncateName shortens a name that is longer than any sensible one.
func truncateName(name string) string { return name[:min(len(name), MaxBytes/8)] }

// copyRules copies everything that decides where a pod may run, except its requests.
func copyRules(pod, slim *corev1.Pod) {
	from, to := &pod.Spec, &slim.Spec
	slim.Labels = pod.Labels
	to.Containers = []corev1.Container{{Ports: hostPorts(pod)}}
	to.Affinity = required(from)
	if from.NodeName != "" {
		return
	}
	to.NodeSelector, to.Tolerations = from.NodeSelector, from.Tolerations
	to.Volumes = claims(from.Volumes)
	to.TopologySpreadConstraints = hardConstraints(from.TopologySpreadConstraints)
	to.ResourceClaims, slim.Status.ResourceClaimStatuses = from.ResourceClaims, pod.Status.ResourceClaimStatuses
}

// hardConstraints returns the constraints that keep a pod from nodes.
func hardConstraints(constraints []corev1.TopologySpreadConstraint) []corev1.TopologySpreadConstraint {
	var all []corev1.TopologySpreadConstraint
	for _, c := range constraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			all = append(all, c)
		}
	}
	return all
}

// required returns the affinity without preferences; for a pod that has a node, only its
// anti-affinity.
func required(s *corev1.PodSpec) *corev1.Affinity {
	if s.Affinity == nil {
		return nil
	}
	a := &corev1.Affinity{}
	if anti := s.Affinity.PodAntiAffinity; anti != nil && len(anti.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: anti.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if with := s.Affinity.PodAffinity; with != nil && s.NodeName == "" && len(with.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: with.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if n := s.Affinity.NodeAffinity; n != nil && s.NodeName == "" && n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		a.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: n.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if *a == (corev1.Affinity{}) {
		return nil
	}
	return a
}

// claims returns the volumes that may limit where a pod runs.
func claims(volumes []corev1.Volume) []corev1.Volume {
	var all []corev1.Volume
	for _, v := range volumes {
		switch {
		case anywhere(v.VolumeSource):
		case v.PersistentVolumeClaim != nil:
			all = append(all, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.PersistentVolumeClaim.ClaimName},
			}})
		case v.Ephemeral != nil:
			all = append(all, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
		default:
			all = append(all, corev1.Volume{Name: v.Name})
		}
	}
	return all
}

// hostPorts returns the ports that a pod uses on its node, as ports of one container.
func hostPorts(pod *corev1.Pod) []corev1.ContainerPort {
	var all []corev1.ContainerPort
	for _, p := range portsOf(pod) {
		all = append(all, corev1.ContainerPort{HostIP: p.IP, Protocol: p.Protocol, HostPort: p.Number})
	}
	return all
}

// roughly returns the requests of a pod that is too large to be read: CPU and memory, and others
// until they take half of what is kept of a pod.
func roughly(pod *corev1.Pod) corev1.ResourceList {
	const eachTakes = 32 // beside its name
	all, bytes := Requests(pod), 0
	kept := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(schedulerUnits(corev1.ResourceCPU, all[corev1.ResourceCPU]), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(schedulerUnits(corev1.ResourceMemory, all[corev1.ResourceMemory]), resource.BinarySI),
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if bytes += len(name) + eachTakes; bytes > MaxBytes/2 {
			break
		}
		if _, is := kept[name]; !is {
			kept[name] = *resource.NewQuantity(schedulerUnits(name, all[name]), resource.DecimalSI)
		}
	}
	return kept
}

// repelling returns a replacement for the anti-affinity of a pod that is too large to be read. It
// only shows whether the anti-affinity may affect pods of other namespaces.
func repelling(pod *corev1.Pod) *corev1.Affinity {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	for _, t := range pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if t.NamespaceSelector != nil || len(t.Namespaces) > 0 {
			return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{NamespaceSelector: &metav1.LabelSelector{}},
			}}}
		}
	}
	return nil
}
