// SPDX-License-Identifier: Apache-2.0

package size

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	requests "k8s.io/component-helpers/resource"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

const (
	// maxBoots is how many boots are read, the latest ones.
	maxBoots = 50
	// longestBoot is the longest time between the creation of a Machine and its Node's readiness
	// that counts as a boot: later, a Node that was not ready for a while has become ready again.
	longestBoot = overview.DefaultBootPatience
)

// DefaultPods is how many pods a machine runs if its Node does not say so: the default of the
// kubelet.
var DefaultPods = resource.MustParse("110")

// Pool is what a MachineDeployment shows of its machines.
type Pool struct {
	Namespace, Name string
	// Machine is what one machine has for workload: what its Node offers, without what DaemonSets
	// use. Nil if that is unknown.
	Machine corev1.ResourceList
	// Boot contains the times that its machines took to become ready, the latest last.
	Boot []time.Duration
	// Bounds are nil if there are none.
	Bounds *v1alpha1.Bounds
	// Current is the excess that is requested now, whatever bounds leave of it. Own is the part of
	// it that the MachineDeployment asks for itself, and Where is the place.
	Current, Own int
	Where        string
	// Nodes are the names of the Nodes of its machines, as the Machines name them: a user may have
	// no right to read Nodes. Nil if the Machines could not be read.
	Nodes map[string]bool
	// DaemonsUnknown reports whether Machine includes what DaemonSets use, because pods could not be
	// read.
	DaemonsUnknown bool
}

// ErrNotFound is returned for a MachineDeployment that does not exist.
var ErrNotFound = errors.New("not found")

// ReadPool reads a MachineDeployment.
func ReadPool(o overview.Objects, name string) (Pool, error) {
	var named []*v1alpha1.MachineDeployment
	for _, d := range o.Deployments {
		if d.Name == name {
			named = append(named, d)
		}
	}
	switch {
	case len(named) == 0 && len(o.Missing) > 0:
		return Pool{}, fmt.Errorf("machinedeployment %q: %w (could not read: %s)", name, ErrNotFound, strings.Join(o.Missing, "; "))
	case len(named) == 0:
		return Pool{}, fmt.Errorf("machinedeployment %q: %w", name, ErrNotFound)
	case len(named) > 1:
		return Pool{}, fmt.Errorf("machinedeployment %q exists in several namespaces: select one with -n", name)
	}
	source := pool.NewList(pool.Objects{Sets: o.Sets, Machines: o.Machines, Classes: o.Classes, Nodes: o.Nodes, Pods: o.Pods, Devices: o.Devices})
	s := pool.Read(named[0], source, o.At)
	p := Pool{Namespace: s.Deployment.Namespace, Name: name, Bounds: s.Wishes.Bounds, Nodes: map[string]bool{}}
	for _, m := range s.Machines {
		if m.Node != nil || m.Unseen {
			p.Nodes[m.Object.Labels[mcm.NodeLabelKey]] = true
		}
	}
	if o.MachinesUnknown {
		p.Nodes = nil
	}
	p.readExcess(s)
	p.DaemonsUnknown = o.PodsUnknown && s.Allocatable != nil
	p.Machine, p.Boot = freeCapacity(s, source), bootTimes(s.Machines)
	return p, nil
}

func (p *Pool) readExcess(s pool.Snapshot) {
	wanted, _ := reserve.Effective(s.Wishes, s.Workload, s.Allocatable) // an amount that cannot be read counts as none
	p.Current = wanted.Wish
	own := s.Wishes
	own.Requested = nil
	wanted, _ = reserve.Effective(own, s.Workload, s.Allocatable)
	p.Own = wanted.Wish
	switch {
	case own.Share != nil:
		p.Where = "the excess of its pool"
	case own.Bounds != nil && own.Bounds.Excess != nil:
		p.Where = "the annotation " + v1alpha1.BoundsAnnotation
	case own.Field != nil:
		p.Where = "spec.excessReplicas"
	}
}

// freeCapacity returns what a machine has for workload.
func freeCapacity(s pool.Snapshot, source pool.Source) corev1.ResourceList {
	if s.Allocatable == nil {
		return nil
	}
	left := corev1.ResourceList{corev1.ResourcePods: DefaultPods.DeepCopy()}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if q, there := s.Allocatable[name]; there {
			left[name] = q.DeepCopy()
		}
	}
	if s.Sample == nil {
		return left
	}
	for _, p := range source.Pods(s.Sample.Name) {
		if !pool.IsWorkload(p) && !pool.Finished(p) {
			used := requests.PodRequests(p, requests.PodResourcesOptions{})
			used[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
			for name, q := range left {
				q.Sub(used[name])
				left[name] = q
			}
		}
	}
	return left
}

// bootTimes returns how long machines took until they were ready.
func bootTimes(machines []pool.Machine) []time.Duration {
	machines = slices.Clone(machines)
	slices.SortStableFunc(machines, func(a, b pool.Machine) int {
		return cmp.Or(a.Object.CreationTimestamp.Compare(b.Object.CreationTimestamp.Time))
	})
	var all []time.Duration
	for _, m := range machines {
		if m.Node == nil || !pool.NodeReady(m.Node) {
			continue
		}
		for _, c := range m.Node.Status.Conditions {
			if took := c.LastTransitionTime.Sub(m.Object.CreationTimestamp.Time); c.Type == corev1.NodeReady && took > 0 && took <= longestBoot {
				all = append(all, took)
			}
		}
	}
	return all[max(0, len(all)-maxBoots):]
}
