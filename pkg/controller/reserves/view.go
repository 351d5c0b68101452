// SPDX-License-Identifier: Apache-2.0

package reserves

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// View contains all Reserves and MachineDeployments of a namespace at one instant. Nothing in it is
// changed.
type View struct {
	Now      time.Time
	Reserves []*v1alpha1.Reserve
	Pools    []Pool
}

// Pool is a MachineDeployment.
type Pool struct {
	Deployment *machine.MachineDeployment
	// Allocatable is what one machine offers to pods; nil if that is unknown, or if nothing depends
	// on it.
	Allocatable corev1.ResourceList
}

// Plan is what to do about a View.
type Plan struct {
	// Decisions are the decisions about Reserves, by name.
	Decisions []Decision
	// Requests are the annotations to change, by name of the MachineDeployment.
	Requests []Request
	// Again is when to look again without an event; 0 means never.
	Again time.Duration
}

// Request is what to write to a MachineDeployment.
type Request struct {
	Deployment *machine.MachineDeployment
	// Text is the annotation requested-excess, and Dedicated the annotation dedicated; empty to
	// remove one.
	Text, Dedicated string
}

// Decision is the decision about one Reserve.
type Decision struct {
	Reserve *v1alpha1.Reserve
	// Desired is how many machines it requests, and Active are the active schedules.
	Desired int
	Active  []string
	// Next is the next change by a schedule, nil if there is none.
	Next *Change
	// Parts are its MachineDeployments, by name.
	Parts []Part
	// Reason and Message are those of the condition Ready.
	Reason, Message string
}

// Change is a change by a schedule.
type Change struct {
	At      time.Time
	Desired int
}

// Part is what a Reserve requests of one MachineDeployment.
type Part struct {
	Deployment *machine.MachineDeployment
	// Machines is how many it requests. Exist and Ready are how many of them exist and are ready.
	Machines, Exist, Ready int
	// Blocked reports whether machines cannot be created there.
	Blocked bool
	// CountedBy is what counts there instead; empty if this Reserve counts.
	CountedBy string
}
