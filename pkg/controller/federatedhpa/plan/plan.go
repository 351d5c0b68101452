// SPDX-License-Identifier: Apache-2.0

// Package plan decides the bounds that each cluster gets from a FederatedHorizontalPodAutoscaler. A
// View contains the object, whose status is the ledger, and what is known about each cluster. A
// Plan contains goals, orders to send now, and writes of workloads. NewStatus returns the status
// that must be written first. It is pure, and its laws are those of package federatedhpa.
package plan

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// Plan contains what to do, and what to record first.
type Plan struct {
	// Stop is why nothing is done.
	Stop Hold
	// Clusters are sorted by name.
	Clusters []ClusterPlan
	// Orders are sent to clusters after the status has been written.
	Orders []Order
	// Placings are the writes of workloads.
	Placings []WorkloadWrite
	// Room is what is left to give to clusters that may receive more. Missing is how much more they
	// ask for.
	Room, Missing int64
	// Omitted is how many clusters are selected beyond what an object can hold.
	Omitted int
	// Starting reports whether some clusters have not responded yet, or may be registered under a
	// second name. Until they have responded, no cluster is added and no maximum is raised.
	Starting bool
	// Gone reports whether nothing of a deleted object is left to remove.
	Gone bool
	// Again is the time until the plan may change without an event; 0 means never.
	Again time.Duration
}

// New makes the plan for one object.
func New(v View) Plan {
	r := rulesOf(v.Object)
	p := survey(v, r)
	switch {
	case v.Object.DeletionTimestamp != nil:
		p.dismantle(r, v.Now)
		return p
	case v.Stop != Hold{}:
		p.Stop = v.Stop
		p.keepRoles()
		return p
	}
	p.choose(r, v.Now)
	p.divideMinima(r, v.Now)
	p.divideMaxima(r, v.Now)
	if !v.Object.Spec.Paused {
		p.orderBounds(r, v.Now)
		p.placeWorkloads(r, v.Now)
	}
	if len(p.Orders) > 0 {
		p.Again = requeue.Sooner(p.Again, awhile) // clusters that have not answered by then are left out
	}
	return p
}

