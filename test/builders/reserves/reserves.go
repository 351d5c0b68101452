// SPDX-License-Identifier: Apache-2.0

// Package reserves builds Reserves and MachineDeployments for tests of the controller and its
// plans.
package reserves

import (
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
)

// Namespace is where all objects are.
const Namespace = "default"

// Monday is when plans are made: 2 March 2026, 12:00 in Berlin.
var Monday = time.Date(2026, 3, 2, 11, 0, 0, 0, time.UTC)

// Wish returns a Reserve that selects MachineDeployments with the label pool=shop.
func Wish(name string, change ...func(*v1alpha1.Reserve)) *v1alpha1.Reserve {
	r := &v1alpha1.Reserve{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, UID: "uid-of-it", Generation: 2}}
	r.Spec.Pools.Selector = metav1.SetAsLabelSelector(map[string]string{"pool": "shop"})
	for _, c := range change {
		c(r)
	}
	return r
}

// Replicas sets spec.replicas.
func Replicas(n int32) func(*v1alpha1.Reserve) {
	return func(r *v1alpha1.Reserve) { r.Spec.Replicas = n }
}

// Amount sets spec.amount.
func Amount(text string) func(*v1alpha1.Reserve) {
	return func(r *v1alpha1.Reserve) { r.Spec.Amount = v1alpha1.ReserveAmount(text) }
}

// Names selects MachineDeployments by name, and by nothing else.
func Names(all ...string) func(*v1alpha1.Reserve) {
	return func(r *v1alpha1.Reserve) { r.Spec.Pools = v1alpha1.ReservePools{Names: all} }
}

// Scheduled adds a schedule in Berlin, until an end or for a duration.
func Scheduled(name, start, end string, n int32) func(*v1alpha1.Reserve) {
	return func(r *v1alpha1.Reserve) {
		s := v1alpha1.ReserveSchedule{Name: name, Start: v1alpha1.CronText(start), TimeZone: "Europe/Berlin", Replicas: ptr.To(n)}
		if strings.Contains(end, " ") {
			s.End = v1alpha1.CronText(end)
		} else {
			s.Duration = end
		}
		r.Spec.Schedules = append(r.Spec.Schedules, s)
	}
}

// OfficeHours adds a schedule: five machines from Monday to Friday.
var OfficeHours = Scheduled("office-hours", "0 7 * * MON-FRI", "0 19 * * MON-FRI", 5)

// Site returns a MachineDeployment with the label pool=shop.
func Site(name string, n int32, change ...func(*machine.MachineDeployment)) plan.Pool {
	d := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, Labels: map[string]string{"pool": "shop"}, Annotations: map[string]string{}}}
	d.Spec.Replicas = n
	for _, c := range change {
		c(d)
	}
	return plan.Pool{Deployment: d}
}

// Annotated sets an annotation.
func Annotated(key, value string) func(*machine.MachineDeployment) {
	return func(d *machine.MachineDeployment) { d.Annotations[key] = value }
}

// Bounds sets the annotation bounds.
func Bounds(text string) func(*machine.MachineDeployment) {
	return Annotated(machine.BoundsAnnotation, text)
}

// Labelled sets a label.
func Labelled(key, value string) func(*machine.MachineDeployment) {
	return func(d *machine.MachineDeployment) { d.Labels[key] = value }
}

// Holds gives a MachineDeployment machines in reserve, and the condition that the controller of
// MachineDeployments then reports; none if why is empty.
func Holds(all, ready int, why string) func(*plan.Pool) {
	return func(p *plan.Pool) {
		p.Exist, p.Ready, p.Deployment.Status.Conditions = all, ready, nil
		if why == "" {
			return
		}
		status := mcm.ConditionFalse
		if why == reason.Complete {
			status = mcm.ConditionTrue
		}
		p.Deployment.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: machine.ReserveReady, Status: status, Reason: why}}
	}
}

// Sized gives each machine of a pool that many CPUs.
func Sized(p plan.Pool, cpu string) plan.Pool {
	p.Allocatable = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
	return p
}

// Requests describes the annotations to write, as in "a: shop=2, b: -".
func Requests(p plan.Plan) string {
	var words []string
	for _, r := range p.Requests {
		text := r.Text
		if text == "" {
			text = "-"
		}
		words = append(words, r.Deployment.Name+": "+text)
	}
	return strings.Join(words, ", ")
}

// Work does what the controller of MachineDeployments does in the end.
func Work(p *plan.Pool, fails bool) {
	d, n := p.Deployment, 0
	if r, err := machine.ParseRequestedExcess(d.Annotations[machine.RequestedExcessAnnotation]); err == nil {
		n = int(r.Machines)
	}
	if b, err := machine.ParseBounds(d.Annotations[machine.BoundsAnnotation]); err == nil {
		n = max(0, min(n, int(b.Max-d.Spec.Replicas)))
	}
	switch {
	case fails && n > p.Ready:
		Holds(p.Ready, p.Ready, reason.CannotBeMade)(p)
	case n == 0:
		Holds(0, 0, "")(p)
	default:
		Holds(n, n, reason.Complete)(p)
	}
}
