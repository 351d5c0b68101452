// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

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
