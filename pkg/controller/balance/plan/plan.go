// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// Plan contains the changes to the MachineDeployments of a namespace. It is at rest if no outcome
// has a Write.
type Plan struct {
	// Outcomes has one entry per member, in the same order.
	Outcomes []Outcome
	// Skews are the differences between the largest and the smallest replicas of each group.
	Skews map[string]int
	// Blocks is why replicas cannot be moved, by name.
	Blocks map[string]string
	Memory Memory
	// Again is when to plan again without an event; 0 means never.
	Again time.Duration
}

// Outcome is the result for one member.
type Outcome struct {
	Name  string
	Write Write
	// Moves is how many replicas have moved to other members once the write has succeeded.
	Moves int
	// Conditions are the desired ones. All other conditions of this controller are removed.
	Conditions []Condition
	// Events are recorded after the write has succeeded.
	Events []Event
}

// Write is one write of a MachineDeployment.
type Write struct {
	Replicas, Excess *int32
	// Annotations to set; an empty value removes one.
	Annotations map[string]string
	// Gone is the machine that the annotations name for deletion.
	Gone string
	// Why appears in the log.
	Why string
}

// IsEmpty reports whether there is nothing to write.
func (w Write) IsEmpty() bool {
	return w.Replicas == nil && w.Excess == nil && len(w.Annotations) == 0
}

// round is a plan in progress.
type round struct {
	View
	zones  []*zone
	byName map[string]*zone
	// The members of a pool share an excess. Those of a group are similar and kept even.
	pools, groups [][]*zone
	places        places
	// portions are the bounds of members from the annotation of their worker, by name.
	portions map[string]v1alpha1.Bounds
	// shapes are the kinds of waiting pods.
	shapes  []*fit.Pod
	evictor *pool.Evictor
	failing map[string]Failure
	paused  map[string]time.Time
	blocks  map[string]string
}

// New decides. It returns a plan for any view.
func New(v View) Plan {
	r := &round{
		View: v, byName: map[string]*zone{}, places: places{nodes: v.Nodes}, shapes: shapesOf(v.Waiting), evictor: newEvictor(v),
		failing: map[string]Failure{}, paused: map[string]time.Time{}, blocks: map[string]string{},
	}
	for _, m := range v.Members {
		z := readMember(m, v.Settings)
		r.zones = append(r.zones, z)
		r.byName[z.name] = z
		r.examine(z)
		if until := v.Memory.Paused[z.name]; v.Now.Before(until) {
			r.paused[z.name] = until
		}
		r.setReminder(z)
	}
	slices.SortFunc(r.zones, byName)
	r.readBounds()
	r.buildGroups()
	r.keepOneHealthy()
	r.holdGrowth()
	r.continueMoves()
	for _, group := range r.groups {
		if v.Unreachable != "" {
			r.suspend(group)
		} else {
			r.balance(group)
		}
	}
	r.spreadShares()
	r.giveBounds()
	r.reportUnready()
	return r.buildPlan()
}

// buildGroups finds groups: the balanced members among similar members of a pool. Members without a
// pool form groups among themselves.
func (r *round) buildGroups() {
	pools := map[string][]*zone{}
	for _, z := range r.zones {
		pools[z.pool] = append(pools[z.pool], z)
	}
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		alike := r.similarMembers(pools[pool])
		for _, members := range alike {
			r.groups = append(r.groups, slices.DeleteFunc(slices.Clone(members), func(z *zone) bool { return !z.balanced() }))
		}
		if pool == "" {
			r.pools = append(r.pools, alike...)
		} else {
			r.pools = append(r.pools, pools[pool])
		}
	}
	for _, pool := range r.pools {
		pooled := slices.ContainsFunc(pool, func(z *zone) bool { return z.excess != nil || z.misread() })
		for _, z := range pool {
			z.pooled = pooled
		}
	}
}

// similarMembers groups similar members. A member without a known template is similar to none.
func (r *round) similarMembers(members []*zone) [][]*zone {
	var templates []similar.Template
	var all [][]*zone
	for _, z := range members {
		if z.Template == nil {
			all = append(all, []*zone{z})
			continue
		}
		templates = append(templates, *z.Template)
	}
	for _, names := range similar.Groups(templates, r.Settings.Similar) {
		var group []*zone
		for _, name := range names {
			group = append(group, r.byName[name])
		}
		all = append(all, group)
	}
	return all
}

