// SPDX-License-Identifier: Apache-2.0

package reserves

import (
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
)

// observe collects the view of a namespace. If a store is behind the answers to our writes, the
// answers are used.
func (c *Controller) observe(namespace string) plan.View {
	now, deployments := c.clock.Now(), inNamespace[*machine.MachineDeployment](c.deployments, namespace)
	for i, d := range deployments {
		deployments[i] = c.written.Newest(d)
	}
	return plan.NewView(now, c.reservesIn(namespace), deployments, &c.source)
}

func (c *Controller) reservesIn(namespace string) []*v1alpha1.Reserve {
	all := inNamespace[*v1alpha1.Reserve](c.reserves, namespace)
	for i, r := range all {
		all[i] = c.statuses.Newest(r)
	}
	return all
}

// inNamespace returns the objects of a namespace.
func inNamespace[T any](store cache.Indexer, namespace string) []T {
	return stores.Indexed[T](store, cache.NamespaceIndex, namespace)
}
