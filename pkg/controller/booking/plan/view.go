// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// View is all that a decision depends on, at one instant. Nothing in it is changed.
type View struct {
	Now time.Time
	// Requests are those of Evenkeel's class, in any order.
	Requests []Request
	Pools    []Pool
	// Reserves are those that this controller has created.
	Reserves []*autoscaling.Reserve
	// Daemons would run on every machine that they fit, the most important first.
	Daemons []*fit.Pod
}

// Request is a ProvisioningRequest with what it refers to.
type Request struct {
	Object *provisioningv1.ProvisioningRequest
	// Templates are the PodTemplates of its pod sets, in their order; nil where one does not exist.
	Templates []*corev1.PodTemplate
	// Lacks is the missing right to read PodTemplates; empty if it is not missing.
	Lacks string
}

// Pool is a MachineDeployment with a reserve.
type Pool struct {
	Deployment *machine.MachineDeployment
	// Node is the Node that a new machine would have; nil if that is not known.
	Node *corev1.Node
	// Ready is how many machines are ready in reserve, whoever requests them.
	Ready int
	// Used is how many of its machines run pods of each request, by namespace/name.
	Used map[string]int
	// Taken reports whether the name of the Reserve for this MachineDeployment belongs to a Reserve
	// that this controller has not created.
	Taken bool
}

// Plan is what to do about a View.
type Plan struct {
	// Changes are the Reserves to change, by name.
	Changes []Change
	// Decisions are about the requests, by namespace and name.
	Decisions []Decision
	// Again is when to sync again without an event; 0 means never.
	Again time.Duration
}

// Change is a Reserve to create, change or delete.
type Change struct {
	// Pool is the MachineDeployment, and Bookings what is booked there. Without any, the Reserve is
	// deleted.
	Pool     string
	Bookings []machine.Dedication
	// Reserve is the present Reserve; nil if there is none.
	Reserve *autoscaling.Reserve
}

// Decision is about one request.
type Decision struct {
	Request *provisioningv1.ProvisioningRequest
	// Conditions are those that it has now.
	Conditions []Condition
	// Booked is how many machines are booked in each MachineDeployment, if the request is provisioned now.
	// Left is how many of them do not run its pods yet; nil if it is not provisioned.
	Booked, Left map[string]int
}

// Condition is a condition that holds or not.
type Condition struct {
	Type, Reason, Message string
	Holds                 bool
}
