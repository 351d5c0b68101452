// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"slices"
	"strings"
)

// Groups partitions the templates into groups of similar ones. It returns their names, sorted
// within each group, and the groups sorted by their first name. A template that is similar to no
// other forms a group by itself.
func Groups(templates []Template, o Options) [][]string {
	var parts [][]int
	if len(o.BalancingLabels) > 0 {
		parts = byBalancingLabels(templates, o)
	} else {
		parts = joinPools(templates, partition(Completed(templates, o), o), o)
	}
	groups := make([][]string, len(parts))
	for i, part := range parts {
		groups[i] = make([]string, len(part))
		for j, member := range part {
			groups[i][j] = templates[member].Name
		}
		slices.Sort(groups[i])
	}
	slices.SortFunc(groups, slices.Compare)
	return groups
}

// partition applies the pair rule without pools. Members of the parts are indices.
func partition(templates []Template, o Options) [][]int {
	k := keys{options: o}
	found := map[string]int{}
	var buckets [][]point
	for i, t := range templates {
		key, at := k.exactKey(t)
		bucket, known := found[string(key)]
		if !known {
			bucket = len(buckets)
			found[string(key)] = bucket
			buckets = append(buckets, nil)
		}
		buckets[bucket] = append(buckets[bucket], point{member: i, at: at})
	}
	var parts [][]int
	for _, bucket := range buckets {
		parts = append(parts, o.spaceOf(bucket).divide(bucket)...)
	}
	return parts
}

func byBalancingLabels(templates []Template, o Options) [][]int {
	k := keys{options: o}
	found := map[string]int{}
	var parts [][]int
	for i, t := range templates {
		key, ok := k.balancing(t)
		part, known := found[string(key)]
		if known {
			parts[part] = append(parts[part], i)
			continue
		}
		if ok {
			found[string(key)] = len(parts)
		}
		parts = append(parts, []int{i})
	}
	return parts
}

// joinPools joins two parts if a member of one and a member of the other are in the same pool and
// have the same taints. All members of a part have the same taints.
func joinPools(templates []Template, parts [][]int, o Options) [][]int {
	if len(o.PoolLabels) == 0 {
		return parts
	}
	type pool struct{ label, value, taints string }
	first := map[pool]int{}
	joined := newForest(len(parts))
	for i, part := range parts {
		for _, member := range part {
			taints := strings.Join(repelling(templates[member].Taints), ",")
			for _, label := range o.PoolLabels {
				p := pool{label, templates[member].Labels[label], taints}
				if p.value == "" {
					continue
				}
				if other, known := first[p]; known {
					joined.union(i, other)
				}
				first[p] = i
			}
		}
	}
	var all [][]int
	for _, tree := range joined.sets() {
		var members []int
		for _, part := range tree {
			members = append(members, parts[part]...)
		}
		all = append(all, members)
	}
	return all
}
