// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// PodReplica returns a pod as a replica; false for a pod that has finished, is leaving, or is
// unknown.
func PodReplica(pod *corev1.Pod) (Replica, bool) {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodPending && pod.Status.Phase != corev1.PodRunning {
		return Replica{}, false
	}
	r := Replica{Born: pod.CreationTimestamp.Time, Running: pod.Status.Phase == corev1.PodRunning}
	if c := readiness(pod); c != nil {
		r.Ready, r.Since = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
	}
	if r.Running {
		r.StartedAt = startOf(pod)
	}
	return r, true
}

// NodeReadiness is what a Node reports about itself: whether it is ready, and since when. The zero
// value is not known.
type NodeReadiness struct {
	Known, Ready bool
	Since        time.Time
}

// OnNode returns a replica as its Node allows to see it. One that runs on a Node that is not ready
// waits to start since that began: Kubernetes itself leaves such a pod in the phase Running until it
// evicts it. One whose Node is ready again has started then: a kubelet that reconnects restores all
// times in the status of its pods, and so hides that they were gone.
func (r Replica) OnNode(n NodeReadiness) Replica {
	switch {
	case !n.Known || !r.Running:
	case !n.Ready:
		return Replica{Born: latest(r.Born, n.Since), Unreachable: true}
	default:
		r.StartedAt = latest(r.StartedAt, n.Since)
		if r.Ready {
			r.Since = latest(r.Since, n.Since)
		}
	}
	return r
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// startOf returns when the last container of a running pod started for the first time, as far as
// that is known. The start time of the pod is earlier: the kubelet sets it before it pulls images.
func startOf(pod *corev1.Pod) time.Time {
	at := pod.CreationTimestamp.Time
	if pod.Status.StartTime != nil {
		at = pod.Status.StartTime.Time
	}
	for i := range pod.Status.ContainerStatuses {
		if first := firstStart(&pod.Status.ContainerStatuses[i]); first.After(at) {
			at = first
		}
	}
	return at
}

// firstStart returns when a container started for the first time. It is zero if its status does not
// show that, because it contains only the last two starts.
func firstStart(c *corev1.ContainerStatus) (first time.Time) {
	starts := int32(0)
	for _, s := range []corev1.ContainerState{c.State, c.LastTerminationState} {
		switch {
		case s.Running != nil:
			starts, first = starts+1, s.Running.StartedAt.Time
		case s.Terminated != nil:
			starts, first = starts+1, s.Terminated.StartedAt.Time
		}
	}
	if starts <= c.RestartCount {
		return time.Time{}
	}
	return first
}

func readiness(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// MachineReplica returns a Machine as a replica; false for one that is leaving.
func MachineReplica(machine *unstructured.Unstructured) (Replica, bool) {
	phase, _, _ := unstructured.NestedString(machine.Object, "status", "currentStatus", "phase")
	if machine.GetDeletionTimestamp() != nil || phase == "Terminating" {
		return Replica{}, false
	}
	r := Replica{Born: machine.GetCreationTimestamp().Time}
	changed, _, _ := unstructured.NestedString(machine.Object, "status", "currentStatus", "lastUpdateTime")
	if at, err := time.Parse(time.RFC3339, changed); err == nil {
		r.Since = at
	}
	switch phase {
	case "Running", "InPlaceUpdating", "InPlaceUpdateSuccessful", "InPlaceUpdateFailed":
		r.Running, r.Ready = true, phase == "Running"
		if r.StartedAt = r.Born; r.Since.After(r.Born) {
			r.StartedAt = r.Since
		}
		return r, true
	}
	code, _, _ := unstructured.NestedString(machine.Object, "status", "lastOperation", "errorCode")
	r.OutOfStock = code == "ResourceExhausted"
	if r.Unreachable = phase == "Unknown"; r.Unreachable {
		r.Born = latest(r.Born, r.Since) // it ran before, so its problem began after that
	}
	r.Since = time.Time{} // a machine that boots waits since its creation, whatever its phases
	return r, true
}
