// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/distribute"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// spreadShares gives each member its share of its pool's excess. Without one, a member has a share
// only while the cluster is hibernated, which is 0, or while a machine is created for a move to it.
// Shares stay as they are while the cluster may be hibernated, or it is not known what machines offer,
// and that will soon be known, or while other members stand in for one and Nodes do not show whether it
// is well again.
func (r *round) spreadShares() {
	asleep := r.hibernated()
	for _, pool := range r.pools {
		if asleep && r.Garden.awaitsCluster() || !asleep && (r.awaitsTemplates(pool) || !r.NodesKnown && slices.ContainsFunc(pool, (*zone).isUnready)) {
			keepShares(pool)
			continue
		}
		if asleep {
			hibernate(pool)
			continue
		}
		total, said, trouble := poolExcess(pool)
		switch {
		case trouble != "":
			for _, z := range pool {
				z.spread = falseVerdict("ExcessUnknown", trouble)
				z.keepShare()
			}
		case said:
			r.spread(pool, total)
		default:
			for _, z := range pool {
				z.next.share = nil
				if n := awaiting(z.next.move); n > 0 {
					z.setShare(z.effectiveExcess(z.requested) + n)
				}
			}
		}
	}
}

// awaitsTemplates reports whether shares of a pool depend on what machines offer, and that will soon be
// known: without a name, its members are those that are similar.
func (r *round) awaitsTemplates(pool []*zone) bool {
	if pool[0].pool == "" {
		pool = slices.DeleteFunc(slices.Clone(r.zones), func(z *zone) bool { return z.pool != "" })
	} else if !slices.ContainsFunc(pool, func(z *zone) bool { return z.excess != nil && len(z.excess.Resources) > 0 }) {
		return false
	}
	return r.Starting && slices.ContainsFunc(pool, func(z *zone) bool { return z.Settling })
}

func hibernate(pool []*zone) {
	for _, z := range pool {
		if !z.reserves() {
			continue
		}
		z.setShare(0)
		z.spread = verdict{status: true, reason: "Hibernated", message: "the cluster is hibernated and has no reserve"}
	}
}

// reserves reports whether a member has, or has had, an excess.
func (z *zone) reserves() bool { return z.pooled || z.share != nil || z.ownExcess() > 0 }

func (z *zone) setShare(n int) { z.next.share = &n }

// poolExcess returns how many machines a pool wants in reserve. If its members differ, while they
// are changed one after the other, the largest counts. trouble is why the excess cannot be
// determined.
func poolExcess(pool []*zone) (total int, said bool, trouble string) {
	replicas := 0
	for _, z := range pool {
		replicas += z.replicas
	}
	for _, z := range pool {
		if z.excess == nil {
			continue
		}
		each, unknown := leastOf(pool)
		n, err := reserve.MachineCount(*z.excess, replicas, each)
		if err != nil {
			return 0, true, fmt.Sprintf("%v: %s", err, reserve.CapacityAdvice(each, unknown))
		}
		total, said = max(total, n), true
	}
	if !said && slices.ContainsFunc(pool, func(z *zone) bool { return z.misread() }) {
		return 0, false, "no MachineDeployment of the pool has a valid excess"
	}
	return total, said, ""
}

// misread reports whether the annotations of its worker are invalid, so that the excess is unknown.
func (z *zone) misread() bool {
	_, excess := z.worker()[v1alpha1.PoolExcessAnnotation]
	_, bounds := z.worker()[v1alpha1.BoundsAnnotation]
	return z.excess == nil && (excess || bounds && z.whole == nil)
}

// leastOf returns what every machine of a pool offers to pods, nil if that is unknown for all of
// them, and why devices are not known. Machines of a pool have the same devices, so one member that
// shows its own is enough.
func leastOf(zones []*zone) (least corev1.ResourceList, unknown pool.Unknown) {
	all := make([]corev1.ResourceList, len(zones))
	least, unknown = corev1.ResourceList{}, pool.Unknown{}
	for i, z := range zones {
		if z.Template != nil {
			all[i] = z.Template.Allocatable
		}
		for name, amount := range z.Devices {
			if has, known := least[name]; !known || amount.Cmp(has) < 0 {
				least[name] = amount
			}
		}
	}
	for _, z := range zones {
		for name, why := range z.DevicesUnknown {
			if _, known := least[name]; !known && unknown[name] == "" {
				unknown[name] = why
			}
		}
	}
	return withDevices(pool.LeastAmounts(all), least), unknown
}

