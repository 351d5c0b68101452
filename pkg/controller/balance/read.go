// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"cmp"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// zone is a member as it is planned for: what it says, and what is to become of it.
type zone struct {
	Member
	name string
	mode v1alpha1.BalanceMode
	// pool is its pool's name, empty where it has none.
	pool string
	// replicas are those that are asked for as workload, applied those that may serve; see [pool.Requested] and [pool.Workload]. Held reports whether the
	// latter are written down.
	replicas, applied int
	held              bool
	share             *int
	// field is the excess by spec, or what that said last where a client has removed it.
	field  *int32
	move   *v1alpha1.Move
	bounds *v1alpha1.Bounds
	// given is the text of the bounds that were written in the place of a user.
	given string
	// derived says that the field for excess shows what a share or bounds come to; kept is what it held before.
	derived bool
	kept    int
	// excess is what its pool should have in reserve, nil where it does not say.
	excess *v1alpha1.Excess
	// whole are the bounds of its whole pool, by an annotation of its worker. Nil where there is none, or an invalid one.
	whole *v1alpha1.Bounds
	// unsettled reports whether its share of those cannot be told yet, so that its bounds stay as they are. Without bounds its max is
	// unknown: it is a Gardener's, and nothing that may be read contains it.
	unsettled, maxUnknown bool
	// pooled reports whether its pool has an excess, or asks for one in a way that is invalid.
	pooled bool
	health health
	// next is what is to be written.
	next draft
	// reminder has machines deleted that were named and stay; overdue is when there will be one.
	reminder map[string]string
	overdue  time.Time
	// stalled reports whether its half of a move waits until some machine may go.
	stalled bool
	// troubles are what is wrong with its bounds and its pool's excess, verdict and spread how its replicas and its pool's excess are.
	troubles []string
	verdict  verdict
	spread   verdict
}

// draft is a member's state to be.
type draft struct {
	replicas, applied int
	held              bool
	share             *int
	move              *v1alpha1.Move
	bounds, given     string
	// gone names a machine for deletion.
	gone string
	news []News
	why  string
}

// read takes a member apart. What cannot be understood counts as not said; of what a user writes it is a trouble.
func read(m Member, s Settings) *zone {
	d := m.Object
	z := &zone{Member: m, name: d.Name, mode: s.Mode, pool: poolOf(d, s.PoolLabels), replicas: int(pool.Requested(d))}
	z.readWishes(s)
	z.applied = max(0, int(pool.Workload(d, d.Spec.Replicas)))
	_, z.held = pool.AppliedReplicas(d)
	if kept, _ := pool.Parsed(d.Annotations, v1alpha1.OwnExcessAnnotation, v1alpha1.ParseShare); kept != nil {
		z.kept = int(*kept)
	}
	z.move, _ = pool.Parsed(d.Annotations, v1alpha1.MoveAnnotation, v1alpha1.ParseMove)
	z.given = d.Annotations[v1alpha1.GivenBoundsAnnotation]
	z.derived = derived(z.share, d.Annotations[v1alpha1.BoundsAnnotation])
	z.next = draft{
		replicas: z.replicas, applied: z.applied, held: z.held, share: z.share, move: z.move,
		bounds: d.Annotations[v1alpha1.BoundsAnnotation], given: z.given,
	}
	return z
}

// readWishes reads what users write.
func (z *zone) readWishes(s Settings) {
	d := z.Object
	mode, err := pool.Parsed(d.Annotations, v1alpha1.BalanceAnnotation, v1alpha1.ParseBalanceMode)
	if err != nil {
		z.verdict = not("Invalid", err.Error())
	}
	if err != nil || !s.Enabled {
		z.mode = v1alpha1.BalanceOff
	} else if mode != nil {
		z.mode = *mode
	}
	wishes, err := pool.WishesOf(d)
	z.bounds, z.field = wishes.Bounds, wishes.Field
	if wishes.Share != nil {
		share := int(*wishes.Share)
		z.share = &share
	}
	if _, set := d.Annotations[v1alpha1.BoundsAnnotation]; set && z.bounds == nil {
		z.troubles = append(z.troubles, err.Error())
	}
	z.readWorker()
}

