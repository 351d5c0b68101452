// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// keys writes what must be equal in similar templates, one key after the other into the same
// memory. Two templates have the same key if and only if they differ only in amounts that a ratio
// applies to.
type keys struct {
	options   Options
	key       []byte
	labels    []pair
	resources []quantity
}

type pair struct{ label, value string }

type quantity struct {
	name   corev1.ResourceName
	amount float64
}

// exactKey returns the key of the pair rule. It contains the names of the resources that ratios
// apply to; their amounts are the coordinates.
func (k *keys) exactKey(t Template) (key []byte, at []float64) {
	k.key = k.key[:0]
	k.addKind(t)
	at = make([]float64, 0, 1+2*len(t.Allocatable))
	at = append(at, memory(t))
	allocatable := k.sorted(t.Allocatable)
	for _, q := range allocatable {
		k.addWord(string(q.name))
		at = append(at, q.amount)
	}
	for _, q := range allocatable {
		at = append(at, amount(t.Free, q.name))
	}
	return k.key, at
}

// addKind adds the part of the key that is known for every template, estimated or not.
func (k *keys) addKind(t Template) {
	capacity := k.sorted(t.Capacity)
	k.number(uint64(len(capacity)))
	for _, q := range capacity {
		k.addWord(string(q.name))
		if q.name != corev1.ResourceMemory {
			k.number(math.Float64bits(q.amount))
		}
	}
	k.labels = k.labels[:0]
	for label, value := range t.Labels {
		if k.options.counts(label) {
			k.labels = append(k.labels, pair{label, value})
		}
	}
	slices.SortFunc(k.labels, func(a, b pair) int { return strings.Compare(a.label, b.label) })
	k.number(uint64(len(k.labels)))
	for _, l := range k.labels {
		k.addWord(l.label)
		k.addWord(l.value)
	}
	k.taints(t)
}

func (k *keys) taints(t Template) {
	taints := repelling(t.Taints)
	k.number(uint64(len(taints)))
	for _, taint := range taints {
		k.addWord(taint)
	}
}

// balancing returns the key for --balancing-label; none if one of the labels is missing.
func (k *keys) balancing(t Template) (key []byte, ok bool) {
	k.key = k.key[:0]
	for _, label := range k.options.BalancingLabels {
		value, ok := t.Labels[label]
		if !ok {
			return nil, false
		}
		k.addWord(value)
	}
	k.taints(t)
	return k.key, true
}

// sorted returns the resources that are not zero. The result is valid until the next call.
func (k *keys) sorted(l corev1.ResourceList) []quantity {
	k.resources = k.resources[:0]
	for name, q := range l {
		if n := milliValue(q); n != 0 {
			k.resources = append(k.resources, quantity{name, n})
		}
	}
	slices.SortFunc(k.resources, func(a, b quantity) int { return strings.Compare(string(a.name), string(b.name)) })
	return k.resources
}

// addWord writes the length before the word, so that different sequences of words have different
// keys.
func (k *keys) addWord(s string) {
	k.number(uint64(len(s)))
	k.key = append(k.key, s...)
}

func (k *keys) number(n uint64) { k.key = binary.AppendUvarint(k.key, n) }
