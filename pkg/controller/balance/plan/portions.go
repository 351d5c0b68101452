// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

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
