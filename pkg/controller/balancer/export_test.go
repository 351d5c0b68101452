// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"slices"
	"testing/synctest"

	"k8s.io/client-go/tools/cache"
)

// Held is how many things the controller remembers of objects that come and go.
func (c *Controller) Held() int {
	synctest.Wait() // while the controller does nothing
	return c.written.Len() + len(c.refusals.known) + len(c.scales.known) + len(c.interests.selectors)
}

// Cached are all objects in the caches of the controller.
func (c *Controller) Cached() []any {
	all := slices.Concat(c.balancers.List(), c.pods.List(), c.autoscalers.List())
	for _, k := range c.watches.caches {
		all = append(all, k.informer.GetStore().List()...)
	}
	return all
}

// Kinds is how many group versions it remembers.
func (c *Controller) Kinds() int { return len(c.kinds.known) }

// What tests look at apart from the whole.
var (
	OnlyReports = onlyReports
	Requests    = requests
	StripObject = stripObject
	StripHPA    = stripAutoscaler
	OwnCounts   = ownCounts
	PodSelector = podSelector
	Settling    = settling
	Capped      = capped
	IsParallel  = isParallel
	Kept        = heldByAnnotation
)

// CachedPod is cachedPod.
type CachedPod = cachedPod

// StripPods returns the transform of a cache of pods.
func StripPods() func(any) (any, error) { return (&podStripper{}).stripObject }

// RequestsOf reports whether the cached pod has requests for CPU and memory.
func RequestsOf(kept any) (cpu, memory bool) {
	pod := kept.(*cachedPod)
	return pod.requestsCPU, pod.requestsMemory
}

// Indexers are those of caches of pods and of workloads.
var Indexers = cache.Indexers{byLabel: indexByLabel}

// Refused is refused.
var Refused = refused
