// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
)

// chronicle has what happened to a shop, every change of it: looking from time to time would miss some.
type chronicle struct {
	mu sync.Mutex
	// wanted are the Balancer's replicas, asked those of each Deployment, one after the other.
	wanted []int32
	asked  map[string][]change
	// pods by name; whether they are ready and are to stay.
	pods map[string]bool
	// least is how few pods were ready since watched was called.
	least int
	// born is when the oldest pod was made of those that are not ready, by zone.
	born map[string]map[string]time.Time
}

type change struct {
	to int32
	at time.Time
}

// record writes down what happens from now on to the end of the spec.
func (s shop) record(ctx context.Context) *chronicle {
	GinkgoHelper()
	c := &chronicle{asked: map[string][]change{}, pods: map[string]bool{}, born: map[string]map[string]time.Time{}}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	core := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(s.name))
	ours := externalversions.NewSharedInformerFactoryWithOptions(machines, 0, externalversions.WithNamespace(s.name))
	var filled []cache.DoneChecker
	listen := func(i cache.SharedIndexInformer, seen func(item any, gone bool)) {
		filled = append(filled, i.HasSyncedChecker())
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(item any) { seen(item, false) },
			UpdateFunc: func(_, item any) { seen(item, false) },
			DeleteFunc: func(item any) { seen(item, true) },
		})
		Expect(err).NotTo(HaveOccurred())
	}
	listen(ours.Balancer().V1alpha1().Balancers().Informer(), c.balancer)
	listen(core.Apps().V1().Deployments().Informer(), c.deployment)
	listen(core.Core().V1().Pods().Informer(), c.pod)
	core.StartWithContext(life)
	ours.StartWithContext(life)
	DeferCleanup(func() {
		end()
		core.Shutdown()
		ours.Shutdown()
	})
	Expect(cache.WaitFor(ctx, "", filled...)).To(BeTrue())
	return c
}

func (c *chronicle) balancer(item any, _ bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b, ok := item.(*balancer.Balancer); ok && (len(c.wanted) == 0 || c.wanted[len(c.wanted)-1] != *b.Spec.Replicas) {
		c.wanted = append(c.wanted, *b.Spec.Replicas)
	}
}

func (c *chronicle) deployment(item any, _ bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := item.(*appsv1.Deployment)
	if !ok {
		return
	}
	if all := c.asked[d.Name]; len(all) == 0 || all[len(all)-1].to != *d.Spec.Replicas {
		c.asked[d.Name] = append(all, change{*d.Spec.Replicas, time.Now()})
	}
}

func (c *chronicle) pod(item any, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := item.(cache.DeletedFinalStateUnknown); ok {
		item = last.Obj
	}
	pod, ok := item.(*corev1.Pod)
	if !ok {
		return
	}
	zone := pod.Labels["zone"]
	if c.born[zone] == nil {
		c.born[zone] = map[string]time.Time{}
	}
	delete(c.pods, pod.Name)
	delete(c.born[zone], pod.Name)
	switch {
	case gone || pod.DeletionTimestamp != nil:
	case podReady(pod):
		c.pods[pod.Name] = true
	default:
		c.born[zone][pod.Name] = pod.CreationTimestamp.Time
	}
	c.least = min(c.least, len(c.pods))
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// watched has the least number of ready pods counted anew.
func (c *chronicle) watched() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.least = len(c.pods)
}

// leastReady is how few pods were ready at any time since watched.
func (c *chronicle) leastReady() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.least
}

// ready is how many pods are.
func (c *chronicle) ready() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pods)
}

// wishes are all numbers that the Balancer was asked for.
func (c *chronicle) wishes() []int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.wanted)
}

// steps are all numbers that a Deployment was asked for.
func (c *chronicle) steps(zone string) []int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []int32
	for _, step := range c.asked[zone] {
		all = append(all, step.to)
	}
	return all
}

// since is when a Deployment was asked for what it is asked for now.
func (c *chronicle) since(zone string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.asked[zone]
	return all[len(all)-1].at
}

// waiting is when the oldest of a zone's pods that are not ready was made; zero if all are ready.
func (c *chronicle) waiting(zone string) (oldest time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range c.born[zone] {
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}
