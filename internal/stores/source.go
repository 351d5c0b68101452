// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"cmp"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Kinds contains the stores of what belongs to a MachineDeployment, with the indexes of this
// package. Stores of the target cluster are nil if there is none.
type Kinds struct {
	Sets, Machines, Classes, Nodes, Pods cache.Indexer
}

// OnSpares calls changed with each Machine that enters or leaves the reserve, or becomes ready or
// unready in it, or gets another owner there.
func OnSpares(machines cache.SharedIndexInformer, changed func(machine any)) error {
	type state struct {
		exists, ready bool
		owner         types.UID
	}
	stateOf := func(item any) (s state) {
		if m, ok := item.(*mcm.Machine); ok {
			if s.exists, s.ready = pool.Spare(m); s.exists {
				s.owner = ownerOf(m)
			}
		}
		return s
	}
	_, err := machines.AddEventHandler(handlers.OnChange(func(was, is any) {
		if stateOf(was) != stateOf(is) {
			changed(cmp.Or(is, was))
		}
	}))
	return err
}

// OnSets calls changed with each MachineSet that is added or deleted, created again unseen, or gets
// another owner. Each kind is watched on its own, so that a MachineSet may be seen after its machines.
// Until then, these belong to no MachineDeployment.
func OnSets(sets cache.SharedIndexInformer, changed func(set any)) error {
	_, err := sets.AddEventHandler(handlers.OnChange(func(was, is any) {
		before, _ := was.(*mcm.MachineSet)
		after, _ := is.(*mcm.MachineSet)
		if before == nil || after == nil || before.UID != after.UID || ownerOf(before) != ownerOf(after) {
			changed(cmp.Or(is, was))
		}
	}))
	return err
}

// Source is a [pool.Source] over the stores of informers.
type Source struct {
	Kinds Kinds
	// Counter counts the devices of Nodes; nil if nobody asks.
	Counter pool.DeviceCounter
}

var _ pool.Source = (*Source)(nil)

// Sets implements [pool.Source].
func (s *Source) Sets(deployment types.UID) []*mcm.MachineSet {
	return Indexed[*mcm.MachineSet](s.Kinds.Sets, ByOwner, string(deployment))
}

// Machines implements [pool.Source].
func (s *Source) Machines(set types.UID) []*mcm.Machine {
	return Indexed[*mcm.Machine](s.Kinds.Machines, ByOwner, string(set))
}

// Class implements [pool.Source].
func (s *Source) Class(namespace, name string) *mcm.MachineClass {
	return Find[mcm.MachineClass](s.Kinds.Classes, namespace+"/"+name)
}

// Node implements [pool.Source].
func (s *Source) Node(name string) *corev1.Node { return Find[corev1.Node](s.Kinds.Nodes, name) }

// Pods implements [pool.Source].
func (s *Source) Pods(node string) []*corev1.Pod {
	return Indexed[*corev1.Pod](s.Kinds.Pods, ByNode, node)
}

// Devices implements [pool.Source].
func (s *Source) Devices(node, class string) (n int, unknown string) {
	if s.Counter == nil {
		return 0, ""
	}
	return s.Counter.Count(node, class)
}
