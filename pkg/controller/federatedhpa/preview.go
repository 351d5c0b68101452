// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	autoscalinginformers "github.com/evenkeel/evenkeel/pkg/client/informers/workloads"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/still"
)

// Preview contains what the controller observes about one object, and what it would do.
type Preview struct {
	View plan.View
	Plan plan.Plan
}

// lookAgain is how often a preview checks whether all clusters have responded.
const lookAgain = 50 * time.Millisecond

// NewPreviews reads the clusters of a registry as the controller does, for the given objects, until
// all have responded or ctx ends. A cluster that has not responded by then is out of reach. It
// sends only reads, and no orders. It returns an error if the registry itself does not respond.
func NewPreviews(ctx context.Context, registry Registry, objects []*v1alpha1.FederatedHorizontalPodAutoscaler, o Options) ([]Preview, error) {
	informer := autoscalinginformers.NewSharedInformerFactory(nil, 0).Autoscaling().V1alpha1().FederatedHorizontalPodAutoscalers()
	c, err := New(nil, informer, registry, nil, o)
	if err != nil {
		return nil, err
	}
	objects = stripped(objects)
	if err := still.Replace(c.objects, objects); err != nil {
		return nil, err
	}
	defer c.loop.Run(still.EndedContext())
	// The clusters are watched a little longer than the caller waits for them, so that their last
	// responses still count.
	watching, end := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { c.registry.Run(watching) })
	defer running.Wait()
	defer c.fleet.stopMembers()
	defer end()
	if !cache.WaitFor(ctx, "", registry.Filled()...) {
		return nil, fmt.Errorf("find clusters: %w", context.Cause(ctx))
	}
	c.fleet.startMembers(watching)
	for {
		previews, answered := c.preview(objects)
		select {
		case <-ctx.Done():
			answered = true
		default:
		}
		if answered {
			return previews, nil
		}
		select {
		case <-ctx.Done():
		case <-c.o.Clock.After(lookAgain):
		}
	}
}

// stripped returns copies of objects as the controller's cache has them.
func stripped(objects []*v1alpha1.FederatedHorizontalPodAutoscaler) (all []*v1alpha1.FederatedHorizontalPodAutoscaler) {
	for _, o := range objects {
		o = o.DeepCopy()
		_, _ = stripObject(o) // never fails
		all = append(all, o)
	}
	return all
}

// preview plans for all objects, and reports whether all clusters have responded.
func (c *Controller) preview(objects []*v1alpha1.FederatedHorizontalPodAutoscaler) (all []Preview, answered bool) {
	answered = true
	for _, o := range objects {
		v, _ := c.observe(o.DeepCopy())
		answered = answered && !slices.ContainsFunc(v.Clusters, isSilent)
		all = append(all, Preview{v, plan.New(v)})
	}
	return all, answered
}

// isSilent reports whether a cluster has not responded yet.
func isSilent(c plan.Cluster) bool {
	return c.Registered && c.Fault == plan.Hold{} && (!c.Reachable || !c.Workload.Known && c.Workload.Fault == plan.Hold{})
}
