// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"maps"
	"slices"
	"sort"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/controller"
)

// inOrder returns machines in the order in which machine-controller-manager would delete them, by
// its own code.
func inOrder(machines []*mcm.Machine) []*mcm.Machine {
	machines = slices.Clone(machines)
	sort.Stable(controller.ActiveMachines(machines))
	return machines
}

// tiedMachines returns the keys of the machines on both sides of the cut that the order does not
// distinguish, or none.
func tiedMachines(machines []*mcm.Machine, cut int) []string {
	if cut <= 0 || cut >= len(machines) {
		return nil
	}
	same := func(i, j int) bool {
		order := controller.ActiveMachines(machines)
		return !order.Less(i, j) && !order.Less(j, i)
	}
	if !same(cut-1, cut) {
		return nil
	}
	var keys []string
	for i, m := range machines {
		if same(i, cut) {
			keys = append(keys, keyOf(m))
		}
	}
	return keys
}

// ties are sets of machines by key. Some machines of each are deleted; it cannot be predicted which.
type ties []map[string]bool

// merge adds a set, and joins all sets that share a machine.
func (t ties) merge(keys []string) ties {
	if len(keys) == 0 {
		return t
	}
	joined, rest := map[string]bool{}, ties{}
	for _, key := range keys {
		joined[key] = true
	}
	for _, set := range t {
		if slices.ContainsFunc(keys, func(key string) bool { return set[key] }) {
			maps.Copy(joined, set)
			continue
		}
		rest = append(rest, set)
	}
	return append(rest, joined)
}

// undecided returns the sets that are left in part, sorted.
func (t ties) undecided(left func(key string) bool) [][]string {
	var all [][]string
	for _, set := range t {
		keys := slices.Sorted(maps.Keys(set))
		if slices.ContainsFunc(keys, left) && !allOf(keys, left) {
			all = append(all, keys)
		}
	}
	slices.SortFunc(all, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return all
}

func allOf(keys []string, is func(string) bool) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return !is(key) })
}
