// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// hasUserBounds reports whether a user wrote the bounds of a member.
func (z *zone) hasUserBounds() bool {
	return z.next.bounds != "" && z.next.bounds != z.given
}

// offeredBounds returns the bounds of a member from another source: Gardener's Worker, the
// annotation of its worker if the Worker cannot be read, or the flags.
func (r *round) offeredBounds(z *zone) (v1alpha1.Bounds, bool) {
	if b, ok := r.Garden.Bounds[z.name]; ok {
		return b, true
	}
	if b, ok := r.portions[z.name]; ok {
		return b, true
	}
	b, ok := r.Settings.Bounds[z.name]
	return b, ok
}

// readBounds uses bounds from another source if a user wrote none. They count before they are
// written, and before bounds that were written for an older offer.
func (r *round) readBounds() {
	r.readPortions()
	for _, z := range r.zones {
		if r.Garden.Known && !z.unsettled && !z.hasUserBounds() {
			z.bounds = nil
			if b, ok := r.offeredBounds(z); ok {
				z.bounds = &b
			}
		}
		z.maxUnknown = z.bounds == nil && z.ownedByGardener() && (r.Garden.Here || !r.Garden.Known)
	}
}

// keepsShare reports whether a member's share stays as it is, since its max is not known yet.
func (r *round) keepsShare(z *zone) bool { return z.maxUnknown && (z.unsettled || !r.Garden.Known) }

// giveBounds writes bounds from another source if a user wrote none. Their third part is the
// member's share of its pool's excess, so that bounds and share agree.
func (r *round) giveBounds() {
	if !r.Garden.Known {
		return
	}
	for _, z := range r.zones {
		if z.hasUserBounds() {
			z.next.given = ""
			continue
		}
		if z.unsettled {
			continue
		}
		b, ok := r.offeredBounds(z)
		text := ""
		if ok {
			text = r.boundsWithShare(z, b)
		}
		z.next.bounds, z.next.given = text, text
	}
}

// boundsWithShare adds a member's share to its bounds if its pool has an excess.
func (r *round) boundsWithShare(z *zone, b v1alpha1.Bounds) string {
	if z.pooled && z.next.share != nil {
		return fmt.Sprintf("%d:%d:%d", b.Min, b.Max, max(0, *z.next.share-awaiting(z.next.move)))
	}
	return b.String()
}
