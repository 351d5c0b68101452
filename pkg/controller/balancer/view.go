// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
)

// View is all that one decision rests on.
type View struct {
	Now time.Time
	// Balancer is the object, whose status is the memory of earlier decisions.
	Balancer *v1alpha1.Balancer
	// Rival is the older Balancer, if any, that has a target with this one in common, and Contested that target's name.
	Rival, Contested string
	// Targets are in the order of the spec.
	Targets []Target
	// Foreign is how many pods the Balancer's selector matches that no target selects, and Shared how many more than one
	// target selects.
	Foreign, Shared int
	// Autoscaler is the one that scales this Balancer.
	Autoscaler Autoscaler
}

// Autoscaler is a HorizontalPodAutoscaler on a Balancer. The zero value is none.
type Autoscaler struct {
	Name string
	// CPU and Memory say that it computes the utilization of these, for which it needs every container's requests.
	CPU, Memory bool
	// Rival is another autoscaler that counts some of the same pods, which switches both off.
	Rival string
}

// Target is what is known of one target.
type Target struct {
	Spec v1alpha1.BalancerTarget
	// Hold is why the target must not be changed.
	Hold Hold
	// Known says that the workload exists and that what follows is about it. Absent says that it certainly does not
	// exist. With neither, nothing is known.
	Known, Absent bool
	// Object is where its scale is written.
	Object Object
	// Current is what the workload is asked for now.
	Current int64
	// Capped reports whether the workload does not act on a raise for now: it is frozen.
	Capped bool
	// Settling reports whether the workload's controller has not observed the latest change yet, so
	// that its counts are old.
	Settling bool
	// AnyMayGo reports whether a reduction may remove ready replicas although others are not ready.
	AnyMayGo bool
	// Replicas are those that live; nil with Counted, where only numbers are known.
	Replicas []Replica
	Counted  bool
	Counts   Counts
	// NoCPU and NoMemory say that some of its pods have a container without such a request.
	NoCPU, NoMemory bool
}

// Hold is why a target is left alone. The zero value is that it is not.
type Hold struct {
	// Phase is the reason of the condition Balancing.
	Phase string
	// Reason and Message go to the target's status.
	Reason, Message string
}

// Object names a workload and the version that was seen.
type Object struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
	Version         string
}

// ID returns the name of the workload without the version of its kind.
func (o Object) ID() string {
	return o.Resource.GroupResource().String() + "/" + o.Namespace + "/" + o.Name
}

// Replica is a pod or a machine that lives: not terminating, not finished.
type Replica struct {
	Born time.Time
	// Running reports whether it has been started, Ready whether it can be used.
	Running, Ready bool
	// Since is when Ready last changed, zero if it never did.
	Since time.Time
	// StartedAt is when it was seen to start, for one that runs.
	StartedAt time.Time
	// OutOfStock reports whether there is no capacity for it, so that waiting does not help.
	OutOfStock bool
}

// Counts are those of a workload's own status.
type Counts struct{ Observed, Ready int64 }
