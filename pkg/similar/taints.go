// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

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