// withDevices returns what a machine offers, with its devices; nil if neither is known.
func withDevices(offers, devices corev1.ResourceList) corev1.ResourceList {
	if len(devices) == 0 {
		return offers
	}
	all := maps.Clone(devices)
	for name, amount := range offers {
		if _, counted := all[name]; !counted {
			all[name] = amount
		}
	}
	return all
}

// spread spreads this number of machines over a pool. Shares grow at once. If a share moves to
// another member, no ready machine is deleted before its replacement is ready.
func (r *round) spread(pool []*zone, total int) {
	current := make([]int64, len(pool))
	for i, z := range pool {
		if z.share != nil {
			current[i] = int64(max(0, *z.share-awaiting(z.move)))
		}
	}
	goal, short := r.shareGoals(pool, int64(total))
	targets, health := r.shareTargets(pool, func(*zone) bool { return false })
	next, err := distribute.Replace(int64(total), current, goal, targets, health)
	if err != nil {
		next = goal // counts from outside are bounded: there is no such input
	}
	for i, z := range pool {
		if !r.keepsShare(z) {
			z.setShare(int(next[i]) + awaiting(z.next.move))
		}
		z.spread = spreadVerdict(pool, total, short)
	}
}

// shareGoals returns the shares of a pool in the steady state. Ties go to the member with the
// fewest machines. But a member keeps its share while it exceeds another by at most one, so that
// machines do not follow every change of replicas.
func (r *round) shareGoals(pool []*zone, total int64) (goal []int64, short int64) {
	first := r.distributeShares(pool, total, func(*zone) bool { return false })
	level := int64(0)
	for i := range pool {
		level = max(level, first.Replicas[i])
	}
	placed := r.distributeShares(pool, total, func(z *zone) bool {
		return z.share != nil && int64(*z.share-awaiting(z.move)) >= level
	})
	return placed.Replicas, placed.Overflow
}

func (r *round) distributeShares(pool []*zone, total int64, holds func(*zone) bool) distribute.Result {
	targets, health := r.shareTargets(pool, holds)
	result, err := distribute.WithFallback(total, targets, health, distribute.Options{})
	if err != nil {
		return distribute.Result{Replicas: make([]int64, len(pool)), Overflow: total} // no such input, as above
	}
	return result
}

// shareTargets returns the members as targets. Those that hold more than others come first.
func (r *round) shareTargets(pool []*zone, holds func(*zone) bool) ([]distribute.Target, []distribute.Health) {
	targets, health := make([]distribute.Target, len(pool)), make([]distribute.Health, len(pool))
	for i, z := range pool {
		rank := int64(2*z.replicas) + 3
		if holds(z) {
			rank -= 3
		}
		least, room := r.shareRange(z)
		targets[i] = distribute.Target{Key: fmt.Sprintf("%020d %s", rank, z.name), Weight: 1, Min: least, Max: room}
		health[i] = distribute.Health{Blocked: z.health.blocked, Usable: int64(z.health.reserve)}
		if z.health.probing {
			health[i].Probe = 1
		}
	}
	return targets, health
}

// shareRange returns between which numbers the share of a member is. All machines of one that is being
// deleted go at once, although it may take hours until the last one is gone.
func (r *round) shareRange(z *zone) (least, room int64) {
	if z.Object.DeletionTimestamp != nil {
		return 0, 0
	}
	if z.excluded() || z.invalidBounds || r.keepsShare(z) { // it has what it has
		if z.share != nil {
			room = int64(max(0, *z.share-awaiting(z.move)))
		}
		return room, room
	}
	return 0, int64(max(0, z.maxReplicas(z.replicas)-z.replicas))
}

// ownExcess returns the excess of a member by its own settings, without regard to its pool.
func (z *zone) ownExcess() int { return z.effectiveExcess(nil) }

// presentExcess returns the excess of a member: its share, its own excess, or what a Reserve requests
// if that is more.
func (z *zone) presentExcess() int {
	if z.share != nil {
		return *z.share + z.beyondShare()
	}
	return z.effectiveExcess(z.requested)
}

// beyondShare returns how many machines more than its share a Reserve requests.
func (z *zone) beyondShare() int {
	if z.share == nil || z.requested == nil {
		return 0
	}
	return max(0, int(z.requested.Machines)-*z.share)
}

