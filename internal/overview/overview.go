// SPDX-License-Identifier: Apache-2.0

// Package overview is what the plugin's screens, pages and JSON show: pools by zone, their
// machines, Balancers and federated autoscalers at one instant, and their problems. It is pure.
package overview

import (
	"cmp"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// Overview is the state of everything at one instant.
type Overview struct {
	// At is when the objects were read.
	At time.Time `json:"at"`
	// Pools are sorted by namespace and name.
	Pools []Pool `json:"pools"`
	// Reserves are sorted by namespace and name.
	Reserves []Reserve `json:"reserves,omitempty"`
	// Balancers are sorted by namespace and name.
	Balancers []Balancer `json:"balancers"`
	// Federated are the federated autoscalers, sorted by namespace and name.
	Federated []Federated `json:"federated"`
	// Buffers are the CapacityBuffers with Evenkeel's strategy, sorted by namespace and name.
	Buffers []Buffer `json:"buffers,omitempty"`
	// Requests are the ProvisioningRequests of Evenkeel's class, sorted by namespace and name.
	Requests []Request `json:"requests,omitempty"`
	// PodsWaiting is how many pods the scheduler found no node for; -1 if pods could not be read.
	PodsWaiting int `json:"podsWaiting"`
	// Troubles are the problems, the worst first.
	Troubles []Trouble `json:"troubles"`
	// Missing describes what could not be read, one per line.
	Missing []string `json:"missing,omitempty"`
}

// Pool consists of MachineDeployments that differ only in their zone.
type Pool struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Excess is the excess of the whole pool, as it was written; empty if each zone has an excess
	// of its own.
	Excess string `json:"excess,omitempty"`
	// Skew is the difference in replicas between the largest and the smallest zone.
	Skew int `json:"skew"`
	// Zones are sorted by zone, then by name.
	Zones []Zone `json:"zones"`
}

// Zone is one MachineDeployment.
type Zone struct {
	// Name is the MachineDeployment's name.
	Name string `json:"name"`
	// Zone is the zone of its machines; empty if that is unknown.
	Zone string `json:"zone,omitempty"`
	// Replicas is R: machines for workload.
	Replicas int `json:"replicas"`
	// Excess is X: desired machines beyond replicas.
	Excess int `json:"excess"`
	// Asked is the excess as it was written: a count, a percentage, resources, or nothing.
	Asked string `json:"asked,omitempty"`
	// Limited reports whether that is more than the bounds leave room for.
	Limited bool `json:"limited,omitempty"`
	// Reserve is the name of the Reserve that requests the excess; empty if none does, or not more
	// than is requested anyway.
	Reserve string `json:"reserve,omitempty"`
	// Dedicated is how many machines in reserve are kept for each owner, as in
	// "shop/Deployment/web=2".
	Dedicated string `json:"dedicated,omitempty"`
	// Prepared is how many machines of the reserve are ready and have the images that are asked for; nil if none are
	// asked for.
	Prepared *int `json:"prepared,omitempty"`
	// Applied is A: what machine-controller-manager is asked to run on top of replicas now.
	Applied int `json:"applied"`
	// Counted is how many machines of the reserve spec.replicas includes.
	Counted int `json:"counted,omitempty"`
	// Bounds are min and max; nil if there are none.
	Bounds *Bounds `json:"bounds,omitempty"`
	// Rollout reports whether machines of an older template are being replaced.
	Rollout bool `json:"rollout,omitempty"`
	// ReserveReady is the condition of that name.
	ReserveReady Condition `json:"reserveReady"`
	// Count is the number of machines in each state.
	Count map[State]int `json:"count"`
	// Machines are sorted by state, then the oldest first.
	Machines []Machine `json:"machines"`
}