// survey creates a plan for every cluster, sorted by name.
func survey(v View, r rules) Plan {
	ledger := map[string]v1alpha1.ClusterStatus{}
	for _, entry := range v.Object.Status.Clusters {
		ledger[entry.Name] = *entry.DeepCopy()
	}
	var p Plan
	for _, c := range v.Clusters {
		s := newClusterPlan(c, ledger[c.Name], r, v.Now)
		p.Starting = p.Starting || c.Starting && (c.Selected || s.share() > 0) || c.Doubtful
		p.wakeFor(&s, r, v.Now)
		p.Clusters = append(p.Clusters, s)
	}
	p.omitBeyondLimit(r, v.Object.DeletionTimestamp != nil)
	slices.SortFunc(p.Clusters, func(a, b ClusterPlan) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

// maxClusters limits the clusters of one object, so that the API server accepts its status.
const maxClusters = 256

// omitBeyondLimit omits the last of too many selected clusters, by tier and name. It keeps clusters
// that count, and prefers those with a workload that the hub created. Clusters that are no longer selected take no place of selected ones; those with such
// a workload stay until it is removed. While a deleted object removes everything, that holds for the
// omitted ones, too.
func (p *Plan) omitBeyondLimit(r rules, removing bool) {
	if len(p.Clusters) <= maxClusters {
		return
	}
	slices.SortFunc(p.Clusters, func(a, b ClusterPlan) int {
		return cmp.Or(cmp.Compare(a.omissionRank(), b.omissionRank()), cmp.Compare(a.tier, b.tier), cmp.Compare(a.Name, b.Name))
	})
	listed := 0
	for _, s := range p.clusterPlans() {
		if s.cluster.Selected || s.share() > 0 || s.mayHaveWorkload(r) {
			listed++
		}
		if s.omitted = listed > maxClusters && s.share() == 0; s.omitted && s.cluster.Selected {
			p.Omitted++
		}
	}
	p.Clusters = slices.DeleteFunc(p.Clusters, func(s ClusterPlan) bool {
		switch {
		case s.share() > 0:
			return false
		case s.cluster.Selected:
			return s.omitted && !removing
		}
		return !s.mayHaveWorkload(r)
	})
}

// omissionRank is higher for clusters that are omitted first.
func (s *ClusterPlan) omissionRank() int {
	switch {
	case s.share() > 0:
		return 0
	case !s.cluster.Selected:
		return 3
	case s.cluster.Workload.Ours:
		return 1
	default:
		return 2
	}
}

// lookAgainAt is when a cluster is asked again for a version that it has not shown, or looked at again that is
// about to be probed, or to show what it runs.
const lookAgainAt = 5 * time.Second

// wakeFor records when time alone changes the state of a cluster.
func (p *Plan) wakeFor(s *ClusterPlan, r rules, now time.Time) {
	if s.cluster.Starting || s.cluster.Young {
		p.Again = requeue.Sooner(p.Again, Youth)
	}
	if since := s.entry.NotReadySince; since != nil && s.cluster.Reachable {
		p.Again = requeue.Sooner(p.Again, r.start-now.Sub(since.Time))
	}
	if s.Left > 0 && s.cluster.Reachable && s.mayScale() {
		p.Again = requeue.Sooner(p.Again, max(lookAgainAt, scalesAfter-now.Sub(s.entry.MovedAt.Time)))
	}
	if s.cluster.taken() {
		p.Again = requeue.Sooner(p.Again, s.revives(now))
	}
	if s.behind && s.cluster.Reachable || s.cluster.Unprobed {
		p.Again = requeue.Sooner(p.Again, lookAgainAt)
	}
	if since := s.entry.UnreachableSince; since != nil && r.lend && !s.Lent && s.share() > 0 {
		p.Again = requeue.Sooner(p.Again, r.lendAfter-now.Sub(since.Time))
	}
}

func (p *Plan) clusterPlans() []*ClusterPlan {
	all := make([]*ClusterPlan, len(p.Clusters))
	for i := range p.Clusters {
		all[i] = &p.Clusters[i]
	}
	return all
}

// keepRoles keeps the roles of an object that must not be acted on.
func (p *Plan) keepRoles() {
	for _, s := range p.clusterPlans() {
		if s.hasAutoscaler() {
			s.role = used
		}
	}
}

// dismantle removes everything, or leaves everything, as the deletion policy requires.
func (p *Plan) dismantle(r rules, now time.Time) {
	p.Gone = true
	for _, s := range p.clusterPlans() {
		s.role = leaving
		switch {
		case r.orphan || s.abandoned(r):
			p.Gone = p.Gone && s.cluster.InFlight == nil
			continue
		case s.replaced(now): // what is there belongs to another client
		case s.hasAutoscaler():
			p.Gone = false
		case s.revives(now) > 0: // a creation may still arrive
			p.Gone = false
			p.Again = requeue.Sooner(p.Again, s.revives(now))
		case !s.cluster.Absent && (s.cluster.Starting || s.entry.Epoch != 0): // what was sent may be there
			p.Gone = false
		}
		if s.mayHaveWorkload(r) {
			p.Gone = false
		}
		if s.Aim = (Bounds{}); !s.isFixed() {
			p.orderFor(s, Bounds{}, now)
		}
	}
	if !r.orphan {
		p.placeWorkloads(r, now)
	}
}

// abandoned reports whether a deleted object no longer waits for a cluster: the hub no longer knows
// it, or it is out of reach and the user has listed it as released.
func (s *ClusterPlan) abandoned(r rules) bool {
	return !s.cluster.Registered || s.entry.UnreachableSince != nil && !s.cluster.Starting && slices.Contains(r.released, s.Name)
}

// rules are the settings of the spec, with its defaults.
type rules struct {
	min, max         int64
	policy           v1alpha1.MinPolicy
	cooldown, start  time.Duration
	step             int64
	headroom, probe  int64
	minima           bool
	onDemand         bool
	quiet            time.Duration
	lend             bool
	lendAfter        time.Duration
	released         []string
	preferences      []v1alpha1.ClusterPreference
	template, orphan bool
	leave            v1alpha1.LeavePolicy
}

// rulesOf returns the rules of an object. One that is being deleted deletes what it created, unless it is
// orphaned, whatever happens in clusters that leave.
func rulesOf(o *v1alpha1.FederatedHorizontalPodAutoscaler) rules {
	s := o.Spec
	r := rules{
		leave: cmp.Or(s.LeavePolicy, v1alpha1.LeaveKeep),
		min:   int64(ptr.Deref(s.MinReplicas, 1)), max: int64(s.MaxReplicas), policy: s.MinPolicy,
		preferences: s.Clusters, orphan: s.DeletionPolicy == v1alpha1.Orphan,
		template: s.Placement != nil && s.Placement.Mode == v1alpha1.Template,
	}
	if o.DeletionTimestamp != nil {
		r.leave = v1alpha1.LeaveDelete
	}
	b := ptr.Deref(s.Rebalance, v1alpha1.Rebalance{})
	r.cooldown, r.start = seconds(b.CooldownSeconds, 120), seconds(b.StartTimeoutSeconds, 300)
	r.step = percent(int64(ptr.Deref(b.MaxStepPercent, 100)), r.max)
	r.headroom, r.probe, r.minima = int64(ptr.Deref(b.Headroom, 1)), int64(ptr.Deref(b.Probe, 1)), b.Minima
	j := ptr.Deref(s.Joining, v1alpha1.Joining{})
	r.onDemand, r.quiet = j.OnDemand, seconds(j.QuietSeconds, 600)
	u := ptr.Deref(s.Unreachable, v1alpha1.Unreachable{})
	r.lend, r.lendAfter, r.released = u.Policy == v1alpha1.ReleaseAfter, seconds(u.AfterSeconds, 0), u.Released
	return r
}

func seconds(n *int32, otherwise int32) time.Duration {
	return time.Duration(ptr.Deref(n, otherwise)) * time.Second
}

// percent returns a percentage of a number, rounded up.
func percent(share, of int64) int64 { return (share*of + 99) / 100 }

// preference contains the preferred bounds and weight of one cluster.
type preference struct {
	min, max int64
	weight   int64
	tier     int32
}

// prefer returns the preference for a cluster by name, otherwise the one for all clusters.
func (r rules) prefer(name string) preference {
	p := preference{max: r.max, weight: 1}
	for _, wanted := range []string{name, "*"} {
		i := slices.IndexFunc(r.preferences, func(c v1alpha1.ClusterPreference) bool { return c.Name == wanted })
		if i < 0 {
			continue
		}
		c := r.preferences[i]
		p.min, p.max = int64(ptr.Deref(c.MinReplicas, 0)), min(r.max, int64(ptr.Deref(c.MaxReplicas, int32(r.max))))
		p.min = min(p.min, p.max)
		p.weight, p.tier = int64(ptr.Deref(c.Weight, 1)), c.Tier
		break
	}
	return p
}

// lowestMinimum returns the lowest minimum that a used cluster may have.
func (r rules) lowestMinimum() int64 {
	if r.policy == v1alpha1.AllowZero {
		return 0
	}
	return 1
}
