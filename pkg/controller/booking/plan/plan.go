// SPDX-License-Identifier: Apache-2.0

// Package plan decides which machines of the reserve are booked for ProvisioningRequests, and the
// status of each request: it turns a View into a Plan. It is pure, and its laws are those of
// package booking.
package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/plural"
	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/internal/turns"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

const (
	// DefaultBooking is for how long machines are booked, as with cluster-autoscaler, and maxBooking the
	// longest time that a request can ask for.
	DefaultBooking, maxBooking = 10 * time.Minute, 24 * time.Hour
	// maxBookings is how many requests are decided about. Namespaces take turns, each with its oldest
	// first.
	maxBookings = 200
	// maxPerPool is how many requests can book machines of the same MachineDeployment, beside other owners
	// of machines there.
	maxPerPool = machine.MaxDedications / 2
	// lookAgain is when to sync again while a request waits, for changes without an event: of DaemonSets,
	// Nodes and MachineClasses.
	lookAgain = 10 * time.Minute
)

// New decides about all requests.
func New(v View) Plan {
	r := &round{View: v, free: map[string]int{}, booked: map[string][]machine.Dedication{}}
	slices.SortFunc(r.Pools, func(a, b Pool) int { return cmp.Compare(a.Deployment.Name, b.Deployment.Name) })
	var waiting []Request
	for _, request := range r.Requests {
		if request.is(provisioningv1.ConditionProvisioned) && !request.ended() {
			r.keep(request)
		} else if !request.ended() {
			waiting = append(waiting, request)
		}
	}
	r.countFree()
	for i, request := range inTurns(waiting) {
		r.decide(request, i < maxBookings)
	}
	slices.SortFunc(r.plan.Decisions, func(a, b Decision) int {
		return cmp.Or(cmp.Compare(a.Request.Namespace, b.Request.Namespace), cmp.Compare(a.Request.Name, b.Request.Name))
	})
	r.plan.Changes = r.changes()
	return r.plan
}

// inTurns returns requests in the order in which they count: the oldest of each namespace, then the
// second of each, and so on.
func inTurns(all []Request) []Request {
	all = slices.SortedFunc(slices.Values(all), func(a, b Request) int {
		x, y := a.Object, b.Object
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
	})
	return turns.ByNamespace(all, func(r Request) string { return r.Object.Namespace })
}

// round is a plan in progress.
type round struct {
	View
	plan Plan
	// free is how many machines of each MachineDeployment are ready and not dedicated to an owner.
	free map[string]int
	// booked are the machines that are booked of each MachineDeployment.
	booked map[string][]machine.Dedication
}

// OwnerOf returns the owner that machines are dedicated to which are booked for a request.
func OwnerOf(r *provisioningv1.ProvisioningRequest) machine.Owner {
	return machine.Owner(r.Namespace + "/" + machine.RequestKind + "/" + r.Name)
}

func (r Request) is(condition string) bool {
	return meta.IsStatusConditionTrue(r.Object.Status.Conditions, condition)
}

func (r Request) ended() bool {
	return r.is(provisioningv1.ConditionFailed) || r.is(provisioningv1.ConditionBookingExpired)
}

// keep keeps what is booked for a request that has been provisioned, without the machines that run its
// pods by now, until the booking expires.
func (r *round) keep(request Request) {
	o := request.Object
	d := Decision{Request: o, Left: map[string]int{}}
	before, all := machinesOf(o, provisioningv1.LeftDetail), machinesOf(o, provisioningv1.BookedDetail)
	for _, p := range r.Pools {
		name := p.Deployment.Name
		if n := min(before[name], all[name]-p.Used[keyOf(o)]); n > 0 {
			d.Left[name] = n
		}
	}
	if left := BookedUntil(o).Sub(r.Now); left > 0 {
		r.plan.Again = requeue.Sooner(r.plan.Again, left)
		for name, n := range d.Left {
			r.book(name, o, n)
		}
	} else {
		d.Conditions = []Condition{{Type: provisioningv1.ConditionBookingExpired, Holds: true, Reason: "BookingExpired", Message: fmt.Sprintf("The booking has expired after %v", bookingTime(o))}}
		d.Left = map[string]int{}
	}
	r.plan.Decisions = append(r.plan.Decisions, d)
}

func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

func (r *round) book(name string, o *provisioningv1.ProvisioningRequest, machines int) {
	r.booked[name] = append(r.booked[name], machine.Dedication{Owner: OwnerOf(o), Machines: int32(machines)})
}

