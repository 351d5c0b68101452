// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

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
