// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// View contains all Reserves and MachineDeployments of a namespace at one instant. Nothing in it is
// changed.
type View struct {
	Now      time.Time
	Reserves []*v1alpha1.Reserve
	Pools    []Pool
}

// NewView returns the view of the Reserves and MachineDeployments of a namespace. Source has what
// belongs to them; only what something depends on is read.
func NewView(now time.Time, reserves []*v1alpha1.Reserve, deployments []*machine.MachineDeployment, source pool.Source) View {
	v := View{Now: now, Reserves: reserves}
	weighs, classes := slices.ContainsFunc(reserves, namesResources), v.DeviceClasses()
	for _, d := range deployments {
		one := Pool{Deployment: d}
		if len(reserves) > 0 {
			one.Exist, one.Ready = pool.CountSpares(d, source)
		}
		if wishes, _ := pool.WishesOf(d); len(reserves) > 0 && (weighs || wishes.Bounds != nil && wishes.Bounds.Excess != nil) {
			s := pool.Read(d, source, now)
			s.CountDevices(source, classes)
			one.Allocatable, one.Unknown = s.Allocatable, s.Unknown
		}
		v.Pools = append(v.Pools, one)
	}
	return v
}

// DeviceClasses returns the DeviceClasses whose devices the Reserves request.
func (v View) DeviceClasses() (classes []string) {
	for _, r := range v.Reserves {
		amounts := []v1alpha1.ReserveAmount{r.Spec.Amount}
		for _, s := range r.Spec.Schedules {
			amounts = append(amounts, s.Amount)
		}
		for _, amount := range amounts {
			excess, _ := machine.ParseExcess(string(amount)) // an invalid one names none
			classes = append(classes, excess.DeviceClasses()...)
		}
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

// namesResources reports whether a Reserve requests resources, so that the capacity of machines
// matters.
func namesResources(r *v1alpha1.Reserve) bool {
	return strings.Contains(string(r.Spec.Amount), "=") ||
		slices.ContainsFunc(r.Spec.Schedules, func(s v1alpha1.ReserveSchedule) bool { return strings.Contains(string(s.Amount), "=") })
}

// Pool is a MachineDeployment.
type Pool struct {
	Deployment *machine.MachineDeployment
	// Allocatable is what one machine offers to pods; nil if that is unknown, or if nothing depends
	// on it.
	Allocatable corev1.ResourceList
	// Unknown is why Allocatable lacks devices that a Reserve or its bounds name.
	Unknown pool.Unknown
	// Exist is how many machines it has in reserve, and Ready how many of them are ready, whoever
	// requests them.
	Exist, Ready int
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
	// Terms are what Desired is the largest of. There are none if the Reserve is suspended or
	// invalid.
	Terms []Term
	// Next is the next change by a schedule, nil if there is none.
	Next *Change
	// Parts are its MachineDeployments, by name.
	Parts []Part
	// Reason and Message are those of the condition Ready.
	Reason, Message string
}

// Term is one number that a Reserve requests.
type Term struct {
	// Schedule is the name of its schedule; empty for spec.replicas and spec.amount.
	Schedule string
	// Machines is the number of machines that it results in. Err is why that is unknown.
	Machines int
	Err      error
	// Active reports whether it is active, and Until is when that may change; zero if never.
	Active bool
	Until  time.Time
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