// countFree counts the machines that can be booked: those that are ready, without those that are
// dedicated to others or booked already.
func (r *round) countFree() {
	own := map[machine.Owner]bool{}
	for _, request := range r.Requests {
		own[OwnerOf(request.Object)] = true
	}
	for _, p := range r.Pools {
		if p.Node == nil || p.Taken || p.Deployment.DeletionTimestamp != nil || pool.Drained(p.Deployment) {
			continue
		}
		n := p.Ready
		for _, d := range pool.Dedications(p.Deployment, int(pool.Requested(p.Deployment))) {
			if !own[d.Owner] {
				n -= int(d.Machines)
			}
		}
		for _, d := range r.booked[p.Deployment.Name] {
			n -= int(d.Machines)
		}
		r.free[p.Deployment.Name] = max(0, n)
	}
}

// decide books machines for a request that waits, for all of its pods or for none. It is provisioned
// once the machines are dedicated to it, so that no other pod takes them.
func (r *round) decide(request Request, counts bool) {
	o := request.Object
	d := Decision{Request: o, Conditions: []Condition{{Type: provisioningv1.ConditionAccepted, Holds: true, Reason: "Accepted", Message: "Evenkeel books machines of the reserve"}}}
	var machines map[string]int
	why := "Only " + strconv.Itoa(maxBookings) + " requests are considered at a time, and namespaces take turns"
	if counts {
		machines, why = r.machinesFor(request)
	}
	for name, n := range machines {
		r.free[name] -= n
		r.book(name, o, n)
	}
	switch {
	case len(machines) > 0 && r.dedicated(o, machines):
		d.Booked, d.Left = machines, machines
		d.provisioned(true, "CapacityIsProvisioned", "Machines are booked for all pods: "+textOf(machines))
		r.plan.Again = requeue.Sooner(r.plan.Again, bookingTime(o))
	case len(machines) > 0:
		d.provisioned(false, "CapacityIsFound", "Machines are being booked for all pods: "+textOf(machines))
	default:
		d.provisioned(false, "CapacityIsNotFound", why)
		r.failInTime(&d, request)
		r.plan.Again = requeue.Sooner(r.plan.Again, lookAgain)
	}
	r.plan.Decisions = append(r.plan.Decisions, d)
}

func (d *Decision) provisioned(holds bool, why, message string) {
	d.Conditions = append(d.Conditions, Condition{Type: provisioningv1.ConditionProvisioned, Holds: holds, Reason: why, Message: message})
}

// failInTime has a request fail that is not to wait any longer.
func (r *round) failInTime(d *Decision, request Request) {
	fail := func(why string) {
		d.Conditions = append(d.Conditions, Condition{Type: provisioningv1.ConditionFailed, Holds: true, Reason: "CapacityIsNotFound", Message: why})
	}
	if request.Object.Spec.Parameters[provisioningv1.NoRetryParameter] == "true" {
		fail("The reserve cannot serve the request now, and the parameter " + provisioningv1.NoRetryParameter + " is true")
		return
	}
	until, limited := WaitsUntil(request.Object)
	if !limited {
		return
	}
	if left := until.Sub(r.Now); left > 0 {
		r.plan.Again = requeue.Sooner(r.plan.Again, left)
		return
	}
	fail(fmt.Sprintf("The reserve could not serve the request within %v", until.Sub(request.Object.CreationTimestamp.Time)))
}

// WaitsUntil returns when a request fails that has not been served; false if it waits until it is deleted.
func WaitsUntil(o *provisioningv1.ProvisioningRequest) (time.Time, bool) {
	length, limited := seconds(o, provisioningv1.ValidUntilParameter, math.MaxInt32)
	return o.CreationTimestamp.Add(length), limited
}

// BookedUntil returns how long machines are booked for a request that has been provisioned.
func BookedUntil(o *provisioningv1.ProvisioningRequest) time.Time {
	since := o.CreationTimestamp
	if c := meta.FindStatusCondition(o.Status.Conditions, provisioningv1.ConditionProvisioned); c != nil {
		since = c.LastTransitionTime
	}
	return since.Add(bookingTime(o))
}

// seconds returns a parameter that is a number of seconds, up to a limit. A value that is none counts as not set.
func seconds(o *provisioningv1.ProvisioningRequest, name string, most int) (time.Duration, bool) {
	n, err := strconv.Atoi(string(o.Spec.Parameters[name]))
	if err != nil || n <= 0 {
		return 0, false
	}
	return time.Duration(min(n, most)) * time.Second, true
}

func bookingTime(o *provisioningv1.ProvisioningRequest) time.Duration {
	if length, set := seconds(o, provisioningv1.BookingParameter, int(maxBooking.Seconds())); set {
		return length
	}
	return DefaultBooking
}

