// SPDX-License-Identifier: Apache-2.0

// Package turns lets namespaces take turns where not all of their objects can be considered.
package turns

import (
	"cmp"
	"slices"
)

// ByNamespace returns items in turns: the first of each namespace, then the second of each, and so
// on. Within a turn, and within a namespace, the order stays.
func ByNamespace[T any](items []T, namespaceOf func(T) string) []T {
	type place struct {
		item T
		turn int
	}
	places, seen := make([]place, len(items)), map[string]int{}
	for i, item := range items {
		namespace := namespaceOf(item)
		places[i] = place{item, seen[namespace]}
		seen[namespace]++
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.turn, b.turn) })
	ordered := make([]T, len(items))
	for i, p := range places {
		ordered[i] = p.item
	}
	return ordered
}
