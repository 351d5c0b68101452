// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"strconv"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// outcome is the difference between what a member is and what it is to be.
func (r *round) outcome(z *zone) Outcome {
	o := Outcome{Name: z.name, News: z.next.news, Conditions: conditions(z)}
	w := Write{Annotations: map[string]string{}, Gone: z.next.gone, Why: z.next.why}
	if z.next.replicas != z.replicas {
		w.Replicas = small(z.next.replicas)
	}
	if z.next.clear && z.Object.Spec.ExcessReplicas != nil && *z.Object.Spec.ExcessReplicas != 0 {
		w.Excess = small(0)
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
	put(v1alpha1.ShareAnnotation, share)
	put(v1alpha1.MoveAnnotation, move)
	put(v1alpha1.BoundsAnnotation, z.next.bounds)
	put(v1alpha1.GivenBoundsAnnotation, z.next.given)
	if z.Object.DeletionTimestamp == nil {
		o.Write = w
	}
	return o
}

func small(n int) *int32 {
	s := int32(max(0, min(n, math.MaxInt32)))
	return &s
}
