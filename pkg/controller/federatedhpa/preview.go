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
	autoscalinginformers "github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/still"
)

// Preview is what the controller sees and would do about one object.
type Preview struct {
	View View
	Plan Plan
}

// lookAgain is how often a preview looks whether all clusters have answered.
const lookAgain = 50 * time.Millisecond

// NewPreviews looks at the clusters of a registry as the controller does, for objects that are given, until all have answered
// or ctx ends; who has not by then is out of reach. It sends reads alone: nothing is ever ordered. It is an error where
// the registry itself does not answer.
func NewPreviews(ctx context.Context, registry Registry, objects []*v1alpha1.FederatedHorizontalPodAutoscaler, o Options) ([]Preview, error) {
	informer := autoscalinginformers.NewSharedInformerFactory(nil, 0).Autoscaling().V1alpha1().FederatedHorizontalPodAutoscalers()
	c, err := New(nil, informer, registry, nil, o)
	if err != nil {
		return nil, err
	}
	objects = stripped(objects)
	if err := still.Show(c.objects, objects); err != nil {
		return nil, err
	}
	defer c.loop.Run(still.Ended())
	// The clusters are watched a little longer than anybody waits for them, so that what they said last still counts.
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

// stripped are copies of objects as the controller's cache has them.
func stripped(objects []*v1alpha1.FederatedHorizontalPodAutoscaler) (all []*v1alpha1.FederatedHorizontalPodAutoscaler) {
	for _, o := range objects {
		o = o.DeepCopy()
		_, _ = stripObject(o) // fails never
		all = append(all, o)
	}
	return all
}

// preview plans for all objects, and reports whether all clusters have answered.
func (c *Controller) preview(objects []*v1alpha1.FederatedHorizontalPodAutoscaler) (all []Preview, answered bool) {
	answered = true
	for _, o := range objects {
		v, _ := c.observe(o.DeepCopy())
		answered = answered && !slices.ContainsFunc(v.Clusters, Cluster.silent)
		all = append(all, Preview{v, NewPlan(v)})
	}
	return all, answered
}

// silent reports whether a cluster may still say what it has.
func (c Cluster) silent() bool {
	return c.Registered && c.Fault == Hold{} && (!c.Reachable || !c.Workload.Known && c.Workload.Fault == Hold{})
}