// Bounds limit a MachineDeployment's machines.
type Bounds struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Condition is one of an object's conditions.
type Condition struct {
	// Status is True, False or Unknown; empty if the object has no such condition.
	Status  string    `json:"status,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// State is the state of a machine.
type State string

// The states, in the order in which they are shown.
const (
	Working        State = "working"
	Booting        State = "booting"
	ReserveReady   State = "reserve ready"
	ReserveBooting State = "reserve booting"
	Leaving        State = "leaving"
	Failed         State = "failed"
)

// States are all states, in the order in which they are shown.
var States = []State{Working, Booting, ReserveReady, ReserveBooting, Leaving, Failed}

// Machine is one machine.
type Machine struct {
	Name  string `json:"name"`
	Node  string `json:"node,omitempty"`
	State State  `json:"state"`
	// Since is when it entered the reserve, began to leave or failed, and otherwise when it was
	// created.
	Since time.Time `json:"since"`
	// Pods is how many of its pods would have to move; -1 if pods could not be read.
	Pods int `json:"pods"`
	// Dedicated is the owner whose pods alone may use it; empty if all may.
	Dedicated string `json:"dedicated,omitempty"`
	// Images describes how far images are that are pulled on a machine in reserve; empty if none are.
	Images string `json:"images,omitempty"`
	// Why describes a problem; empty if there is none.
	Why string `json:"why,omitempty"`
}

// Balancer is one Balancer.
type Balancer struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Policy    string `json:"policy"`
	Replicas  int    `json:"replicas"`
	// Targets are in the order of the spec.
	Targets []Target `json:"targets"`
}

// Target is a target of a Balancer.
type Target struct {
	Name string `json:"name"`
	// Min and Max limit the share; Max is nil without a limit.
	Min int  `json:"min"`
	Max *int `json:"max,omitempty"`
	// Wanted is its share, Current what it has, Ready how many of those are ready.
	Wanted  int `json:"wanted"`
	Current int `json:"current"`
	Ready   int `json:"ready"`
	// Why describes a problem; empty if there is none.
	Why string `json:"why,omitempty"`
}

// Federated is one FederatedHorizontalPodAutoscaler.
type Federated struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Workload  string    `json:"workload"`
	Min       int       `json:"min"`
	Max       int       `json:"max"`
	Clusters  []Cluster `json:"clusters"`
}

// Cluster is a federated autoscaler's part in one member cluster.
type Cluster struct {
	Name string `json:"name"`
	// Min and Max are what the cluster's own autoscaler has confirmed.
	Min     int `json:"min"`
	Max     int `json:"max"`
	Current int `json:"current"`
	Desired int `json:"desired"`
	Ready   int `json:"ready"`
	// State is the cluster's state for the autoscaler: Idle, Joining, Waiting, Used, Frozen,
	// Refused, Leaving, Unreachable.
	State string `json:"state,omitempty"`
	// Why explains the state, if it is not obvious.
	Why string `json:"why,omitempty"`
	// Reachable reports whether the cluster answers. Otherwise, the other fields are old.
	Reachable bool `json:"reachable"`
	// Limited reports whether it would scale further without its max.
	Limited bool `json:"limited"`
}

// Reserve is one Reserve, as its status describes it.
type Reserve struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Wanted is how many machines are desired now, Current how many of them exist, and ReadyMachines
	// how many are ready.
	Wanted        int `json:"wanted"`
	Current       int `json:"current"`
	ReadyMachines int `json:"readyMachines"`
	// Active are the schedules that are active.
	Active []string `json:"active,omitempty"`
	// Next is the next change by a schedule; nil if there is none.
	Next *Change `json:"next,omitempty"`
	// Ready is the condition of that name.
	Ready Condition `json:"ready"`
}

// Change is a change of a number by a schedule.
type Change struct {
	At     time.Time `json:"at"`
	Wanted int       `json:"wanted"`
}

// Buffer is one CapacityBuffer.
type Buffer struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Shape is what a chunk is like, as in "Deployment/web".
	Shape string `json:"shape,omitempty"`
	// Chunks is how many it asks room for, as far as quotas allow; -1 if that is not known.
	Chunks int `json:"chunks"`
	// Dedicated is whose pods alone may use its machines, as it was written; empty if all may.
	Dedicated string `json:"dedicated,omitempty"`
	// Ready is the condition of that name.
	Ready Condition `json:"ready"`
}

// Trouble is one problem.
type Trouble struct {
	// Object is kind/namespace/name.
	Object string `json:"object"`
	// What is wrong, and what to Do about it.
	What string `json:"what"`
	Do   string `json:"do"`
}

// Objects are the input of an Overview, in any order. None of them is changed.
type Objects struct {
	// At is when they were read.
	At time.Time

	// Objects of the control cluster.
	Deployments []*v1alpha1.MachineDeployment
	Sets        []*mcm.MachineSet
	Machines    []*mcm.Machine
	Classes     []*mcm.MachineClass
	Balancers   []*balancer.Balancer
	Federated   []*autoscaling.FederatedHorizontalPodAutoscaler
	Reserves    []*autoscaling.Reserve

	// Objects of the target cluster.
	Buffers  []*v1beta1.CapacityBuffer
	Requests []*provisioningv1.ProvisioningRequest
	Nodes    []*corev1.Node
	Pods     []*corev1.Pod
	// Slices and DeviceClasses are read only if an excess names devices, and Devices counts these; nil
	// if they are not read.
	Slices        []*resourceapi.ResourceSlice
	DeviceClasses []*resourceapi.DeviceClass
	Devices       pool.DeviceCounter
	// NodesUnknown and PodsUnknown report whether these could not be read, MachinesUnknown whether
	// MachineDeployments, MachineSets or Machines could not.
	NodesUnknown, PodsUnknown, MachinesUnknown bool

	// Missing describes what could not be read, one per line.
	Missing []string
	// PoolLabels name pools; the first one that a MachineDeployment has counts.
	PoolLabels []string
	// Similar is which MachineDeployments without such a label are a pool; nil for the defaults.
	Similar *similar.Options
	// Draining contains the namespaces whose managers give up all reserves, whatever requests them.
	Draining map[string]bool
	// BootPatience is how long a machine may take to become ready; zero for the default.
	BootPatience time.Duration
}

// BootLimit returns BootPatience or the default.
func (o Objects) BootLimit() time.Duration { return cmp.Or(o.BootPatience, DefaultBootPatience) }

// Defaults of the controllers' flags.
const (
	DefaultPoolLabel    = "worker.gardener.cloud/pool"
	DefaultBootPatience = 15 * time.Minute
)

// New returns an Overview. It is total: what it cannot read becomes a problem in the result.
func New(o Objects) Overview {
	if o.PoolLabels == nil {
		o.PoolLabels = []string{DefaultPoolLabel}
	}
	if o.Similar == nil {
		o.Similar = ptr.To(similar.Defaults())
	}
	o.BootPatience = o.BootLimit()
	r := newReading(o)
	v := Overview{
		At: o.At, Pools: r.pools(), Reserves: r.reserves(), Balancers: r.balancers(), Federated: r.federated(),
		Buffers: r.buffers(), Requests: r.requests(),
		PodsWaiting: r.waitingPods(), Missing: slices.Clone(o.Missing),
	}
	v.Troubles = r.troubles()
	return v
}

// reading contains the objects and what was derived from them.
type reading struct {
	Objects
	source *pool.List
	// snapshots of the MachineDeployments.
	snapshots map[*v1alpha1.MachineDeployment]pool.Snapshot
	// waiting are the pods for which the scheduler found no node.
	waiting []*corev1.Pod
	// preparers are the pods that pull images, by Node.
	preparers map[string][]*corev1.Pod
	// samples contains, for each zone that has one, a ready machine in reserve with its Node.
	samples []sample
	// dedicated reports whether there are ready machines in reserve that only some pods may use, unseen
	// whether there are some whose Nodes cannot be seen.
	dedicated, unseen bool
	found             []finding
}

func newReading(o Objects) *reading {
	r := &reading{
		Objects: o, snapshots: map[*v1alpha1.MachineDeployment]pool.Snapshot{},
		source:    pool.NewList(pool.Objects{Sets: o.Sets, Machines: o.Machines, Classes: o.Classes, Nodes: o.Nodes, Pods: o.Pods, Devices: o.Devices}),
		preparers: preparersOf(o.Pods),
	}
	for _, d := range o.Deployments {
		r.snapshots[d] = pool.Read(d, r.source, o.At)
	}
	for _, p := range o.Pods {
		if p.Spec.NodeName == "" && isUnschedulable(p) {
			r.waiting = append(r.waiting, p)
		}
	}
	slices.SortFunc(r.waiting, byName)
	return r
}

// byName orders objects.
func byName[T metav1.Object](a, b T) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}
