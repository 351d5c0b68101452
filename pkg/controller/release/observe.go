// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"iter"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// podsWait reports whether the scheduler has failed to find a node for a pod.
func (c *Controller) podsWait() bool {
	waiting := stores.Indexed[*corev1.Pod](c.stores.pods, target.ByPlacement, target.Waiting)
	return slices.ContainsFunc(slices.Concat(waiting, c.nominatedPods()), func(p *corev1.Pod) bool {
		_, tried := c.settings.Evaluate(c.withoutVoid(p))
		return tried
	})
}

// observe collects the input of a decision.
func (c *Controller) observe(now time.Time) plan.View {
	v := plan.View{Now: now, Settings: c.settings, Memory: c.memory}
	all := c.podCache.readAll(stores.All[*corev1.Pod](c.stores.pods)) // in one piece: a pod that is bound between two reads would count twice
	v.Daemons = c.daemons(all)
	nodes := stores.List[*corev1.Node](c.stores.nodes)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	waiting, nominated, running := c.assignPods(all)
	v.Nominated = nominated
	important := plan.MostImportant(waiting, plan.MaxPods)
	v.Beyond = len(waiting) - len(important)
	lookups := c.podCache.lookups.Remembering() // thousands of pods may claim the same volumes
	for _, pod := range important {
		v.Waiting = append(v.Waiting, c.podCache.podWith(pod, lookups))
	}
	v.Uncreated = c.countUncreated(v.Waiting, all, now)
	v.Nodes = make([]plan.Node, 0, len(nodes))
	for _, node := range nodes {
		v.Nodes = append(v.Nodes, plan.Node{Object: node, Pods: running.podsOn(node.Name)})
	}
	v.Pools = c.readPools(sameInstant{c.source, running}, now)
	return v
}

// sameInstant is a source with the pods that a decision has read already.
type sameInstant struct {
	pool.Source
	running *podsByNode
}

// Pods implements pool.Source.
func (s sameInstant) Pods(node string) []*corev1.Pod {
	pods := s.running.podsOn(node)
	all := make([]*corev1.Pod, len(pods))
	for i, p := range pods {
		all[i] = p.Object
	}
	return all
}

// assignPods returns the waiting pods that count, the Nodes that these are nominated for, and the pods
// of each Node: those that run there, and those nominated for it that it can take.
func (c *Controller) assignPods(all []*cachedPod) (waiting []*corev1.Pod, nominated map[types.UID]string, running *podsByNode) {
	nominated, running = map[types.UID]string{}, groupByNode(all)
	for _, p := range all {
		if !p.isWaiting() {
			continue
		}
		pod := c.withoutVoid(p.from)
		if node := pod.Status.NominatedNodeName; node != "" {
			running.addPod(node, c.podCache.podFor(pod))
		} else if counts, _ := c.settings.Evaluate(pod); counts {
			waiting = append(waiting, pod)
			if node := p.from.Status.NominatedNodeName; node != "" {
				nominated[pod.UID] = node
			}
		}
	}
	return waiting, nominated, running
}

// readPools returns the MachineDeployments that take part: those with valid bounds.
func (c *Controller) readPools(source pool.Source, now time.Time) []plan.Pool {
	var pools []plan.Pool
	for _, d := range stores.List[*v1alpha1.MachineDeployment](c.stores.deployments) {
		d = c.latest.Newest(d)
		bounds, err := v1alpha1.ParseBounds(d.Annotations[v1alpha1.BoundsAnnotation])
		if err != nil || d.DeletionTimestamp != nil {
			continue
		}
		pools = append(pools, c.readPool(d, bounds, source, now))
	}
	slices.SortFunc(pools, func(a, b plan.Pool) int { return cmp.Compare(a.Key, b.Key) })
	return pools
}

// daemons returns what the DaemonSets of the cluster would run on a new node, the most important
// first.
func (c *Controller) daemons(pods []*cachedPod) []plan.Daemon {
	var all []plan.Daemon
	for set, pod := range target.DaemonPods(stores.List[*appsv1.DaemonSet](c.stores.daemons), plan.MaxDaemons, podsOfDaemons(pods)) {
		all = append(all, plan.Daemon{Owner: set.UID, Pod: pod})
	}
	return all
}

// podsOfDaemons returns the pods that DaemonSets control, without those that they replace.
func podsOfDaemons(pods []*cachedPod) iter.Seq[*corev1.Pod] {
	return func(yield func(*corev1.Pod) bool) {
		for _, p := range pods {
			if p.daemon && !yield(p.from) {
				return
			}
		}
	}
}