// dedicated reports whether MachineDeployments show that machines are dedicated to a request.
func (r *round) dedicated(o *provisioningv1.ProvisioningRequest, machines map[string]int) bool {
	for _, p := range r.Pools {
		n := machines[p.Deployment.Name]
		if n == 0 {
			continue
		}
		if !slices.ContainsFunc(pool.Dedications(p.Deployment, int(pool.Requested(p.Deployment))), func(d machine.Dedication) bool {
			return d.Owner == OwnerOf(o) && int(d.Machines) >= n
		}) {
			return false
		}
	}
	return true
}

// machinesFor returns how many machines of each MachineDeployment hold all pods of a request, or why
// the free ones do not.
func (r *round) machinesFor(request Request) (map[string]int, string) {
	o := request.Object
	switch {
	case request.Lacks != "":
		return nil, request.Lacks
	case len(OwnerOf(o)) > machine.MaxOwnerLength:
		return nil, "The names of the namespace and of the request are too long together: use a shorter name"
	}
	demand, total := fit.Demand{Budget: 4 * fit.MaxWork}, 0
	for i, set := range o.Spec.PodSets {
		if request.Templates[i] == nil {
			return nil, fmt.Sprintf("PodTemplate %s does not exist in namespace %s", set.PodTemplateRef.Name, o.Namespace)
		}
		pod := fit.Read(templatePod(request.Templates[i]), true)
		if pod.Unclear != "" {
			return nil, fmt.Sprintf("Evenkeel cannot decide where a pod of PodTemplate %s can run: %s", set.PodTemplateRef.Name, pod.Unclear)
		}
		for range max(0, set.Count) {
			demand.Pods = append(demand.Pods, pod)
		}
		if total += int(max(0, set.Count)); total > maxPods {
			return nil, fmt.Sprintf("The request is for more than %d pods: split it", maxPods)
		}
	}
	demand.Least = total
	nodes, groups, poolOf := r.freeMachines(total)
	packing := fit.Pack(fit.NewRoom(nodes), demand, groups)
	if len(packing.Places) < total {
		return nil, r.shortage(packing, groups, total)
	}
	used := map[string]bool{}
	for _, place := range packing.Places { // a pod that tolerates the taint of the reserve opens no machine
		used[place.Node] = true
	}
	machines := map[string]int{}
	for node := range used {
		machines[poolOf[node]]++
	}
	return machines, ""
}

// maxPods is how many pods a request can be for.
const maxPods = 5000

// templatePod returns a pod of a template as one that waits, alone.
func templatePod(template *corev1.PodTemplate) *corev1.Pod {
	pod := fit.TemplatePod(template.Namespace, template.Name, &template.Template)
	pod.Spec.NodeName, pod.Spec.SchedulingGates, pod.Spec.SchedulingGroup = "", nil, nil
	return pod
}

// shortage says why the free machines do not hold all pods.
func (r *round) shortage(packing fit.Packing, groups []fit.Group, pods int) string {
	if len(packing.Unfinished) > 0 {
		return "The request has too many different pods to find a place for each: split it"
	}
	free := 0
	for _, g := range groups {
		free += g.Limit
	}
	return fmt.Sprintf("The reserve has no room for all of %s: %s ready and not booked", plural.Of(pods, "pod"), plural.Of(free, "machine"))
}

// freeMachines returns the machines that can be booked, at most a number of each MachineDeployment, and
// the MachineDeployments of their nodes.
func (r *round) freeMachines(most int) (nodes []fit.Node, groups []fit.Group, poolOf map[string]string) {
	poolOf = map[string]string{}
	for _, p := range r.Pools {
		name := p.Deployment.Name
		n := min(r.free[name], most)
		if n <= 0 || len(r.booked[name]) >= maxPerPool {
			continue
		}
		g := fit.Group{Name: name, Limit: n}
		daemons := fit.Fill(spareNode(p, 0), r.Daemons)
		for i := range n {
			node := spareNode(p, i)
			node.Pods = daemons
			nodes, g.Nodes = append(nodes, node), append(g.Nodes, node.Object.Name)
			poolOf[node.Object.Name] = name
		}
		groups = append(groups, g)
	}
	return nodes, groups, poolOf
}

// spareNode returns a machine in reserve, as a Node.
func spareNode(p Pool, i int) fit.Node {
	n := pool.NodeLike(p.Node, fmt.Sprintf("%s/%d", p.Deployment.Name, i))
	pool.AddReserveTaint(n)
	return fit.Node{Object: n, Without: []string{machine.ReserveTaintKey}, Closed: true}
}