// holdGrowth lets machine-controller-manager act on applied replicas where growth may be split, and
// otherwise on replicas. Reductions apply at once, and so does growth of a member that gives
// nothing away.
func (r *round) holdGrowth() {
	for _, z := range r.zones {
		z.next.held = z.balanced() || z.move != nil && z.held
		if !z.balanced() && !z.splitting() || z.move == nil && z.excluded() {
			z.applied = z.replicas
		}
		if z.balanced() {
			z.verdict = z.halted()
		}
		z.next.applied = z.applied
	}
}

// balance splits growth over a group, or evens the group out. No move begins before the last one
// has ended.
func (r *round) balance(group []*zone) {
	if slices.ContainsFunc(group, (*zone).inMove) {
		r.awaitMove(group)
		return
	}
	growing := slices.ContainsFunc(group, (*zone).hasGrowthToGive)
	if growing {
		if slices.ContainsFunc(group, r.awaitsSimilar) {
			awaitSimilar(group)
			return
		}
		// Growth does not wait for a machine: one that was created for a move is dropped.
		if pending := pendingTaker(group); pending != nil {
			r.dropMove(pending)
			return
		}
		if r.splitGrowth(group) {
			return
		}
	}
	continuous := slices.DeleteFunc(slices.Clone(group), func(z *zone) bool { return z.mode != v1alpha1.BalanceContinuous })
	if len(continuous) > 1 {
		r.moveOne(continuous)
	} else if pending := pendingTaker(group); pending != nil && !r.awaitsSimilar(pending) {
		r.dropMove(pending)
	}
}

// awaitMove reports that a move is in progress. While it waits until a machine can be deleted,
// which can take days, growth stays where it is requested.
func (r *round) awaitMove(group []*zone) {
	stalled := slices.ContainsFunc(group, r.stalled)
	for _, z := range group {
		if z.verdict.reason == "" {
			z.verdict = falseVerdict("Moving", "replicas are being moved")
		}
		if stalled && !z.splitting() {
			z.next.applied = z.next.replicas
		}
	}
}

// stalled reports whether the move of a member, or the one that it has taken from, waits until a
// machine can be deleted.
func (r *round) stalled(z *zone) bool {
	if z.move == nil {
		return false
	}
	from := r.byName[z.move.From]
	return z.stalled || from != nil && from.stalled
}

// suspend prevents splits and moves while pods are unknown: growth stays where it is requested.
func (r *round) suspend(group []*zone) {
	for _, z := range group {
		if !z.excluded() {
			z.verdict = falseVerdict(ReasonUnreachable, r.Unreachable)
		}
		if !z.splitting() {
			z.next.applied = z.next.replicas
		}
	}
}

// splitting reports whether replicas that a member does not apply are promised to others.
func (z *zone) splitting() bool { return z.move != nil && len(z.move.To) > 0 && z.move.Machine == "" }

// inMove reports whether a member has a part in a move that has begun, or takes a replica now. A
// member that is being deleted neither gives nor takes.
func (z *zone) inMove() bool {
	return z.Object.DeletionTimestamp == nil && (hasBegun(z.move) || hasBegun(z.next.move))
}

func hasBegun(m *v1alpha1.Move) bool { return m != nil && (m.From == "" || m.Taken > 0) }

// moveNotBegun reports whether the move of a member has not begun: nothing has been promised yet.
func (z *zone) moveNotBegun() bool { return !hasBegun(z.move) }

// buildPlan collects the decisions of all rules.
func (r *round) buildPlan() Plan {
	p := Plan{Skews: map[string]int{}, Blocks: r.blocks, Memory: Memory{Failing: r.failing, Paused: r.paused}}
	for name, ill := range r.failing {
		if ill.Failures == 0 {
			delete(r.failing, name)
		}
	}
	for _, group := range r.groups {
		if len(group) > 1 {
			p.Skews[group[0].name] = unevenness(group)
		}
	}
	for _, m := range r.Members {
		p.Outcomes = append(p.Outcomes, r.outcome(r.byName[m.Object.Name]))
	}
	p.Again = r.nextCheck()
	return p
}

