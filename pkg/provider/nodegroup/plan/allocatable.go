// SPDX-License-Identifier: Apache-2.0

package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// bracket is a part of a machine's capacity, and how much of it is reserved.
type bracket struct {
	size     int64
	promille int64
}

// What kubelets of managed clusters usually reserve: much of a small machine, little of a large
// one. If a template promises too much, the caller raises a group for pods that do not fit. In
// doubt, it promises too little.
var (
	cpuBrackets    = []bracket{{1000, 60}, {1000, 10}, {2000, 5}, {1 << 40, 2}} // millicores
	memoryBrackets = []bracket{{4 << 30, 250}, {4 << 30, 200}, {8 << 30, 100}, {112 << 30, 60}, {1 << 60, 20}}
	diskBrackets   = []bracket{{1 << 60, 100}} // below that a kubelet evicts pods
)

// evictionMemory is what a kubelet keeps free by evicting pods, by default.
const evictionMemory = 100 << 20

// allocatable returns what pods can use of a capacity: all except what is reserved, or what is
// usually reserved.
func allocatable(capacity, reserved corev1.ResourceList) corev1.ResourceList {
	all := capacity.DeepCopy()
	for name, q := range all {
		kept, said := reserved[name]
		if !said {
			kept = usualReservation(name, q)
		}
		if q.Sub(kept); q.Sign() < 0 {
			q = resource.Quantity{Format: q.Format}
		}
		all[name] = q
	}
	return all
}

// usualReservation returns what kubelets usually reserve of a capacity.
func usualReservation(name corev1.ResourceName, capacity resource.Quantity) resource.Quantity {
	switch name {
	case corev1.ResourceCPU:
		return *resource.NewMilliQuantity(reservedIn(capacity.MilliValue(), cpuBrackets), resource.DecimalSI)
	case corev1.ResourceMemory:
		return *resource.NewQuantity(reservedIn(capacity.Value(), memoryBrackets)+evictionMemory, resource.BinarySI)
	case corev1.ResourceEphemeralStorage:
		return *resource.NewQuantity(reservedIn(capacity.Value(), diskBrackets), resource.BinarySI)
	}
	return resource.Quantity{}
}

// reservedIn returns what is reserved of an amount, bracket by bracket.
func reservedIn(amount int64, brackets []bracket) int64 {
	kept := int64(0)
	for _, s := range brackets {
		part := max(0, min(amount, s.size))
		kept += part/1000*s.promille + part%1000*s.promille/1000
		amount -= part
	}
	return kept
}
