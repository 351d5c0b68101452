// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// zone is a member with its settings, and with the decisions about it.
type zone struct {
	Member
	name string
	mode v1alpha1.BalanceMode
	// pool is the name of its pool, if any.
	pool string
	// replicas are those that are asked for as workload, applied those that may serve; see
	// [pool.Requested] and [pool.Workload]. Held reports whether the latter are written down.
	replicas, applied int
	held              bool
	share             *int
	// field is the excess by spec, or its last value if a client has removed it.
	field *int32
	// requested is what a Reserve requests, nil if none does.
	requested *v1alpha1.RequestedExcess
	move      *v1alpha1.Move
	// declined is the ID of a move from which it takes nothing.
	declined string
	bounds   *v1alpha1.Bounds
	// invalidBounds reports whether it has bounds that cannot be read: then its limits are unknown.
	invalidBounds bool
	// given is the text of bounds that this controller wrote.
	given string
	// derived reports whether the field for excess shows the result of a share or of bounds; kept is
	// its former value.
	derived bool
	kept    int
	// excess is the excess of its pool by its own settings, nil if it has none.
	excess *v1alpha1.Excess
	// whole are the bounds of its whole pool, by an annotation of its worker; nil without a valid
	// one.
	whole *v1alpha1.Bounds
	// unsettled reports whether its share of these is not known yet, so that its bounds stay as they
	// are. Without bounds, its max is unknown: Gardener created it, and nothing that may be read
	// contains its max.
	unsettled, maxUnknown bool
	// pooled reports whether its pool has an excess, valid or not.
	pooled bool
	// fixedReserve reports whether its reserve does not grow, whatever requests one: a user gives it up,
	// or an annotation of it is invalid.
	fixedReserve bool
	health       health
	// next is what to write.
	next draft
	// reminder repeats the deletion of named machines that still exist; overdue is when the next one
	// is due.
	reminder map[string]string
	overdue  time.Time
	// stalled reports whether its part of a move waits until a machine can be deleted.
	stalled bool
	// errors are those in its bounds and its pool's excess; verdict is the state of its replicas,
	// and spread that of its pool's excess.
	errors  []string
	verdict verdict
	spread  verdict
}

// draft is the desired state of a member.
type draft struct {
	replicas, applied int
	held              bool
	share             *int
	move              *v1alpha1.Move
	declined          string
	bounds, given     string
	// gone names a machine for deletion.
	gone   string
	moves  int
	events []Event
	why    string
}

// readMember reads the settings of a member. Invalid ones count as not set; those that a user wrote
// are reported.
func readMember(m Member, s Settings) *zone {
	d := m.Object
	z := &zone{Member: m, name: d.Name, mode: s.Mode, pool: pool.NameOf(d, s.PoolLabels...), replicas: int(pool.Requested(d))}
	z.readWishes(s)
	z.applied = max(0, int(pool.Workload(d, d.Spec.Replicas)))
	_, z.held = pool.AppliedReplicas(d)
	if kept, _ := pool.Parsed(d.Annotations, v1alpha1.OwnExcessAnnotation, v1alpha1.ParseShare); kept != nil {
		z.kept = int(*kept)
	}
	z.move, _ = pool.Parsed(d.Annotations, v1alpha1.MoveAnnotation, v1alpha1.ParseMove)
	z.declined, z.given = d.Annotations[v1alpha1.DeclinedMoveAnnotation], d.Annotations[v1alpha1.GivenBoundsAnnotation]
	z.derived = derived(z.share, d.Annotations[v1alpha1.BoundsAnnotation])
	z.next = draft{
		replicas: z.replicas, share: z.share, move: z.move, declined: z.declined,
		bounds: d.Annotations[v1alpha1.BoundsAnnotation], given: z.given,
	}
	return z
}

// readWishes reads what users write.
func (z *zone) readWishes(s Settings) {
	d := z.Object
	mode, err := z.readMode()
	if err != nil {
		z.verdict = falseVerdict("Invalid", err.Error())
	}
	if err != nil || !s.Enabled {
		z.mode = v1alpha1.BalanceOff
	} else if mode != nil {
		z.mode = *mode
	}
	wishes, err := pool.WishesOf(d)
	z.bounds, z.field, z.requested = wishes.Bounds, wishes.Field, wishes.Requested
	if wishes.Share != nil {
		share := int(*wishes.Share)
		z.share = &share
	}
	z.fixedReserve = s.Drain || hasFixedReserve(d)
	if _, set := d.Annotations[v1alpha1.BoundsAnnotation]; set && z.bounds == nil {
		z.invalidBounds, z.errors = true, append(z.errors, err.Error())
	}
	z.readWorker()
}

// hasFixedReserve reports whether annotations keep the reserve of a MachineDeployment from growing: one
// that drains it, or one that the controller of MachineDeployments cannot read.
func hasFixedReserve(d *v1alpha1.MachineDeployment) bool {
	drained, err := pool.Parsed(d.Annotations, v1alpha1.DrainReserveAnnotation, v1alpha1.ParseDrainReserve)
	_, errAccounting := pool.Parsed(d.Annotations, v1alpha1.AccountingAnnotation, v1alpha1.ParseAccounting)
	return err != nil || errAccounting != nil || drained != nil && *drained
}

