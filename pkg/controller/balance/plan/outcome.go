// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

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