// readWorker reads what the pool's worker says, which a Gardener writes into node templates.
func (z *zone) readWorker() {
	annotations := z.worker()
	var errs [2]error
	z.excess, errs[0] = pool.Parsed(annotations, v1alpha1.PoolExcessAnnotation, v1alpha1.ParseExcess)
	z.whole, errs[1] = pool.Parsed(annotations, v1alpha1.BoundsAnnotation, v1alpha1.ParseBounds)
	for _, err := range errs {
		if err != nil {
			z.troubles = append(z.troubles, err.Error())
		}
	}
	if _, set := annotations[v1alpha1.PoolExcessAnnotation]; !set && z.whole != nil {
		z.excess = z.whole.Excess
	}
}

func (z *zone) worker() map[string]string {
	return z.Object.Spec.Template.Spec.NodeTemplateSpec.Annotations
}

// poolOf is the pool that a MachineDeployment says it is of.
func poolOf(d *v1alpha1.MachineDeployment, keys []string) string {
	for _, key := range keys {
		if pool := cmp.Or(d.Labels[key], d.Spec.Template.Spec.NodeTemplateSpec.Labels[key]); pool != "" {
			return pool
		}
	}
	return ""
}

// derived says that a share, or bounds with a third part, count before the field for excess.
func derived(share *int, bounds string) bool {
	b, err := v1alpha1.ParseBounds(bounds)
	return share != nil || err == nil && b.Excess != nil
}

// limit is the most replicas it may have by its bounds; what it has already is never too many.
func (z *zone) limit(has int) int {
	switch {
	case z.maxUnknown:
		return has
	case z.bounds == nil:
		return pool.Unbounded
	}
	return max(int(z.bounds.Max), has)
}

// floor is the fewest replicas it may have by its bounds.
func (z *zone) floor() int {
	if z.bounds == nil {
		return 0
	}
	return min(int(z.bounds.Min), z.replicas)
}

// closed reports whether nothing is given to it or taken from it: it is going, or may make no machines.
func (z *zone) closed() bool {
	return z.Object.DeletionTimestamp != nil || z.halted() != verdict{}
}

// halted is why machine-controller-manager may make no machines for it, the zero verdict where it does. A pause alone holds
// up rollouts, not scaling: the only MachineSet in use goes on following replicas.
func (z *zone) halted() verdict {
	switch paused := z.Object.Spec.Paused; {
	case frozen(z.Object):
		return not("Frozen", "machine-controller-manager has frozen it: replicas stay where they are requested until it is unfrozen")
	case paused && z.NoSet:
		return not("Paused", "it is paused and has no MachineSet to scale: replicas stay where they are requested until it is resumed")
	case paused && z.Rollout.Spread:
		return not("Paused", "it is paused in the middle of a rollout: replicas stay where they are requested until it is resumed")
	}
	return verdict{}
}

func frozen(d *v1alpha1.MachineDeployment) bool {
	return d.Labels["freeze"] == "True" || slices.ContainsFunc(d.Status.Conditions, func(c v1alpha1.MachineDeploymentCondition) bool {
		return c.Type == mcm.MachineDeploymentFrozen && c.Status == mcm.ConditionTrue
	})
}

// balanced says that its replicas are kept even with others.
func (z *zone) balanced() bool { return z.mode != v1alpha1.BalanceOff }

// growth is what was asked of it and is not applied yet.
func (z *zone) growth() int { return z.replicas - z.applied }

// own is the excess that it wants by itself, without a pool.
func (z *zone) own() int {
	field := z.field
	if z.derived {
		field = small(z.kept)
	}
	wanted, err := reserve.Effective(pool.Wishes{Bounds: z.bounds, Field: field}, z.replicas, z.allocatable())
	if err != nil {
		return 0
	}
	return wanted.Excess
}

// awaiting is how many machines of its share are there for a move alone.
func awaiting(move *v1alpha1.Move) int {
	if move == nil {
		return 0
	}
	return int(move.Reserve)
}

// names lists zones for people.
func names(zones []*zone) string {
	all := make([]string, 0, len(zones))
	for _, z := range zones {
		all = append(all, z.name)
	}
	return strings.Join(all, ", ")
}
