// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

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
	Buffers []*v1beta1.CapacityBuffer
	Nodes   []*corev1.Node
	Pods    []*corev1.Pod
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
		Buffers:     r.buffers(),
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
		source: pool.NewList(pool.Objects{Sets: o.Sets, Machines: o.Machines, Classes: o.Classes, Nodes: o.Nodes, Pods: o.Pods}),
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
