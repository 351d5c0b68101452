// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// Patches are what a raise sends, one after the other.
func (r Raise) Patches() [][]byte { return r.jsonPatches() }

// Interpose puts something between the preview and the pods that it is shown.
func (p *Preview) Interpose(between func(cache.Indexer) cache.Indexer) {
	p.c.stores.pods = between(p.c.stores.pods)
}

// Fairly is how bounds are divided.
func Fairly(items []string, namespaceOf func(string) string, limit int) (taken, left []string) {
	return takeFairly(items, namespaceOf, limit)
}

// MostImportant are the pods that a decision looks at, and BySorting the same from sorting all of them.
func MostImportant(pods []*corev1.Pod, limit int) []*corev1.Pod { return mostImportant(pods, limit) }

// BySorting sorts all pods, and then takes as many as the limit allows.
func BySorting(pods []*corev1.Pod, limit int) []*corev1.Pod {
	pods = slices.SortedFunc(slices.Values(pods), byImportance)
	taken, _ := takeFairly(pods, func(p *corev1.Pod) string { return p.Namespace }, limit)
	return taken
}

// Held is how many things a controller remembers, by what they are.
func (c *Controller) Held() map[string]int {
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

// PodsByOutcome is what the metric says after a decision.
func PodsByOutcome(p Plan) map[Outcome]float64 {
	m, all := newMetrics(nil), map[Outcome]float64{}
	m.decided(p, 0)
	for _, outcome := range Outcomes {
		var value dto.Metric
		if m.pods.WithLabelValues(string(outcome)).Write(&value) == nil && value.Gauge.GetValue() > 0 {
			all[outcome] = value.Gauge.GetValue()
		}
	}
	return all
}

// LateLook is how many pods are kept after a decision has looked at one that is gone since it was listed.
func LateLook(pod *corev1.Pod) int {
	r := &podCache{lookups: &fit.Lookups{}}
	r.addPod(pod)
	r.forget(pod)
	r.podFor(pod)
	r.readAll(slices.Values([]*corev1.Pod{pod}))
	return len(r.pods) + len(r.latest)
}

// Look is the version of a pod that a decision goes by where the store has a later one than was noted.
func Look(noted, stored *corev1.Pod) *corev1.Pod {
	r := &podCache{lookups: &fit.Lookups{}}
	r.addPod(noted)
	if read := r.readAll(slices.Values([]*corev1.Pod{stored})); read[0].from != stored {
		return read[0].from
	}
	return r.podFor(stored).Object
}

// PodsOfJob is how many pods a Job is to have, unless none is created.
func PodsOfJob(job *batchv1.Job, uid types.UID) int { return podsOfJob(job, uid) }

// Bursts remembers which Jobs create pods.
type Bursts = bursts

func (b bursts) Expects(job *batchv1.Job, left int, now time.Time) bool {
	return b.expects(job, left, now)
}

func (b bursts) ForgetGone(jobs cache.Indexer) { b.forgetGone(jobs) }

// Claimed remembers the claims of MachineDeployments.
type Claimed = claimed

func (c claimed) Record(d *v1alpha1.MachineDeployment, now time.Time) { c.record(d, now) }

func (c claimed) Complete(d *v1alpha1.MachineDeployment, v reserve.View) { c.complete(d, v) }
