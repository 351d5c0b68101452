// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// View is all that a decision depends on, at one instant. Nothing in it is changed.
type View struct {
	// Buffers are those of Evenkeel's strategy, in any order.
	Buffers []Buffer
	Pools   []Pool
	// Reserves are those that this controller has created.
	Reserves []*autoscaling.Reserve
	// Quotas are the ResourceQuotas of all namespaces that have buffers.
	Quotas []*corev1.ResourceQuota
	// Daemons would run on every machine that they fit, the most important first.
	Daemons []*fit.Pod
	// FillOnce reports whether buffers that fill once are served. Bound are all pods that have a
	// node, needed only if there are such buffers.
	FillOnce bool
	Bound    []*corev1.Pod
	Now      time.Time
	// Serving are the machines that accept pods, needed only if buffers use free room. Free is that of
	// the plan before.
	Serving []Serving
	Free    map[string]Free
}

// Serving is a machine that accepts pods.
type Serving struct {
	Deployment *machine.MachineDeployment
	Node       *corev1.Node
	// Pods are on its Node, or nominated for it.
	Pods []*fit.Pod
}

// Buffer is a CapacityBuffer with what it refers to.
type Buffer struct {
	Object *v1beta1.CapacityBuffer
	// Template is what podTemplateRef names, and Workload what scalableRef names; nil if that does
	// not exist.
	Template *corev1.PodTemplate
	Workload *Workload
	// Scale is the scale subresource of a workload of another kind, and Newest the newest of its
	// pods; nil if there is none.
	Scale  *Scale
	Newest *corev1.Pod
	// Lacks is the missing right to read what the buffer needs; empty if none is missing.
	Lacks string
}

// Scale is the content of the scale subresource of a workload.
type Scale struct {
	Replicas int32
	Selector labels.Selector
	// Err is the reason it could not be read. If a right is missing, Lacks says how to grant it.
	Err   error
	Lacks string
}

// Workload is what is read of a Deployment, or of another kind that runs pods of one shape.
type Workload struct {
	Replicas int32
	Template *corev1.PodTemplateSpec
}

// Pool is a MachineDeployment.
type Pool struct {
	Deployment *machine.MachineDeployment
	// Node is the Node that a new machine would have; nil if that is not known.
	Node *corev1.Node
	// Taken reports whether the name of the Reserve for this MachineDeployment belongs to a Reserve
	// that this controller has not created.
	Taken bool
	// Ready is how many machines are ready in reserve, whoever requests them.
	Ready int
}

// Plan is what to do about a View.
type Plan struct {
	// Decisions are about buffers, by namespace and name.
	Decisions []Decision
	// Requests are the Reserves to change, by name.
	Requests []Request
	// Free is how much free room buffers had lately, by namespace/name.
	Free map[string]Free
	// Again is when to sync again without an event; 0 means never.
	Again time.Duration
}

// Request is a Reserve to create, change or delete.
type Request struct {
	// Pool is the MachineDeployment, and Machines how many spare machines to keep there. With 0,
	// the Reserve is deleted.
	Pool     string
	Machines int
	// Dedicated are those of them that are dedicated to owners.
	Dedicated []machine.Dedication
	// Prepare is what to prepare on the machines of the MachineDeployment.
	Prepare []autoscaling.Preparation
	// Reserve is the present Reserve; nil if there is none.
	Reserve *autoscaling.Reserve
}

// Name is the name of the Reserve.
func (r Request) Name() string {
	if r.Reserve != nil {
		return r.Reserve.Name
	}
	return ReserveName(r.Pool)
}

// Decision is about one buffer.
type Decision struct {
	Buffer *v1beta1.CapacityBuffer
	// Template is the PodTemplate that was used, if it was one.
	Template *corev1.PodTemplate
	// Problem is why the shape or the number of chunks is not known; nil if both are known.
	Problem *Problem
	// Asked is how many chunks the buffer asks for, without those that have been used, and Chunks
	// how many of them quotas allow. Quotas are those that limit it.
	Asked, Chunks int
	Quotas        []string
	// Fill is how far the buffer has been used, if it fills once; nil if it does not.
	Fill *Fill
	// Owner is the owner whose pods alone may use its machines; empty if all pods may.
	Owner machine.Owner
	// Placed is how many chunks have a place on machines that are requested or serve, and Ready on
	// machines that are ready. Free is how many of both are on machines that serve.
	Placed, Ready, Free int
	// Pools are the MachineDeployments that hold its chunks.
	Pools []string
	// Lack is why some chunks have no place; nil if all have one.
	Lack *Problem
	// Unprepared is why images are not prepared that the buffer asks for; empty if they are.
	Unprepared string
}

// Problem is a reason of a condition, with a message.
type Problem struct {
	Reason, Message string
	// unread reports whether something could not be read, and may be unchanged.
	unread bool
}
