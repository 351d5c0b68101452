// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// caches of both clusters.
type caches struct {
	deployments, sets, machines, machineClasses cache.Indexer
	pods, nodes, daemons, replicaSets           cache.Indexer
	jobs                                        cache.Indexer // nil until a pod of one has waited
	storage                                     target.Storage
}

// podsWait reports whether the scheduler has failed to find a node for a pod.
func (c *Controller) podsWait() bool {
	waiting := stores.Indexed[*corev1.Pod](c.stores.pods, target.ByPlacement, target.Waiting)
	return slices.ContainsFunc(slices.Concat(waiting, c.nominatedPods()), func(p *corev1.Pod) bool {
		_, tried := c.settings.Evaluate(c.withoutVoid(p))
		return tried
	})
}

// nominatedPods returns the pods that wait for a node that they are nominated for.
func (c *Controller) nominatedPods() []*corev1.Pod {
	return stores.Indexed[*corev1.Pod](c.stores.pods, target.ByPlacement, target.Nominated)
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
	lookups.Devices = c.inventory(waiting)
	for _, pod := range important {
		v.Waiting = append(v.Waiting, c.podCache.podWith(pod, lookups))
	}
	v.Uncreated = c.countUncreated(v.Waiting, all, now)
	v.Groups = c.groupsOf(v.Waiting, all)
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

// withoutVoid returns a pod without a nomination that means nothing: its node is gone, in reserve,
// or taken. A machine that was to leave the reserve for it may stay there, because replicas have
// changed.
func (c *Controller) withoutVoid(pod *corev1.Pod) *corev1.Pod {
	if pod.Status.NominatedNodeName == "" || pod.Spec.NodeName != "" {
		return pod
	}
	if node := c.openNode(pod); node != nil && !c.isCrowdedOut(pod, node) {
		return pod
	}
	return withoutNomination(pod)
}

func withoutNomination(pod *corev1.Pod) *corev1.Pod {
	free := *pod
	free.Status.NominatedNodeName = ""
	return &free
}

// openNode returns the node that a pod is nominated for, nil if it is gone or in reserve.
func (c *Controller) openNode(pod *corev1.Pod) *corev1.Node {
	node := stores.Find[corev1.Node](c.stores.nodes, pod.Status.NominatedNodeName)
	if node == nil || pool.HasReserveTaint(node.Spec.Taints) {
		return nil
	}
	return node
}

// isCrowdedOut reports whether others keep a pod from the node that it is nominated for.
func (c *Controller) isCrowdedOut(pod *corev1.Pod, node *corev1.Node) bool {
	running := stores.Indexed[*corev1.Pod](c.stores.pods, stores.ByNode, node.Name)
	return plan.IsCrowdedOut(pod, node, running, c.nominatedPods(), c.podCache.podFor)
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

// readPool reads what a decision needs to know of a MachineDeployment.
func (c *Controller) readPool(d *v1alpha1.MachineDeployment, bounds v1alpha1.Bounds, source pool.Source, now time.Time) plan.Pool {
	s := pool.ReadReserve(d, source, now)
	p := plan.Pool{
		Key:      d.Namespace + "/" + d.Name,
		Basis:    plan.BasisOf(d),
		Replicas: s.Requested, Max: int(bounds.Max), Reserve: reserve.ViewOf(s), NodeOf: make(map[string]string, len(s.Machines)), Sample: pool.SampleNode(s),
		WorkerPool: pool.NameOf(d, c.settings.PoolLabels...), Taints: d.Spec.Template.Spec.NodeTemplateSpec.Spec.Taints,
	}
	if _, valid := pool.AppliedReplicas(d); valid {
		p.Applied = ptr.To(pool.Workload(d, d.Spec.Replicas))
	}
	if c.refused.isAside(p.Basis) {
		p.Max = min(p.Max, p.Replicas)
	}
	p.Inclusive = s.Applied.Counted+s.Applied.Absorbed > 0
	c.claimed.Record(d, now)
	c.claimed.Complete(d, p.Reserve)
	for _, m := range p.Reserve.Machines {
		if m.Reserve && m.Claimed {
			p.Claimed = append(p.Claimed, m.Name)
		}
	}
	for _, m := range s.Machines {
		if m.Node != nil {
			p.NodeOf[m.Object.Name] = m.Node.Name
		}
	}
	return p
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

// jobKind is the kind of Job, as in owner references.
const jobKind = "Job"

// readJobs starts to read Jobs once a pod of one waits, which never happens in many clusters. The
// pods that this Job has yet to create count from the next decision on.
func (c *Controller) readJobs(ctx context.Context, waiting []*fit.Pod) {
	if c.stores.jobs != nil || !slices.ContainsFunc(waiting, belongsToJob) {
		return
	}
	c.stores.jobs = c.informers.Jobs().GetIndexer()
	c.informers.Start(ctx)
}

func belongsToJob(p *fit.Pod) bool {
	creator := plan.CreatorOf(p.Object)
	return creator != nil && creator.Kind == jobKind
}

// job returns a Job by namespace/name; nil if there is none, or if Jobs are not read yet.
func (c *Controller) job(key string) *batchv1.Job {
	return stores.Find[batchv1.Job](c.stores.jobs, key)
}

// countUncreated returns what the ReplicaSets and Jobs of waiting pods have yet to create, by UID. If
// there are many pods, they are created in several batches, and when the last ones exist, the machines
// for them can serve already.
func (c *Controller) countUncreated(waiting []*fit.Pod, all []*cachedPod, now time.Time) map[types.UID]plan.Uncreated {
	uncreated, jobs := map[types.UID]plan.Uncreated{}, []*batchv1.Job(nil)
	for _, p := range waiting {
		creator, namespace := plan.CreatorOf(p.Object), p.Object.Namespace
		if creator == nil || uncreated[creator.UID].Count > 0 {
			continue
		}
		count, key := 0, namespace+"/"+creator.Name
		if creator.Kind == jobKind {
			job := c.job(key)
			if count = plan.PodsOfJob(job, creator.UID); count > 0 {
				jobs = append(jobs, job)
			}
		} else {
			count = plan.PodsOfReplicaSet(stores.Find[appsv1.ReplicaSet](c.stores.replicaSets, key), creator.UID)
		}
		if count > 0 {
			uncreated[creator.UID] = plan.Uncreated{Namespace: namespace, Count: count}
		}
	}
	c.bursts.ForgetGone(c.job)
	if len(uncreated) == 0 {
		return nil
	}
	subtractCreated(uncreated, jobs, all)
	for _, job := range jobs {
		if left := uncreated[job.UID].Count; left > 0 && !c.bursts.Expects(job, left, now) {
			delete(uncreated, job.UID)
		}
	}
	return uncreated
}

// subtractCreated subtracts the pods that exist from those that ReplicaSets and Jobs are to have, by
// UID. The latter do not include the pods that have succeeded, as far as the status of a Job counts
// these.
func subtractCreated(uncreated map[types.UID]plan.Uncreated, jobs []*batchv1.Job, all []*cachedPod) {
	succeeded := make(map[types.UID]int, len(jobs))
	for _, job := range jobs {
		succeeded[job.UID] = int(job.Status.Succeeded)
	}
	for _, p := range all {
		switch u := uncreated[p.controller]; {
		case u.Count <= 0 || u.Namespace != p.Object.Namespace:
		case p.ended && succeeded[p.controller] > 0:
			succeeded[p.controller]--
		default:
			u.Count--
			uncreated[p.controller] = u
		}
	}
}
