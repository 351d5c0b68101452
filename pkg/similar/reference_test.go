// SPDX-License-Identifier: Apache-2.0

package similar_test

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	. "github.com/evenkeel/evenkeel/pkg/similar"
)

// byPairs are the groups as docs/decisions/0003-similar-groups.md has them, in the plainest way: every pair is compared, and
// nothing is hashed or sorted but what is cut.
func byPairs(templates []Template, o Options) [][]string {
	var groups [][]string
	for _, chain := range chains(templates, o) {
		axis, loose := looseAxis(chain, o)
		if !loose {
			groups = append(groups, sortedNames(chain))
			continue
		}
		for _, window := range windows(chain, axis) {
			groups = append(groups, byPairs(window, o)...)
		}
	}
	slices.SortFunc(groups, slices.Compare)
	return groups
}

// chains follows similar templates from one to the next.
func chains(templates []Template, o Options) [][]Template {
	var all [][]Template
	reached := map[int]bool{}
	for i := range templates {
		if reached[i] {
			continue
		}
		reached[i] = true
		chain := []int{i}
		for k := 0; k < len(chain); k++ {
			for j := range templates {
				if !reached[j] && Similar(templates[chain[k]], templates[j], o) {
					reached[j] = true
					chain = append(chain, j)
				}
			}
		}
		members := make([]Template, len(chain))
		for k, j := range chain {
			members[k] = templates[j]
		}
		all = append(all, members)
	}
	return all
}

// axis is an amount that a ratio applies to.
type axis struct {
	amount func(Template) float64
	ratio  float64
}

// looseAxis is the first along which the templates are too far apart: memory, then allocatable and free by name.
func looseAxis(chain []Template, o Options) (axis, bool) {
	axes := []axis{{func(t Template) float64 { return thousandths(t.Capacity, "memory") }, o.MemoryRatio}}
	names := slices.Sorted(maps.Keys(chain[0].Allocatable))
	for _, name := range names {
		axes = append(axes, axis{func(t Template) float64 { return thousandths(t.Allocatable, name) }, o.AllocatableRatio})
	}
	for _, name := range names {
		axes = append(axes, axis{func(t Template) float64 { return thousandths(t.Free, name) }, o.FreeRatio})
	}
	for _, a := range axes {
		for _, s := range chain {
			for _, t := range chain {
				if !a.close(s, t) {
					return a, true
				}
			}
		}
	}
	return axis{}, false
}

func thousandths(l corev1.ResourceList, name corev1.ResourceName) float64 {
	q := l[name]
	return float64(q.MilliValue())
}

func (a axis) close(s, t Template) bool {
	x, y := a.amount(s), a.amount(t)
	return x == y || max(x, y)-min(x, y) <= a.ratio*max(x, y)
}

// windows takes the largest and all close to it, again and again.
func windows(templates []Template, a axis) [][]Template {
	var all [][]Template
	for left := templates; len(left) > 0; {
		largest := slices.MaxFunc(left, func(s, t Template) int {
			return int(a.amount(s) - a.amount(t))
		})
		var window, rest []Template
		for _, t := range left {
			if a.close(largest, t) {
				window = append(window, t)
			} else {
				rest = append(rest, t)
			}
		}
		all = append(all, window)
		left = rest
	}
	return all
}

func sortedNames(templates []Template) []string {
	var all []string
	for _, t := range templates {
		all = append(all, t.Name)
	}
	slices.Sort(all)
	return all
}
