// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// Interpose wraps the store of the pods that the preview is shown.
func (p *Preview) Interpose(between func(cache.Indexer) cache.Indexer) {
	p.c.stores.pods = between(p.c.stores.pods)
}

// Tell returns the events that say what groups lack.
func (p *Preview) Tell(all ...plan.Shortage) []string {
	events := record.NewFakeRecorder(len(all))
	p.c.groupRecorder = events
	p.c.recordShortages(all)
	close(events.Events)
	return slices.Collect(func(yield func(string) bool) {
		for text := range events.Events {
			if !yield(text) {
				return
			}
		}
	})
}

// SlowLook makes the controller take that long to look at the pods.
func (c *Controller) SlowLook(d time.Duration) { c.stores.pods = slowList{c.stores.pods, d} }

type slowList struct {
	cache.Indexer
	takes time.Duration
}

func (s slowList) List() []any {
	found := s.Indexer.List()
	time.Sleep(s.takes)
	return found
}

// Held is how many things a controller remembers, by what they are.
func (c *Controller) Held() map[string]int {
	synctest.Wait() // while the controller does nothing
	c.podCache.mu.Lock()
	defer c.podCache.mu.Unlock()
	held := map[string]int{"pods read": len(c.podCache.pods), "names of pods": len(c.podCache.latest), "pods doubted": len(c.memory), "jobs": len(c.bursts), "series": series(c.metrics.machines), "shapes": 0}
	if tried := c.tried.Load(); tried != nil {
		held["shapes"] = len(*tried)
	}
	for name, store := range map[string]cache.Indexer{
		"pods": c.stores.pods, "nodes": c.stores.nodes, "replica sets": c.stores.replicaSets, "claims": c.stores.storage.Claims, "daemon sets": c.stores.daemons,
	} {
		held[name] = len(store.ListKeys())
	}
	return held
}

func series(c prometheus.Collector) int {
	all := make(chan prometheus.Metric)
	go func() { c.Collect(all); close(all) }()
	n := 0
	for m := range all {
		if m.Write(&dto.Metric{}) == nil {
			n++
		}
	}
	return n
}

// PodsByOutcome returns the values of the metric after a decision.
func PodsByOutcome(p plan.Plan) map[plan.Outcome]float64 {
	m, all := newMetrics(nil), map[plan.Outcome]float64{}
	m.decided(p, 0)
	for _, outcome := range plan.Outcomes {
		var value dto.Metric
		if m.pods.WithLabelValues(string(outcome)).Write(&value) == nil && value.Gauge.GetValue() > 0 {
			all[outcome] = value.Gauge.GetValue()
		}
	}
	return all
}

// LateLook is how many pods are kept after a decision has looked at one that was deleted after it was listed.
func LateLook(pod *corev1.Pod) int {
	r := &podCache{lookups: &fit.Lookups{}}
	r.addPod(pod)
	r.forget(pod)
	r.podFor(pod)
	r.readAll(slices.Values([]*corev1.Pod{pod}))
	return len(r.pods) + len(r.latest)
}

// Look is the version of a pod that a decision uses if the store has a later one than was noted.
func Look(noted, stored *corev1.Pod) *corev1.Pod {
	r := &podCache{lookups: &fit.Lookups{}}
	r.addPod(noted)
	if read := r.readAll(slices.Values([]*corev1.Pod{stored})); read[0].from != stored {
		return read[0].from
	}
	return r.podFor(stored).Object
}
