// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// site is a MachineDeployment as a Reserve sees it.
type site struct {
	Pool
	replicas int
	// room is how many spare machines it may have. lacks is why it may have none whatever its max,
	// as a reason of the condition; empty otherwise.
	room  int
	lacks string
	// current is what the Reserve requested there before. blocked reports whether machines could
	// not be created there.
	current int
	blocked bool
}

// selectedSites returns the selected MachineDeployments of a view, by name, with what a Reserve's
// status contains about them.
func (v View) selectedSites(selects func(*machine.MachineDeployment) bool, s v1alpha1.ReserveStatus) []site {
	before := map[string]v1alpha1.ReservePoolStatus{}
	for _, p := range s.Pools {
		before[p.Name] = p
	}
	asleep := v.asleep()
	var all []site
	for _, p := range v.Pools {
		if p.Deployment.DeletionTimestamp != nil || !selects(p.Deployment) {
			continue
		}
		was := before[p.Deployment.Name]
		one := site{Pool: p, replicas: int(pool.Requested(p.Deployment)), current: int(max(0, was.DesiredReplicas))}
		one.room, one.lacks = one.spareLimit(asleep)
		one.blocked = one.cannotBeMade(was.Blocked)
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b site) int { return cmp.Compare(a.Deployment.Name, b.Deployment.Name) })
	return all
}

// asleep reports whether nothing in the namespace has replicas, because a cluster of a Gardener
// hibernates.
func (v View) asleep() bool {
	return !slices.ContainsFunc(v.Pools, func(p Pool) bool { return p.Deployment.Spec.Replicas > 0 })
}

// spareLimit returns how many spare machines a MachineDeployment may have (law 8). If its own
// settings are invalid, it is the present number.
func (s *site) spareLimit(asleep bool) (room int, lacks string) {
	d := s.Deployment
	bounds, err := pool.Parsed(d.Annotations, machine.BoundsAnnotation, machine.ParseBounds)
	gardeners := d.Labels[pool.WorkerPoolLabel] != ""
	switch {
	case pool.Drained(d):
		return 0, reason.PoolsDrained
	case gardeners && asleep:
		return 0, reason.Hibernated
	case err != nil:
		return s.current, ""
	case bounds == nil && gardeners:
		return 0, reason.MaximumUnknown
	case bounds == nil:
		return pool.Unbounded, ""
	}
	return max(0, int(bounds.Max)-s.replicas), ""
}

// cannotBeMade reports whether machines cannot be created, according to the condition
// ReserveReady. That ends only once the reserve has been ready, because each try looks like growth.
func (s *site) cannotBeMade(before bool) bool {
	for _, c := range s.Deployment.Status.Conditions {
		if c.Type == machine.ReserveReady {
			return c.Reason == reason.CannotBeMade || before && c.Status != mcm.ConditionTrue
		}
	}
	return false
}

// workload returns the replicas of all, and the least that each of their machines offers to pods;
// nil if nothing is known.
func workload(all []site) (replicas int, least corev1.ResourceList) {
	amounts := make([]corev1.ResourceList, len(all))
	for i, s := range all {
		replicas += s.replicas
		amounts[i] = s.Allocatable
	}
	return replicas, pool.LeastAmounts(amounts)
}

// unknownDevices returns why the devices of DeviceClasses are not known, each for the first
// MachineDeployment.
func unknownDevices(all []site, classes []string) pool.Unknown {
	unknown := pool.Unknown{}
	for _, class := range classes {
		name := machine.DevicesOf(class)
		for _, s := range all {
			if why, is := s.Unknown[name]; is && unknown[name] == "" {
				unknown[name] = fmt.Sprintf("MachineDeployment %s: %s", s.Deployment.Name, why)
			}
		}
	}
	return unknown
}
