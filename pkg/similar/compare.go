// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Difference is the first property in which two templates differ: for events, conditions and
// explanations.
type Difference struct {
	// Of is "capacity", "allocatable", "free", "label" or "taint".
	Of string
	// Name of the resource or label, or the taint.
	Name string
	// A and B are the two values; empty if there is none.
	A, B string
}

// String returns, for example, "allocatable memory: 7Gi and 8Gi".
func (d Difference) String() string {
	return fmt.Sprintf("%s %s: %s and %s", d.Of, d.Name, orNone(d.A), orNone(d.B))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Similar applies the pair rule.
func Similar(a, b Template, o Options) bool {
	_, similar := Compare(a, b, o)
	return similar
}

// Compare applies the pair rule and returns the reason: if the templates are not similar, the first
// difference in the order of the rule, then by name.
func Compare(a, b Template, o Options) (Difference, bool) {
	if len(o.BalancingLabels) > 0 {
		return o.compareBalancing(a, b)
	}
	if o.samePool(a, b) {
		difference, found := taintDifference(a, b)
		return difference, !found
	}
	for _, difference := range []func(a, b Template) (Difference, bool){
		o.capacityDifference, o.allocatableDifference, o.freeDifference, o.labelDifference, taintDifference,
	} {
		if d, found := difference(a, b); found {
			return d, false
		}
	}
	return Difference{}, true
}

func (o Options) compareBalancing(a, b Template) (Difference, bool) {
	for _, label := range o.BalancingLabels {
		x, onA := a.Labels[label]
		y, onB := b.Labels[label]
		if !onA || !onB || x != y {
			return Difference{Of: "label", Name: label, A: x, B: y}, false
		}
	}
	difference, found := taintDifference(a, b)
	return difference, !found
}

func (o Options) samePool(a, b Template) bool {
	for _, label := range o.PoolLabels {
		if pool := a.Labels[label]; pool != "" && pool == b.Labels[label] {
			return true
		}
	}
	return false
}

func (o Options) capacityDifference(a, b Template) (Difference, bool) {
	return resourceDifference("capacity", a.Capacity, b.Capacity, func(name corev1.ResourceName, x, y float64) bool {
		if name == corev1.ResourceMemory {
			return closeBy(x, y, o.MemoryRatio)
		}
		return x == y
	})
}

func (o Options) allocatableDifference(a, b Template) (Difference, bool) {
	return resourceDifference("allocatable", a.Allocatable, b.Allocatable, func(_ corev1.ResourceName, x, y float64) bool {
		return closeBy(x, y, o.AllocatableRatio)
	})
}

// freeDifference is called only if the two have the same allocatable resources.
func (o Options) freeDifference(a, b Template) (Difference, bool) {
	return resourceDifference("free", a.Free, b.Free, func(name corev1.ResourceName, x, y float64) bool {
		return amount(a.Allocatable, name) == 0 || within(x, y, o.FreeRatio)
	})
}

// closeBy is within, except that none is never close to some.
func closeBy(x, y, ratio float64) bool {
	return (x == 0) == (y == 0) && within(x, y, ratio)
}

// resourceDifference returns the first resource, by name, whose amounts are not alike.
func resourceDifference(
	of string, a, b corev1.ResourceList, alike func(name corev1.ResourceName, x, y float64) bool,
) (Difference, bool) {
	var first corev1.ResourceName
	found := false
	look := func(name corev1.ResourceName) {
		if (!found || name < first) && !alike(name, amount(a, name), amount(b, name)) {
			first, found = name, true
		}
	}
	for name := range a {
		look(name)
	}
	for name := range b {
		look(name)
	}
	if !found {
		return Difference{}, false
	}
	return Difference{Of: of, Name: string(first), A: written(a, first), B: written(b, first)}, true
}

func written(l corev1.ResourceList, name corev1.ResourceName) string {
	q, ok := l[name]
	if !ok {
		return ""
	}
	return q.String()
}

func (o Options) labelDifference(a, b Template) (Difference, bool) {
	var first string
	found := false
	look := func(label string) {
		x, onA := a.Labels[label]
		y, onB := b.Labels[label]
		if (onA != onB || x != y) && (!found || label < first) && o.counts(label) {
			first, found = label, true
		}
	}
	for label := range a.Labels {
		look(label)
	}
	for label := range b.Labels {
		look(label)
	}
	return Difference{Of: "label", Name: first, A: a.Labels[first], B: b.Labels[first]}, found
}

// repelling returns the taints that keep pods away unless tolerated, as key=value:effect, sorted
// and without duplicates. PreferNoSchedule keeps no pod away.
func repelling(taints []corev1.Taint) []string {
	var all []string
	for _, t := range taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule {
			all = append(all, t.Key+"="+t.Value+":"+string(t.Effect))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// taintDifference returns the first taint that only one of the two has.
func taintDifference(a, b Template) (Difference, bool) {
	x, y := repelling(a.Taints), repelling(b.Taints)
	at := 0
	for at < min(len(x), len(y)) && x[at] == y[at] {
		at++
	}
	switch {
	case at == len(x) && at == len(y):
		return Difference{}, false
	case at == len(y) || at < len(x) && x[at] < y[at]:
		return Difference{Of: "taint", Name: x[at], A: "there"}, true
	}
	return Difference{Of: "taint", Name: y[at], B: "there"}, true
}
