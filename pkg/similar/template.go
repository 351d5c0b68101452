// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Template is what a fresh machine of a MachineDeployment offers. This package never changes a
// template.
type Template struct {
	// Name of the MachineDeployment. It is unique among the templates that are grouped.
	Name        string
	Capacity    corev1.ResourceList
	Allocatable corev1.ResourceList
	// Free is what DaemonSets leave of Allocatable. Resources that Allocatable lacks do not count.
	Free   corev1.ResourceList
	Labels map[string]string
	// Taints are those that every machine of the MachineDeployment has, so that pods must tolerate
	// them.
	Taints []corev1.Taint
	// Estimated reports whether the template does not come from a real machine. Allocatable and
	// Free are then the capacity; see [Completed].
	Estimated bool
}

// amount returns thousandths, as cluster-autoscaler compares them; zero for a missing resource.
func amount(l corev1.ResourceList, name corev1.ResourceName) float64 {
	q, ok := l[name]
	if !ok {
		return 0
	}
	return milliValue(q)
}

// milliValue does not overflow, unlike MilliValue for a quantity above 9e15, and Value for one above
// 9e18.
func milliValue(q resource.Quantity) float64 {
	if whole, ok := q.AsInt64(); ok {
		return float64(whole) * 1000
	}
	if v := q.AsApproximateFloat64(); math.Abs(v) > math.MaxInt64/1000 {
		return v * 1000
	}
	return float64(q.MilliValue())
}

// within reports whether two amounts differ by at most a part of the larger one. Equal amounts
// always do, whatever the ratio; therefore dividing templates ends even with a ratio that is not a
// number.
func within(x, y, ratio float64) bool {
	return x == y || max(x, y)-min(x, y) <= max(x, y)*ratio
}
