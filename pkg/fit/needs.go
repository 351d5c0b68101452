// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	requests "k8s.io/component-helpers/resource"
)

// needs are what the scheduler reserves for a pod, in the scheduler's units: CPU in thousandths,
// everything else in whole units.
type needs struct {
	CPU, Memory int64
	// Other are sorted by name; none is 0.
	Other []need
}

type need struct {
	Name   corev1.ResourceName
	Amount int64
}

func needsOf(pod *corev1.Pod) needs {
	var n needs
	for name, q := range Requests(pod) {
		n.addAmount(name, schedulerUnits(name, q))
	}
	slices.SortFunc(n.Other, func(a, b need) int { return cmp.Compare(a.Name, b.Name) })
	return n
}

// Requests returns what the scheduler reserves for a pod: while a running pod is resized, also what
// it still has.
func Requests(pod *corev1.Pod) corev1.ResourceList {
	runs := pod.Spec.NodeName != ""
	return requests.PodRequests(pod, requests.PodResourcesOptions{UseStatusResources: runs, InPlacePodLevelResourcesVerticalScalingEnabled: runs})
}

func (n *needs) addAmount(name corev1.ResourceName, amount int64) {
	switch {
	case amount <= 0:
	case name == corev1.ResourceCPU:
		n.CPU = amount
	case name == corev1.ResourceMemory:
		n.Memory = amount
	default:
		n.Other = append(n.Other, need{name, amount})
	}
}

// schedulerUnits converts an amount to the units of the scheduler, rounded up. It limits amounts
// that are larger than any machine has, so that their sum does not overflow.
func schedulerUnits(name corev1.ResourceName, q resource.Quantity) int64 {
	switch {
	case q.CmpInt64(maxAmount) > 0:
		return maxAmount
	case name == corev1.ResourceCPU:
		return min(q.MilliValue(), maxAmount)
	}
	return q.Value()
}

const maxAmount = 1 << 50

// stock is what a node has, or has left. It may be negative, if a node shrinks while pods run on
// it.
type stock struct {
	cpu, memory, pods int64
	other             map[corev1.ResourceName]int64
}

func stockOf(list corev1.ResourceList) stock {
	s := stock{other: map[corev1.ResourceName]int64{}}
	for name, q := range list {
		switch amount := schedulerUnits(name, q); name {
		case corev1.ResourceCPU:
			s.cpu = amount
		case corev1.ResourceMemory:
			s.memory = amount
		case corev1.ResourcePods:
			s.pods = amount
		default:
			s.other[name] = amount
		}
	}
	return s
}

func (s *stock) fits(n needs) bool {
	if s.pods < 1 || n.CPU > 0 && n.CPU > s.cpu || n.Memory > 0 && n.Memory > s.memory {
		return false
	}
	for _, o := range n.Other {
		if o.Amount > s.other[o.Name] {
			return false
		}
	}
	return true
}

// reserve subtracts what a number of pods need. A negative number of pods gives it back.
func (s *stock) reserve(n needs, pods int64) {
	s.pods -= pods
	s.cpu -= pods * n.CPU
	s.memory -= pods * n.Memory
	for _, o := range n.Other {
		s.other[o.Name] -= pods * o.Amount
	}
}

// largestPart returns the largest part of a stock that some needs take: 1 fills it. It is 1 if the
// stock has none of a resource.
func (s *stock) largestPart(n needs) float64 {
	most := max(fraction(n.CPU, s.cpu), fraction(n.Memory, s.memory), fraction(1, s.pods))
	for _, o := range n.Other {
		most = max(most, fraction(o.Amount, s.other[o.Name]))
	}
	return most
}

func fraction(amount, of int64) float64 {
	switch {
	case amount <= 0:
		return 0
	case amount >= of:
		return 1
	}
	return float64(amount) / float64(of)
}

func (s *stock) clone() stock {
	c := *s
	c.other = maps.Clone(s.other)
	return c
}

// usedSince returns the part of a stock that has been used since: the largest of all resources.
func (s *stock) usedSince(now stock) float64 {
	most := max(fraction(s.cpu-now.cpu, s.cpu), fraction(s.memory-now.memory, s.memory), fraction(s.pods-now.pods, s.pods))
	for name, had := range s.other {
		most = max(most, fraction(had-now.other[name], had))
	}
	return most
}

// similarity returns how well needs match what is left of a stock: it is larger the more they take
// of what is plentiful.
func (s *stock) similarity(left stock, n needs) float64 {
	m := fraction(n.CPU, s.cpu)*fraction(left.cpu, s.cpu) + fraction(n.Memory, s.memory)*fraction(left.memory, s.memory)
	for _, o := range n.Other {
		m += fraction(o.Amount, s.other[o.Name]) * fraction(left.other[o.Name], s.other[o.Name])
	}
	return m
}
