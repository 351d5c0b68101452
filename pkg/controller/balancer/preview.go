// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	balancerinformers "github.com/evenkeel/evenkeel/pkg/client/informers/workloads"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/still"
)

// Preview is a controller over given objects that writes nothing. The caller applies its plans: see
// [plan.View.After]. It asks the API server only for kinds and scales.
type Preview struct {
	c     *Controller
	clock *still.Clock
}

// Objects are everything that the preview reads. None of them is changed.
type Objects struct {
	Balancers   []*v1alpha1.Balancer
	Pods        []*corev1.Pod
	Autoscalers []*autoscalingv2.HorizontalPodAutoscaler
	// Nodes are those of the pods. Without a Node, its pods count as they are.
	Nodes []*corev1.Node
	// Workloads contains the objects of each resource that could be listed; see
	// [Preview.Resources].
	Workloads map[schema.GroupVersionResource][]*unstructured.Unstructured
}

// NewPreview returns a preview without objects. Its clients need no access to Balancers.
func NewPreview(clients Clients) (*Preview, error) {
	core, ours := informers.NewSharedInformerFactory(nil, 0), balancerinformers.NewSharedInformerFactory(nil, 0)
	p := &Preview{clock: &still.Clock{}}
	var err error
	p.c, err = New(clients, Informers{
		Balancers: ours.Balancer().V1alpha1().Balancers(), Pods: core.Core().V1().Pods(),
		Autoscalers: core.Autoscaling().V2().HorizontalPodAutoscalers(), Nodes: core.Core().V1().Nodes(),
	}, nil, Options{Clock: p.clock})
	if err != nil {
		return nil, err
	}
	p.c.Run(still.EndedContext())
	return p, nil
}

// Resources returns the resources that a preview of a Balancer needs: its targets, and the machines
// of targets that consist of machines.
func (p *Preview) Resources(b *v1alpha1.Balancer) []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for _, t := range b.Spec.Targets {
		resource, hold, _ := p.c.resource(context.Background(), t.ScaleTargetRef)
		if hold != (plan.Hold{}) {
			continue
		}
		if all = append(all, resource); resource.Group == machineGroup {
			all = append(all, resource.GroupVersion().WithResource("machines"))
		}
	}
	return all
}

// SetObjects replaces the objects of the preview.
func (p *Preview) SetObjects(o Objects, now time.Time) error {
	p.clock.Set(now)
	errs := []error{still.Replace(p.c.balancers, o.Balancers), still.Replace(p.c.pods, stripped(o.Pods)), still.Replace(p.c.autoscalers, o.Autoscalers), still.Replace(p.c.nodes, strippedNodes(o.Nodes))}
	caches := map[schema.GroupVersionResource]*kindCache{}
	for _, b := range o.Balancers {
		for _, resource := range p.Resources(b) {
			// The cache of a resource that could not be listed never fills.
			caches[resource] = &kindCache{informer: still.Informer{}}
		}
	}
	for resource, objects := range o.Workloads {
		informer, err := still.NewInformer(objects, cache.Indexers{byLabel: indexByLabel})
		caches[resource] = newKindCache(informer, p.clock)
		errs = append(errs, err)
	}
	p.c.watches.caches = caches
	return errors.Join(errs...)
}

// stripped returns pods as the cache keeps them.
func stripped(pods []*corev1.Pod) []*cachedPod {
	var s podStripper
	var kept []*cachedPod
	for _, pod := range pods {
		kept = append(kept, s.stripPod(pod))
	}
	return kept
}

func strippedNodes(nodes []*corev1.Node) []any {
	var kept []any
	for _, node := range nodes {
		slim, _ := stripNode(node) // never fails
		kept = append(kept, slim)
	}
	return kept
}

// Plan returns what the controller would do about a Balancer now. It returns false if the Balancer
// is gone or being deleted.
func (p *Preview) Plan(ctx context.Context, namespace, name string) (plan.View, plan.Plan, bool, error) {
	b, ok := p.c.balancerCopy(namespace + "/" + name)
	if !ok {
		return plan.View{}, plan.Plan{}, false, nil
	}
	v, wait, err := p.c.observe(ctx, b)
	if err != nil {
		return plan.View{}, plan.Plan{}, false, fmt.Errorf("look at Balancer %s: %w", name, err)
	}
	made := plan.New(v)
	made.Again = requeue.Sooner(wait, made.Again)
	return v, made, true, nil
}