// nextCheck returns the time until something changes without an event.
func (r *round) nextCheck() time.Duration {
	var soonest time.Duration
	at := func(t time.Time) {
		if d := t.Sub(r.Now); d > 0 && (soonest == 0 || d < soonest) {
			soonest = d
		}
	}
	for _, z := range r.zones {
		if z.unsettled {
			at(z.Object.CreationTimestamp.Add(settleTime))
		}
		if z.Settling {
			at(r.Now.Add(similar.Settling))
		}
		at(z.overdue)
		at(z.health.changes)
		if ill := r.failing[z.name]; !ill.Probing {
			at(ill.Until)
		}
		at(r.paused[z.name])
		for _, m := range z.Machines {
			at(m.stuckAt(r.Now, r.Settings.BootPatience))
		}
	}
	return soonest
}

// outcome returns the difference between a member and its desired state.
func (r *round) outcome(z *zone) Outcome {
	o := Outcome{Name: z.name, Moves: z.next.moves, Events: z.next.events, Conditions: r.conditions(z)}
	w := Write{Annotations: map[string]string{}, Gone: z.next.gone, Why: z.next.why}
	excess := z.Object.Annotations[v1alpha1.AppliedExcessAnnotation]
	if z.next.replicas != z.replicas {
		after := *z.Object
		pool.Resize(&after, pool.ClampInt32(z.next.applied), pool.ClampInt32(z.next.replicas-z.next.applied))
		w.Replicas = &after.Spec.Replicas
		excess = after.Annotations[v1alpha1.AppliedExcessAnnotation]
	}
	put := func(key, value string) {
		if z.Object.Annotations[key] != value {
			w.Annotations[key] = value
		}
	}
	applied, share, move := "", "", ""
	if z.next.held {
		applied = strconv.Itoa(z.next.applied)
	}
	if z.next.share != nil {
		share = strconv.Itoa(*z.next.share)
	}
	if z.next.move != nil {
		move = z.next.move.String()
	}
	put(v1alpha1.AppliedReplicasAnnotation, applied)
	put(v1alpha1.AppliedExcessAnnotation, excess)
	put(v1alpha1.ShareAnnotation, share)
	put(v1alpha1.MoveAnnotation, move)
	put(v1alpha1.DeclinedMoveAnnotation, z.next.declined)
	put(v1alpha1.BoundsAnnotation, z.next.bounds)
	put(v1alpha1.GivenBoundsAnnotation, z.next.given)
	kept := ""
	w.Excess, kept = z.nextExcessField()
	put(v1alpha1.OwnExcessAnnotation, kept)
	maps.Copy(w.Annotations, r.namingAnnotations(z))
	if z.Object.DeletionTimestamp == nil {
		o.Write = w
	}
	return o
}

// namingAnnotations returns the annotations that name a machine for deletion, or that repeat the
// deletion of machines that still exist.
func (r *round) namingAnnotations(z *zone) map[string]string {
	if z.next.gone == "" {
		return z.reminder
	}
	excess := pool.AppliedOf(z.Object, z.Object.Spec.Replicas)
	fewer := pool.VisibleReplicas(z.next.applied, excess) < pool.Visible(z.Object)
	return pool.NameForDeletion(z.Object, []string{z.next.gone}, fewer, r.Now)
}

// setReminder finds machines that were named for deletion and still exist.
func (r *round) setReminder(z *zone) {
	there := func(name string) bool {
		return slices.ContainsFunc(z.Machines, func(m Machine) bool { return m.Object.Name == name && m.Object.DeletionTimestamp == nil })
	}
	if z.balanced() {
		z.reminder, z.overdue = pool.Remind(z.Object, there, r.Now)
	}
}

// nextExcessField returns the next value of spec.excessReplicas. While a share or bounds determine
// the excess, the field shows that excess. Its former value is kept, and restored afterwards. The
// first result is nil if the field does not change.
func (z *zone) nextExcessField() (back *int32, kept string) {
	field := 0
	if z.field != nil {
		field = int(*z.field)
	}
	after := derived(z.next.share, z.next.bounds)
	switch {
	case after && !z.derived && field > 0:
		return nil, strconv.Itoa(field)
	case after:
		return nil, z.Object.Annotations[v1alpha1.OwnExcessAnnotation]
	case z.derived && field != z.kept:
		return ptr.To(pool.ClampInt32(z.kept)), ""
	}
	return nil, ""
}
