// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
)

// View is everything that one decision depends on.
type View struct {
	Now time.Time
	// Back is when the API server answered again after a silence, zero if it always did. Nothing
	// could start before that.
	Back time.Time
	// Balancer is the object. Its status is the memory of earlier decisions.
	Balancer *v1alpha1.Balancer
	// Rival is an older Balancer that shares a target with this one, if any, and Contested is that
	// target's name.
	Rival, Contested string
	// Targets are in the order of the spec.
	Targets []Target
	// Foreign is the number of pods that the Balancer's selector matches but no target selects, and
	// Shared the number that more than one target selects.
	Foreign, Shared int
	// Autoscaler is the one that scales this Balancer.
	Autoscaler Autoscaler
}

// Autoscaler is a HorizontalPodAutoscaler on a Balancer. The zero value is none.
type Autoscaler struct {
	Name string
	// CPU and Memory report whether it uses the utilization of that resource, which requires
	// requests on every container.
	CPU, Memory bool
	// Rival is another autoscaler that counts some of the same pods. Autoscalers with overlapping
	// pods do not scale.
	Rival string
}

// Target is what is known about one target.
type Target struct {
	Spec v1alpha1.BalancerTarget
	// Hold is why the target must not be changed.
	Hold Hold
	// Known reports whether the workload exists, so that the fields below describe it. Absent
	// reports that it certainly does not exist. If neither is set, nothing is known.
	Known, Absent bool
	// Object identifies the object whose scale is written.
	Object Object
	// Current is the number of replicas that the workload is scaled to now.
	Current int64
	// Capped reports whether the workload does not act on a raise for now, because it is frozen.
	Capped bool
	// Settling reports whether the workload's controller has not observed the latest change yet, so
	// that its counts are old.
	Settling bool
	// AnyMayGo reports whether a reduction may remove ready replicas although others are not ready.
	AnyMayGo bool
	// Machines reports whether its replicas are machines, which move one by one unless the spec says
	// otherwise.
	Machines bool
	// Replicas are the live ones; nil with Counted if only numbers are known.
	Replicas []Replica
	Counted  bool
	Counts   Counts
	// NoCPU and NoMemory report whether a container in one of its pods lacks that request.
	NoCPU, NoMemory bool
}

// Hold is why a target is not changed. The zero value means that nothing prevents changes.
type Hold struct {
	// Phase is the reason of the condition Balancing.
	Phase string
	// Reason and Message go to the target's status.
	Reason, Message string
}

// Object names a workload and the version that was observed.
type Object struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
	Version         string
}

// ID returns the name of the workload without the version of its kind.
func (o Object) ID() string {
	return o.Resource.GroupResource().String() + "/" + o.Namespace + "/" + o.Name
}

// Replica is a live pod or machine: it is not terminating, and has not finished.
type Replica struct {
	Born time.Time
	// Running reports whether it has been started, Ready whether it can be used.
	Running, Ready bool
	// Since is when Ready last changed, zero if it never did.
	Since time.Time
	// StartedAt is when a running replica was seen to start.
	StartedAt time.Time
	// Unreachable reports that it has run and its Node is not ready. It does not count as running, but
	// may still run: no probe is a reason to delete it.
	Unreachable bool
	// OutOfStock reports whether its cloud has no capacity for it, so that waiting does not help.
	OutOfStock bool
}

// Counts come from the workload's own status.
type Counts struct{ Observed, Ready int64 }

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
