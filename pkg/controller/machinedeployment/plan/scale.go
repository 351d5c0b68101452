// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// isScaled reports whether replicas have been changed since the sizes of the MachineSets were decided. Where
// nothing is wanted and nothing is there, there is nothing to decide.
func (d *deployment) isScaled() bool {
	return slices.ContainsFunc(d.deciding(), func(s *set) bool {
		return d.isOutdated(s) && (d.replicas() > 0 || s.Object.Spec.Replicas > 0)
	})
}

// isOutdated reports whether the size of a MachineSet was decided for another number of replicas.
func (d *deployment) isOutdated(s *set) bool {
	desired, err := strconv.Atoi(s.stored.Annotations[desiredAnnotation])
	return err == nil && desired != int(d.replicas())
}

// deciding returns the MachineSets that are to have machines, or the newest one if none is.
func (d *deployment) deciding() []*set {
	all := d.sets()
	active := slices.DeleteFunc(slices.Clone(all), func(s *set) bool { return s.Object.Spec.Replicas <= 0 })
	if len(active) == 0 {
		return all[max(0, len(all)-1):]
	}
	return active
}

// scale distributes a new number of replicas over the MachineSets. In a rollout of Recreate, the next step
// of the rollout does so.
func (d *deployment) scale() {
	sets := d.deciding()
	switch {
	case len(sets) == 0:
	case d.isUpdatingInPlace() && !d.isSaturated():
		d.scaleInPlace()
	case len(sets) == 1:
		d.resize(sets[0], d.sizeOfOnly(sets[0]))
	case d.isSaturated():
		for _, s := range sets {
			if s != d.newest {
				d.resize(s, 0)
			}
		}
	case d.isRolling():
		d.scaleInRollout(sets)
	}
}

// sizeOfOnly returns the size of the only MachineSet that is to have machines. If replicas have not changed,
// it has yet to get room.
func (d *deployment) sizeOfOnly(s *set) int32 {
	if d.isScaled() {
		return d.replicas()
	}
	return min(d.replicas(), s.Object.Spec.Replicas+d.room(d.surge()))
}

// scaleInRollout gives machines to the newest MachineSet, as many as there is room for, or takes them from
// all in proportion.
func (d *deployment) scaleInRollout(active []*set) {
	missing := d.allowed() - sizes(active)
	if missing < 0 {
		d.shrink(active, -missing)
		return
	}
	for _, s := range active {
		size := s.Object.Spec.Replicas
		if s == d.newest {
			size += min(missing, d.room(d.surge()))
		}
		d.resize(s, size)
	}
}

// isSaturated reports whether the newest MachineSet has all machines, and they are available.
func (d *deployment) isSaturated() bool {
	if d.newest == nil {
		return false
	}
	r := d.replicas()
	desired := d.newest.stored.Annotations[desiredAnnotation]
	return desired == strconv.Itoa(int(r)) && d.newest.Object.Spec.Replicas == r && d.newest.count().available == count(r)
}

func (d *deployment) isRolling() bool {
	return d.stored.Spec.Strategy.Type == mcm.RollingUpdateMachineDeploymentStrategyType
}

// shrink takes machines from MachineSets in proportion to their sizes, from the largest first, and what
// is left by rounding from that one.
func (d *deployment) shrink(active []*set, fewer int32) {
	slices.SortStableFunc(active, func(a, b *set) int {
		return cmp.Or(cmp.Compare(b.Object.Spec.Replicas, a.Object.Spec.Replicas), byAge(a.stored, b.stored))
	})
	left, after := fewer, make([]int32, len(active))
	for i, s := range active {
		spare := min(left, s.Object.Spec.Replicas, d.spareIn(s))
		left, after[i] = left-spare, s.Object.Spec.Replicas-spare
	}
	for i, s := range active {
		part := min(left, max(0, after[i]-d.proportionOf(s)))
		left, after[i] = left-part, after[i]-part
	}
	after[0] = max(after[0]-left, 0)
	for i, s := range active {
		d.resize(s, after[i])
	}
}

// proportionOf returns the size that a MachineSet has of what is allowed now, if its share is that of
// the last number that was allowed.
func (d *deployment) proportionOf(s *set) int32 {
	size := s.Object.Spec.Replicas
	was, err := strconv.Atoi(s.stored.Annotations[maxAnnotation])
	if err != nil {
		was = int(d.stored.Status.Replicas)
	}
	return int32(min(float64(size), math.Round(float64(size)*float64(d.allowed())/float64(max(1, was)))))
}

// allowed is how many machines there may be in a rollout.
func (d *deployment) allowed() int32 {
	if d.replicas() == 0 {
		return 0
	}
	return d.replicas() + d.surge()
}

// surge is how many machines beyond replicas there may be while machines are rolled.
func (d *deployment) surge() int32 {
	if !d.isRolling() {
		return 0
	}
	surge, _ := d.bounds(d.limits())
	return surge
}

// limits are those of the strategy, if it has any.
func (d *deployment) limits() mcm.UpdateConfiguration {
	switch s := d.stored.Spec.Strategy; {
	case s.Type == mcm.RollingUpdateMachineDeploymentStrategyType && s.RollingUpdate != nil:
		return s.RollingUpdate.UpdateConfiguration
	case s.Type == mcm.InPlaceUpdateMachineDeploymentStrategyType && s.InPlaceUpdate != nil:
		return s.InPlaceUpdate.UpdateConfiguration
	}
	return mcm.UpdateConfiguration{}
}

// bounds returns how many machines beyond replicas there may be, and how many of replicas may be
// unavailable. One of them is not 0.
func (d *deployment) bounds(c mcm.UpdateConfiguration) (surge, unavailable int32) {
	surge, unavailable = d.resolve(c.MaxSurge, true), d.resolve(c.MaxUnavailable, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return min(surge, math.MaxInt32-d.replicas()), unavailable
}

// resolve returns a number, or a percentage of replicas.
func (d *deployment) resolve(n *intstr.IntOrString, up bool) int32 {
	value, _ := intstr.GetScaledValueFromIntOrPercent(n, int(d.replicas()), up) // fails only in an invalid MachineDeployment
	return int32(max(value, 0))
}

// maxUnavailable is how many of replicas may be unavailable in a rollout.
func (d *deployment) maxUnavailable() int32 {
	strategy, limits := d.stored.Spec.Strategy, d.limits()
	if strategy.Type == mcm.RecreateMachineDeploymentStrategyType {
		return 0
	}
	if inPlace := strategy.InPlaceUpdate; !d.isRolling() && inPlace != nil && inPlace.OrchestrationType == mcm.OrchestrationTypeManual {
		limits.MaxSurge = nil
	}
	_, unavailable := d.bounds(limits)
	return min(unavailable, d.replicas())
}

// annotateSize says for which number of replicas the size of a MachineSet was decided.
func (d *deployment) annotateSize(s *mcm.MachineSet) {
	s.Annotations = with(s.Annotations, desiredAnnotation, strconv.Itoa(int(d.replicas())))
	s.Annotations = with(s.Annotations, maxAnnotation, strconv.Itoa(int(d.replicas()+d.surge())))
}

// sizes adds up how many machines MachineSets are to have.
func sizes(sets []*set) (sum int32) {
	for _, s := range sets {
		sum += s.Object.Spec.Replicas
	}
	return sum
}
