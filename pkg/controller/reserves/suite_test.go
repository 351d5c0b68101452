// SPDX-License-Identifier: Apache-2.0

package reserves_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/reserves"
)

var suite *testing.T

func TestReserves(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Reserves")
}

const ns = "default"

// monday is when plans are made: 2 March 2026, 12:00 in Berlin.
var monday = time.Date(2026, 3, 2, 11, 0, 0, 0, time.UTC)

// wish is a Reserve that selects MachineDeployments with the label pool=shop.
func wish(name string, change ...func(*v1alpha1.Reserve)) *v1alpha1.Reserve {
	r := &v1alpha1.Reserve{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns, UID: "uid-of-it", Generation: 2}}
	r.Spec.Pools.Selector = metav1.SetAsLabelSelector(map[string]string{"pool": "shop"})
	for _, c := range change {
		c(r)
	}
	return r
}

func replicas(n int32) func(*v1alpha1.Reserve) {
	return func(r *v1alpha1.Reserve) { r.Spec.Replicas = n }
}

func amount(text string) func(*v1alpha1.Reserve) {
	return func(r *v1alpha1.Reserve) { r.Spec.Amount = v1alpha1.ReserveAmount(text) }
}

func names(all ...string) func(*v1alpha1.Reserve) {
	return func(r *v1alpha1.Reserve) { r.Spec.Pools = v1alpha1.ReservePools{Names: all} }
}

// scheduled adds a schedule in Berlin, until an end or for a duration.
func scheduled(name, start, end string, n int32) func(*v1alpha1.Reserve) {
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

// officeHours are five machines from Monday to Friday.
var officeHours = scheduled("office-hours", "0 7 * * MON-FRI", "0 19 * * MON-FRI", 5)

// site is a MachineDeployment with the label pool=shop.
func site(name string, n int32, change ...func(*machine.MachineDeployment)) Pool {
	d := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns, Labels: map[string]string{"pool": "shop"}, Annotations: map[string]string{}}}
	d.Spec.Replicas = n
	for _, c := range change {
		c(d)
	}
	return Pool{Deployment: d}
}

func annotated(key, value string) func(*machine.MachineDeployment) {
	return func(d *machine.MachineDeployment) { d.Annotations[key] = value }
}

func bounds(text string) func(*machine.MachineDeployment) {
	return annotated(machine.BoundsAnnotation, text)
}

func labelled(key, value string) func(*machine.MachineDeployment) {
	return func(d *machine.MachineDeployment) { d.Labels[key] = value }
}

// holds gives a MachineDeployment machines in reserve, and the condition that the machine-taint
// controller then reports; none if why is empty.
func holds(all, ready int, why string) func(*Pool) {
	return func(p *Pool) {
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

// sized gives each machine of a pool that much.
func sized(p Pool, cpu string) Pool {
	p.Allocatable = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
	return p
}

// spread is what a decision asks for where, as in "a=2 b=1*", where * marks one that is blocked.
func spread(d Decision) string {
	var words []string
	for _, p := range d.Parts {
		mark := ""
		if p.Blocked {
			mark = "*"
		}
		words = append(words, fmt.Sprintf("%s=%d%s", p.Deployment.Name, p.Machines, mark))
	}
	return strings.Join(words, " ")
}

// requests are the annotations to write, as in "a: shop=2, b: -".
func requests(p Plan) string {
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

// after is a view in which a plan has been carried out, and machines are as they are requested, but for those of some MachineDeployments.
func after(v View, out ...string) View {
	p := NewPlan(v)
	next := View{Now: v.Now}
	for _, d := range p.Decisions {
		r := d.Reserve.DeepCopy()
		r.Status = NewStatus(d, v.Now)
		if known := reason.Reserve["Ready"].Find(d.Reason); known.Meaning == "" {
			panic("no table explains " + d.Reason)
		}
		next.Reserves = append(next.Reserves, r)
	}
	for _, pool := range v.Pools {
		pool.Deployment = pool.Deployment.DeepCopy()
		for _, r := range p.Requests {
			if r.Deployment.Name == pool.Deployment.Name {
				pool.Deployment.Annotations[machine.RequestedExcessAnnotation] = r.Text
				if r.Text == "" {
					delete(pool.Deployment.Annotations, machine.RequestedExcessAnnotation)
				}
			}
		}
		work(&pool, strings.Contains(strings.Join(out, " "), pool.Deployment.Name))
		next.Pools = append(next.Pools, pool)
	}
	return next
}

// work does what the machine-taint controller does in the end.
func work(p *Pool, fails bool) {
	d, n := p.Deployment, 0
	if r, err := machine.ParseRequestedExcess(d.Annotations[machine.RequestedExcessAnnotation]); err == nil {
		n = int(r.Machines)
	}
	if b, err := machine.ParseBounds(d.Annotations[machine.BoundsAnnotation]); err == nil {
		n = max(0, min(n, int(b.Max-d.Spec.Replicas)))
	}
	switch {
	case fails && n > p.Ready:
		holds(p.Ready, p.Ready, reason.CannotBeMade)(p)
	case n == 0:
		holds(0, 0, "")(p)
	default:
		holds(n, n, reason.Complete)(p)
	}
}

func ready(r *v1alpha1.Reserve) metav1.Condition {
	return *meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
}
