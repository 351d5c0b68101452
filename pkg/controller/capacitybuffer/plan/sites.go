// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

const (
	// maxMachines is how many machines of all MachineDeployments are considered for chunks. Each
	// MachineDeployment has an equal part, but at least minMachines and at most maxPerPool.
	maxMachines, minMachines, maxPerPool = 4000, 20, 1000
)

// site is a MachineDeployment that can hold chunks.
type site struct {
	Pool
	// room is how many spare machines it may have, as far as they are considered. capped reports
	// whether bounds allow more.
	room   int
	capped bool
	// current is how many machines are requested there now, and ready how many spare machines are
	// ready, whoever requested them.
	current, ready int
	// dedicated are those of the current machines that are dedicated to owners.
	dedicated []machine.Dedication
	// blocked reports whether machines cannot be created there.
	blocked bool
	// size is the size of a machine, relative to the largest one of all sites.
	size int64
	// daemons are the pods of DaemonSets on each machine.
	daemons []*fit.Pod
}

// candidateSites returns the MachineDeployments that can hold chunks (law 5), by name. held is how
// many machines are requested of those about which too little is known now.
func (v *View) candidateSites() (all []site, held map[string]holding) {
	held = map[string]holding{}
	asleep := !slices.ContainsFunc(v.Pools, func(p Pool) bool { return p.Deployment.Spec.Replicas > 0 })
	for _, p := range v.Pools {
		d := p.Deployment
		bounds, err := pool.Parsed(d.Annotations, machine.BoundsAnnotation, machine.ParseBounds)
		switch {
		case d.DeletionTimestamp != nil || p.Taken || pool.Drained(d) || asleep && d.Labels[pool.WorkerPoolLabel] != "" || bounds == nil && err == nil:
		case err != nil || p.Node == nil:
			if r := v.reserveOf(d.Name); r != nil {
				held[d.Name] = holding{machines: int(max(0, r.Spec.Replicas)), dedicated: dedications(r)}
			}
		default:
			all = append(all, v.newSite(p, int(bounds.Max)))
		}
	}
	slices.SortFunc(all, func(a, b site) int { return cmp.Compare(a.Deployment.Name, b.Deployment.Name) })
	part := partOf(len(all))
	for i := range all {
		all[i].capped, all[i].room = all[i].room > part, min(all[i].room, part)
	}
	measure(all)
	return all, held
}

func (v *View) newSite(p Pool, limit int) site {
	d := p.Deployment
	s := site{Pool: p, room: max(0, limit-max(0, int(pool.Requested(d)))), ready: p.Ready, blocked: cannotBeMade(d)}
	if r := v.reserveOf(d.Name); r != nil {
		s.current, s.dedicated = int(max(0, r.Spec.Replicas)), dedications(r)
		s.blocked = s.blocked || slices.ContainsFunc(r.Status.Pools, func(p autoscaling.ReservePoolStatus) bool { return p.Blocked })
	}
	s.daemons = v.daemonsOn(s.reserveNode(0))
	return s
}

// partOf returns how many machines of each site are considered.
func partOf(sites int) int { return min(maxPerPool, max(minMachines, maxMachines/max(1, sites))) }

func cannotBeMade(d *machine.MachineDeployment) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == machine.ReserveReady {
			return c.Reason == reason.CannotBeMade
		}
	}
	return false
}

// measure compares machines by CPU and memory.
func measure(all []site) {
	var cpu, memory int64 = 1, 1
	for _, s := range all {
		cpu, memory = max(cpu, s.Node.Status.Allocatable.Cpu().MilliValue()), max(memory, s.Node.Status.Allocatable.Memory().Value())
	}
	for i, s := range all {
		all[i].size = int64(1000*float64(s.Node.Status.Allocatable.Cpu().MilliValue())/float64(cpu)) +
			int64(1000*float64(s.Node.Status.Allocatable.Memory().Value())/float64(memory))
	}
}

// poolLabel is a label of the nodes of a packing, by which chunks find the pool that their buffer
// names.
func poolLabel(name string) string { return v1beta1.PoolAnnotation + "/" + name }

// reserveNode returns a machine in reserve, as a Node.
func (s *site) reserveNode(i int) fit.Node {
	n := &corev1.Node{ObjectMeta: s.Node.ObjectMeta, Status: s.Node.Status}
	n.Name, n.Labels = fmt.Sprintf("%s/%d", s.Deployment.Name, i), maps.Clone(s.Node.Labels)
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	if _, ok := n.Labels[corev1.LabelHostname]; ok {
		n.Labels[corev1.LabelHostname] = n.Name
	}
	n.Labels[poolLabel(s.Deployment.Name)] = ""
	if name := pool.WorkerPoolOf(s.Deployment); name != "" {
		n.Labels[poolLabel(name)] = ""
	}
	n.Spec.Taints = append(slices.DeleteFunc(slices.Clone(s.Node.Spec.Taints), pool.IsReserveTaint), corev1.Taint{Key: machine.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule})
	return fit.Node{Object: n, Without: []string{machine.ReserveTaintKey}, Closed: true, Pods: s.daemons}
}

// daemonsOn returns the pods of DaemonSets that start on a node, as far as there is room.
func (v *View) daemonsOn(n fit.Node) (all []*fit.Pod) {
	n.Closed = false
	room := fit.NewRoom([]fit.Node{n})
	for _, p := range v.Daemons {
		if room.Ask(p, n.Object.Name) == fit.Fits {
			room.Put(p, n.Object.Name)
			all = append(all, p)
		}
	}
	return all
}
