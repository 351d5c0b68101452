// SPDX-License-Identifier: Apache-2.0

package pool

import corev1 "k8s.io/api/core/v1"

// LeastAmounts returns the resources that all machines offer, and the least of each. A list that is
// nil is not known, and does not count; the result is nil if none is known.
func LeastAmounts(all []corev1.ResourceList) corev1.ResourceList {
	var least corev1.ResourceList
	for _, amounts := range all {
		switch {
		case amounts == nil:
		case least == nil:
			least = amounts.DeepCopy()
		default:
			lowerAmounts(least, amounts)
		}
	}
	return least
}

// lowerAmounts lowers amounts to those of another machine, and drops resources that it lacks.
func lowerAmounts(least, other corev1.ResourceList) {
	for name, has := range least {
		switch q, known := other[name]; {
		case !known:
			delete(least, name)
		case q.Cmp(has) < 0:
			least[name] = q
		}
	}
}
