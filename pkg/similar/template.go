// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Template is what a fresh machine of a MachineDeployment offers. Nothing in this package changes one.
type Template struct {
	// Name of the MachineDeployment; unique among those that are grouped.
	Name        string
	Capacity    corev1.ResourceList
	Allocatable corev1.ResourceList
	// Free is what DaemonSets leave of Allocatable. A resource that Allocatable lacks does not count.
	Free   corev1.ResourceList
	Labels map[string]string
	// Taints are those that every machine of it has, so that pods must tolerate them.
	Taints []corev1.Taint
	// Estimated means that no machine was seen: Allocatable and Free are the capacity, for want of better. See
	// [Completed].
	Estimated bool
}

// amount is in thousandths, as cluster-autoscaler compares; of what is not there it is zero.
func amount(l corev1.ResourceList, name corev1.ResourceName) float64 {
	q, ok := l[name]
	if !ok {
		return 0
	}
	return milliValue(q)
}

// milliValue does not overflow, unlike the MilliValue of a quantity above 9e15.
func milliValue(q resource.Quantity) float64 {
	if whole, ok := q.AsInt64(); ok {
		return float64(whole) * 1000
	}
	if v := q.Value(); v > math.MaxInt64/1000 || v < math.MinInt64/1000 {
		return float64(v) * 1000
	}
	return float64(q.MilliValue())
}

// within reports whether two amounts differ by no more than a part of the larger. Equal ones are so
// whatever the ratio, and that is why dividing templates ends even with a ratio that is no number.
func within(x, y, ratio float64) bool {
	return x == y || max(x, y)-min(x, y) <= max(x, y)*ratio
}