// readMode returns the mode that a user wrote: that of the MachineDeployment before that of the
// pool's worker.
func (z *zone) readMode() (*v1alpha1.BalanceMode, error) {
	annotations := z.Object.Annotations
	if _, own := annotations[v1alpha1.BalanceAnnotation]; !own {
		annotations = z.worker()
	}
	return pool.Parsed(annotations, v1alpha1.BalanceAnnotation, v1alpha1.ParseBalanceMode)
}

// readWorker reads the annotations of the pool's worker, which Gardener writes into node templates.
func (z *zone) readWorker() {
	annotations := z.worker()
	var errs [2]error
	z.excess, errs[0] = pool.Parsed(annotations, v1alpha1.PoolExcessAnnotation, v1alpha1.ParseExcess)
	z.whole, errs[1] = pool.Parsed(annotations, v1alpha1.BoundsAnnotation, v1alpha1.ParseBounds)
	for _, err := range errs {
		if err != nil {
			z.errors = append(z.errors, err.Error())
		}
	}
	if _, set := annotations[v1alpha1.PoolExcessAnnotation]; !set && z.whole != nil {
		z.excess = z.whole.Excess
	}
}

func (z *zone) worker() map[string]string {
	return z.Object.Spec.Template.Spec.NodeTemplateSpec.Annotations
}

// derived reports whether a share, or bounds with a third part, take precedence over the field for
// excess.
func derived(share *int, bounds string) bool {
	b, _ := v1alpha1.ParseBounds(bounds) // invalid bounds have no third part
	return share != nil || b.Excess != nil
}

// maxReplicas returns the most replicas that its bounds allow. The replicas that it has are always
// allowed.
func (z *zone) maxReplicas(has int) int {
	switch {
	case z.maxUnknown:
		return has
	case z.bounds == nil:
		return pool.Unbounded
	}
	return max(int(z.bounds.Max), has)
}

// minReplicas returns the fewest replicas that its bounds allow.
func (z *zone) minReplicas() int {
	if z.bounds == nil {
		return 0
	}
	return min(int(z.bounds.Min), z.replicas)
}

// excluded reports whether a member neither gives nor takes: it is being deleted, or cannot create
// machines.
func (z *zone) excluded() bool {
	return z.Object.DeletionTimestamp != nil || z.halted() != verdict{}
}

// halted returns why machine-controller-manager may create no machines for a member, or the zero
// verdict. A pause alone holds up rollouts, not scaling: the only MachineSet in use follows
// replicas.
func (z *zone) halted() verdict {
	switch paused := z.Object.Spec.Paused; {
	case frozen(z.Object):
		return falseVerdict("Frozen", "machine-controller-manager has frozen this MachineDeployment: replicas stay where they were requested until it is unfrozen")
	case paused && z.NoSet:
		return falseVerdict("Paused", "this MachineDeployment is paused and has no MachineSet to scale: replicas stay where they were requested until spec.paused is false")
	case paused && z.Rollout.Spread:
		return falseVerdict("Paused", "this MachineDeployment is paused during a rollout: replicas stay where they were requested until spec.paused is false")
	}
	return verdict{}
}

func frozen(d *v1alpha1.MachineDeployment) bool {
	return pool.Frozen(d) || slices.ContainsFunc(d.Status.Conditions, func(c v1alpha1.MachineDeploymentCondition) bool {
		return c.Type == mcm.MachineDeploymentFrozen && c.Status == mcm.ConditionTrue
	})
}

// balanced reports whether the replicas of a member are kept even with others.
func (z *zone) balanced() bool { return z.mode != v1alpha1.BalanceOff }

// Concerns reports whether decisions about a MachineDeployment may depend on machines, and whether
// they may depend on pods.
func Concerns(d *v1alpha1.MachineDeployment, s Settings) (machines, pods bool) {
	z := readMember(Member{Object: d}, s)
	return z.concernedByMachines(), z.balanced() || z.move != nil
}

// PodsNeeded reports whether pods may be needed: a member grows or cannot, is uneven, or has a move
// in progress. It reads a view without pods, so it may report true without need.
func PodsNeeded(v View) bool {
	fewest, most := pool.Unbounded, 0
	for _, m := range v.Members {
		z := readMember(m, v.Settings)
		if z.move != nil || z.growth() > 0 || slices.ContainsFunc(m.Machines, func(m Machine) bool { return m.isStuck(v.Now, v.Settings.BootPatience) }) {
			return true
		}
		if z.mode == v1alpha1.BalanceContinuous {
			fewest, most = min(fewest, z.replicas), max(most, z.replicas)
		}
	}
	return most-fewest > 1
}

// concernedByMachines reports whether what is written to a member may depend on machines: on those
// that fail, or on the capacity of a Node.
func (z *zone) concernedByMachines() bool {
	return z.balanced() || z.move != nil || z.held || z.share != nil || z.excess != nil || z.misread() ||
		z.bounds != nil && z.bounds.Excess != nil
}

// growth returns the requested replicas that are not applied yet.
func (z *zone) growth() int { return z.replicas - z.applied }

// joinNames returns the names of zones for a message.
func joinNames(zones []*zone) string {
	all := make([]string, 0, len(zones))
	for _, z := range zones {
		all = append(all, z.name)
	}
	return strings.Join(all, ", ")
}
