// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

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
