// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
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

// settleTime is how old the newest MachineDeployment of a pool must be before the pool's bounds are
// split. Gardener creates those of one pool within a second, and a split with only the first one
// would give it the max of all.
const settleTime = 10 * time.Second

// readPortions splits the bounds of a whole pool, from its worker's annotation, over its zones. If
// the Worker can be read, it counts instead.
func (r *round) readPortions() {
	r.portions = map[string]v1alpha1.Bounds{}
	if r.Garden.Here && !r.Garden.Forbidden {
		return
	}
	pools := map[string][]*zone{}
	for _, z := range r.zones {
		if z.pool != "" && z.Object.DeletionTimestamp == nil {
			pools[z.pool] = append(pools[z.pool], z)
		}
	}
	for _, zones := range pools {
		r.splitBounds(zones)
	}
}

// splitBounds splits the bounds of one pool. If its members differ, while they are changed one
// after the other, the smallest max counts. Shares stay as they are while the annotation is
// invalid, and while the pool is being created.
func (r *round) splitBounds(zones []*zone) {
	said := slices.DeleteFunc(slices.Clone(zones), func(z *zone) bool { return z.whole == nil })
	set := slices.ContainsFunc(zones, func(z *zone) bool { return z.worker()[v1alpha1.BoundsAnnotation] != "" })
	if !set {
		return
	}
	young := slices.ContainsFunc(zones, func(z *zone) bool { return r.Now.Before(z.Object.CreationTimestamp.Add(settleTime)) })
	if len(said) == 0 || young {
		for _, z := range zones {
			z.unsettled = true
		}
		return
	}
	whole := slices.MinFunc(said, func(a, b *zone) int { return cmp.Compare(a.whole.Max, b.whole.Max) }).whole
	slices.SortFunc(zones, byNumber)
	for i, z := range zones {
		r.portions[z.name] = v1alpha1.Bounds{Min: portionOf(whole.Min, i, len(zones)), Max: portionOf(whole.Max, i, len(zones))}
	}
}

// portionOf returns the part of a number that Gardener gives to one of several zones: the first
// zones have one more if it cannot be divided evenly.
func portionOf(whole int32, zone, zones int) int32 {
	part := whole / int32(zones)
	if int32(zone) < whole%int32(zones) {
		part++
	}
	return part
}

// numbered is how Gardener's extensions name the MachineDeployment of a pool's zone, from 1 on.
var numbered = regexp.MustCompile(`^(.*-z)([1-9][0-9]{0,8})$`)

// byNumber orders the zones of a pool as the Shoot's worker lists them: z2 comes before z10. A name
// without a number counts as its own prefix, with 0, so no two names are equal.
func byNumber(a, b *zone) int {
	nameA, numberA := number(a.name)
	nameB, numberB := number(b.name)
	return cmp.Or(cmp.Compare(nameA, nameB), cmp.Compare(numberA, numberB))
}

func number(name string) (prefix string, n int) {
	parts := numbered.FindStringSubmatch(name)
	if parts == nil {
		return name, 0
	}
	n, _ = strconv.Atoi(parts[2]) // nine digits
	return parts[1], n
}

// ownedByGardener reports whether Gardener created a member, so that it has a max even if that
// cannot be read.
func (z *zone) ownedByGardener() bool { return z.Object.Labels[pool.WorkerPoolLabel] != "" }

// ParseNodes reads bounds as cluster-autoscaler takes them by flag, with the excess in third place:
// "min:max:excess:namespace.name". Without it, "min:max:namespace.name", the excess is 0.
func ParseNodes(text string) (namespace, name string, bounds v1alpha1.Bounds, err error) {
	parts := strings.Split(text, ":")
	limits := parts[:len(parts)-1]
	if len(limits) == 2 {
		limits = append(limits[:2:2], "0")
	}
	namespace, name, _ = strings.Cut(parts[len(parts)-1], ".")
	if len(limits) != 3 || namespace == "" || name == "" {
		return "", "", bounds, fmt.Errorf("%.80q: write min:max:excess:namespace.name, as in 1:10:2:default.pool-z1", text)
	}
	if bounds, err = v1alpha1.ParseBounds(strings.Join(limits, ":")); err != nil {
		return "", "", bounds, fmt.Errorf("%.80q: %w", text, err)
	}
	return namespace, name, bounds, nil
}
