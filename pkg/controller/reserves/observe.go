// SPDX-License-Identifier: Apache-2.0

package reserves

import (
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// observe collects the view of a namespace. If a store is behind the answers to our writes, the
// answers are used.
func (c *Controller) observe(namespace string) View {
	v := View{Now: c.clock.Now(), Reserves: c.reservesIn(namespace)}
	weighs := slices.ContainsFunc(v.Reserves, namesResources)
	for _, d := range in[*machine.MachineDeployment](c.deployments, namespace) {
		one := Pool{Deployment: c.written.Newest(d)}
		if wishes, _ := pool.WishesOf(d); len(v.Reserves) > 0 && (weighs || wishes.Bounds != nil && wishes.Bounds.Excess != nil) {
			one.Allocatable = pool.Read(d, &c.source, v.Now).Allocatable
		}
		v.Pools = append(v.Pools, one)
	}
	return v
}

func (c *Controller) reservesIn(namespace string) []*v1alpha1.Reserve {
	all := in[*v1alpha1.Reserve](c.reserves, namespace)
	for i, r := range all {
		all[i] = c.statuses.Newest(r)
	}
	return all
}

// namesResources reports whether a Reserve requests resources, so that the capacity of machines
// matters.
func namesResources(r *v1alpha1.Reserve) bool {
	return strings.Contains(string(r.Spec.Amount), "=") ||
		slices.ContainsFunc(r.Spec.Schedules, func(s v1alpha1.ReserveSchedule) bool { return strings.Contains(string(s.Amount), "=") })
}

// in returns the objects of a namespace.
func in[T any](store cache.Indexer, namespace string) []T {
	return stores.Indexed[T](store, cache.NamespaceIndex, namespace)
}