func (z *zone) effectiveExcess(requested *v1alpha1.RequestedExcess) int {
	field := z.field
	if z.derived {
		field = ptr.To(pool.ClampInt32(z.kept))
	}
	wanted, err := reserve.Effective(pool.Wishes{Bounds: z.bounds, Field: field, Requested: requested}, z.replicas, z.allocatable())
	if err != nil {
		return 0
	}
	return wanted.Excess
}

// allocatable returns what one machine offers to pods, nil if that is unknown.
func (z *zone) allocatable() corev1.ResourceList {
	if z.Template == nil {
		return withDevices(nil, z.Devices)
	}
	return withDevices(z.Template.Allocatable, z.Devices)
}

// awaiting returns how many machines of its share exist only for a move.
func awaiting(move *v1alpha1.Move) int {
	if move == nil {
		return 0
	}
	return int(move.Reserve)
}

func spreadVerdict(pool []*zone, total int, short int64) verdict {
	ill := failingText(pool)
	switch {
	case short > 0 && slices.ContainsFunc(pool, func(z *zone) bool { return z.maxUnknown }):
		return falseVerdict("MaximumUnknown", fmt.Sprintf("the maximum of this pool is unknown, so there is no room for %d of the %d machines in reserve: "+
			"set the worker annotation %s, for example \"3:9:4\" for minimum, maximum and excess", short, total, v1alpha1.BoundsAnnotation))
	case short > 0:
		return falseVerdict("NoRoom", fmt.Sprintf("there is no room for %d machines of the pool's excess of %d: raise max in the bounds, or lower the excess%s", short, total, ill))
	case ill != "":
		return verdict{status: true, reason: "FailedOver", message: fmt.Sprintf("the pool's excess of %d is complete, partly in other zones%s", total, ill)}
	}
	return verdict{status: true, reason: "Spread", message: fmt.Sprintf("the pool's excess of %d is spread over %d MachineDeployments", total, len(pool))}
}

// failingText names the members that fail to create machines, and those with too many Nodes that are not
// ready, as the end of a sentence.
func failingText(zones []*zone) string {
	var causes []string
	add := func(cause string, unready bool) {
		those := slices.DeleteFunc(slices.Clone(zones), func(z *zone) bool { return !z.health.blocked || z.health.unready != unready })
		if len(those) > 0 {
			causes = append(causes, cause+" in "+joinNames(those))
		}
	}
	add("machines cannot be created", false)
	add("too many Nodes are not ready", true)
	if len(causes) == 0 {
		return ""
	}
	return ", because " + strings.Join(causes, ", and ")
}

// byName orders members independently of the input.
func byName(a, b *zone) int { return cmp.Compare(a.name, b.name) }

// hibernated reports whether the cluster is hibernated, or about to be. If the Cluster resource
// cannot be read, the cluster counts as hibernated while Gardener wants nothing to run: replicas of
// all MachineDeployments are 0, or all Machines are to be deleted by force, which happens first.
func (r *round) hibernated() bool {
	if r.Garden.ClusterKnown || r.Garden.Known && !r.Garden.Here {
		return r.Garden.Hibernated
	}
	its := slices.DeleteFunc(slices.Clone(r.zones), func(z *zone) bool { return !z.ownedByGardener() || z.Object.DeletionTimestamp != nil })
	wants := slices.ContainsFunc(its, func(z *zone) bool { return z.Object.Spec.Replicas > 0 })
	return len(its) > 0 && (!wants || forceDeleted(its))
}

// forceDeleted reports whether there are Machines, and all of them are to be deleted by force.
func forceDeleted(zones []*zone) bool {
	some := false
	for _, z := range zones {
		for _, m := range z.Machines {
			if m.Object.Labels["force-deletion"] != "True" {
				return false
			}
			some = true
		}
	}
	return some
}

// awaitsCluster reports whether it will soon be known whether the cluster is hibernated.
func (g Garden) awaitsCluster() bool { return g.ClusterAwaited || !g.Here && !g.Known }

// keepShares leaves the shares of a pool as they are, and what conditions say about them.
func keepShares(pool []*zone) {
	for _, z := range pool {
		z.keepShare()
		for _, c := range z.Object.Status.Conditions {
			if c.Type == ConditionShare {
				z.spread = verdict{status: c.Status == mcm.ConditionTrue, reason: c.Reason, message: c.Message}
			}
		}
	}
}

// keepShare leaves a share as it is, except for machines that are created for a move.
func (z *zone) keepShare() {
	if z.share != nil {
		z.setShare(max(0, *z.share-awaiting(z.move)) + awaiting(z.next.move))
	}
}
