// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// role is the desired role of a cluster.
type role int

const (
	idle    role = iota
	used         // has an autoscaler, and keeps it
	joining      // gets one
	waiting      // would get one if there were room
	leaving      // loses the one it has
)

// ClusterPlan is one cluster in a plan.
type ClusterPlan struct {
	Name string
	// Aim is what it should have in the end.
	Aim Bounds
	// Confirmed is what was last seen there. Counted is the highest maximum and the lowest minimum
	// that it may have now, whatever the outcome of what was sent.
	Confirmed, Counted Bounds
	// Left is how many replicas run there without an autoscaler since it left.
	Left int64
	// Lent reports whether its share does not count while it is unreachable.
	Lent bool

	cluster Cluster
	// entry is its entry in the ledger.
	entry v1alpha1.ClusterStatus
	preference
	// omitted reports whether it is selected beyond what an object can hold.
	omitted bool
	role    role
	// limited reports whether its autoscaler asks for more than its maximum, full whether it runs its
	// whole maximum, and stuck whether replicas have been missing for too long.
	limited, full, stuck bool
	// behind reports whether the ledger contains a later version of its autoscaler than this hub
	// has seen.
	behind bool
	// fresh reports whether an order was sent a moment ago, so that its result can be assumed.
	fresh bool
	// floor, cap and want limit its maximum while maximums are divided.
	floor, cap, want int64
}

// newClusterPlan reads a cluster, and drops orders that have been settled.
func newClusterPlan(c Cluster, entry v1alpha1.ClusterStatus, r rules, now time.Time) ClusterPlan {
	s := ClusterPlan{Name: c.Name, cluster: c, entry: entry, preference: r.prefer(c.Name)}
	s.entry.Name = c.Name
	s.limitTimes(now)
	s.behind = behind(entry, c)
	if o := entry.Outstanding; o != nil && !s.behind && settled(*o, entry.Epoch, c) {
		s.entry.Outstanding = nil
	}
	if c.Alias || !c.Selected && s.replaced(now) {
		c.Local, c.Absent = nil, true
		s.cluster = c
	}
	switch {
	case c.Local != nil:
		s.Confirmed = c.Local.Bounds
	case !c.Absent:
		s.Confirmed = Bounds{int64(entry.ConfirmedMinReplicas), int64(entry.ConfirmedMaxReplicas)}
	}
	if s.behind {
		s.Confirmed = Bounds{min(s.Confirmed.Min, int64(entry.ConfirmedMinReplicas)), max(s.Confirmed.Max, int64(entry.ConfirmedMaxReplicas))}
	}
	s.Counted = s.Confirmed
	if o := s.entry.Outstanding; o != nil {
		s.Counted = Bounds{min(s.Confirmed.Min, int64(o.MinReplicas)), max(s.Confirmed.Max, int64(o.MaxReplicas))}
	}
	s.Left = s.countLeft(entry, r, now)
	s.Aim = s.Confirmed
	s.fresh = c.Reachable && c.InFlight != nil && now.Sub(c.Sent) < awhile
	s.trackOutage(r, now)
	s.readSignals(r, now)
	return s
}

// limitTimes moves times that lie ahead to now: they come from a clock that was ahead. Otherwise, what
// they begin would last until this clock has reached them.
func (s *ClusterPlan) limitTimes(now time.Time) {
	limit := func(t *metav1.Time, latest time.Time) {
		if t != nil && t.After(latest) {
			t.Time = latest.Truncate(time.Second)
		}
	}
	for _, since := range []*metav1.Time{s.entry.MovedAt, s.entry.NotReadySince, s.entry.QuietSince, s.entry.UnreachableSince} {
		limit(since, now)
	}
	limit(s.entry.RemovableAfter, now.Add(CreationLife))
}

// behind reports whether another hub, or this one before a restart, has seen a later state of a
// cluster than this hub sees now.
func behind(entry v1alpha1.ClusterStatus, c Cluster) bool {
	switch seen := seenVersion(entry); {
	case seen == c.Verified:
		return false
	case c.Local != nil:
		return IsNewer(seen, c.Local.Version)
	default:
		return (c.Absent || c.taken()) && IsNewer(seen, c.Shown)
	}
}

// seenVersion returns the latest version in the ledger: that of the bounds that were confirmed, or the one that
// an order was decided on.
func seenVersion(entry v1alpha1.ClusterStatus) string {
	if o := entry.Outstanding; o != nil && (entry.ConfirmedVersion == "" || IsNewer(o.Base, entry.ConfirmedVersion)) {
		return o.Base
	}
	return entry.ConfirmedVersion
}

// UnseenVersion returns the version of the cluster's autoscaler that the ledger contains and the
// cluster has not shown to this hub yet. It is empty if there is none.
func (s *ClusterPlan) UnseenVersion() string {
	if !s.behind {
		return ""
	}
	return seenVersion(s.entry)
}

// settled reports whether nothing that was sent can still take effect: it took effect, was
// rejected, or its base version is gone.
func settled(o v1alpha1.Outstanding, epoch int64, c Cluster) bool {
	switch {
	case c.InFlight != nil:
		return false
	case c.Rejected > 0 && c.Rejected == epoch && !o.Repeated:
		return true
	case c.Local != nil:
		return o.Base == "" || IsNewer(c.Local.Version, o.Base)
	default:
		return c.Absent && o.Base != ""
	}
}

// IsNewer reports whether a resourceVersion is certainly newer than another.
func IsNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// trackOutage records since when a cluster has been unreachable, and whether its share is lent. An
// outage that the ledger contains goes on until the cluster answers, also after a restart of the hub. Its time
// is none that replicas take to start: what they did meanwhile is unknown.
func (s *ClusterPlan) trackOutage(r rules, now time.Time) {
	switch {
	case s.cluster.Reachable:
		if from, late := s.entry.UnreachableSince, s.entry.NotReadySince; from != nil && late != nil {
			s.entry.NotReadySince = &metav1.Time{Time: late.Add(now.Sub(from.Time)).Truncate(time.Second)}
			s.limitTimes(now)
		}
		s.entry.UnreachableSince = nil
		return
	case s.cluster.Starting && s.entry.UnreachableSince == nil:
		return
	}
	if s.entry.UnreachableSince == nil {
		since := s.cluster.Since
		if since.IsZero() {
			since = now
		}
		s.entry.UnreachableSince = &metav1.Time{Time: since.Truncate(time.Second)}
	}
	gone := now.Sub(s.entry.UnreachableSince.Time)
	early := s.cluster.Unprobed || s.cluster.Young && gone < Youth // the next try may show that it is there
	s.Lent = s.share() > 0 && !early && (slices.Contains(r.released, s.Name) || r.lend && gone >= r.lendAfter)
}

// readSignals reads the signals of a cluster's autoscaler.
func (s *ClusterPlan) readSignals(r rules, now time.Time) {
	l, w := s.cluster.Local, s.cluster.Workload
	if l == nil || !s.cluster.Reachable {
		return
	}
	switch {
	case s.unread(): // as after a restart of the hub: what the ledger contains counts until then
	case !s.missing() && !(w.Counted && w.Ready < l.Desired):
		s.entry.NotReadySince = nil
	case s.entry.NotReadySince == nil:
		s.entry.NotReadySince = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	s.stuck = s.entry.NotReadySince != nil && now.Sub(s.entry.NotReadySince.Time) >= r.start
	scales := !s.frozen() && !s.missing()
	s.limited = l.Limit == v1alpha1.ByMax && scales
	s.full = l.Current == l.Max && l.Desired == l.Max && l.Limit != v1alpha1.ByMin && scales
}

// asksForMore reports whether its metrics require more than its maximum.
func (s *ClusterPlan) asksForMore() bool { return s.limited && !s.stuck }

// needsMore reports whether it may soon run more, if its maximum allows that.
func (s *ClusterPlan) needsMore() bool { return (s.limited || s.full) && !s.stuck }

// unread reports whether the cluster has yet to be asked for the workload.
func (s *ClusterPlan) unread() bool {
	return !s.cluster.Workload.Known && s.cluster.Workload.Fault == Hold{}
}

// hasAutoscaler reports whether the cluster has an autoscaler of this object, or may get one from
// an order that was sent.
func (s *ClusterPlan) hasAutoscaler() bool { return s.Counted.Max > 0 }

// share returns how many replicas the cluster may run at most, as far as the hub is concerned.
func (s *ClusterPlan) share() int64 { return max(s.Counted.Max, s.Left) }

// missing reports whether there is certainly no workload to scale. The status of its autoscaler
// then describes one that no longer exists.
func (s *ClusterPlan) missing() bool { return s.cluster.Workload.Known && !s.cluster.Workload.Exists }

// frozen reports whether its autoscaler does not scale.
func (s *ClusterPlan) frozen() bool {
	return s.cluster.Local != nil && s.cluster.Local.Inactive != Hold{} && !s.missing()
}

// isFixed reports whether nothing can be written to the cluster now; heldBounds returns what it keeps
// in the meantime. A cluster that does not answer at once is treated like an unreachable one. If
// another client took the name of the autoscaler, it can be neither changed nor created.
func (s *ClusterPlan) isFixed() bool {
	c := s.cluster
	return s.behind || c.Local == nil && !c.Absent || !c.Reachable || c.Pausing || c.InFlight != nil || c.Fault != Hold{} || c.Local != nil && c.Local.Terminating
}

func (s *ClusterPlan) heldBounds() Bounds {
	if s.fresh {
		return *s.cluster.InFlight
	}
	return s.Counted
}

// leastMaximum returns how low the maximum that heldBounds returns may be in a moment: what is being sent may
// take effect, a cluster that has just failed may take it when it is tried again, and one that is about to be
// read may have less, or get less then.
func (s *ClusterPlan) leastMaximum() int64 {
	c, held := s.cluster, s.heldBounds().Max
	switch {
	case c.Alias && !c.Doubtful: // its autoscaler counts under the other name
		return 0
	case c.InFlight != nil:
		return min(held, c.InFlight.Max)
	case c.Unprobed, c.Starting, c.Young, s.behind && c.Reachable, c.Pausing && c.Fault == Hold{}:
		return min(held, 1)
	}
	return held
}

// replaced reports whether another client's autoscaler has the name, and nothing that was sent can
// take effect any more, even if that one is removed.
func (s *ClusterPlan) replaced(now time.Time) bool {
	o := s.entry.Outstanding
	return s.cluster.taken() && !s.behind && s.cluster.InFlight == nil &&
		(o == nil || o.Base != "") && s.revives(now) <= 0
}

// desired returns how many replicas run: those that its autoscaler asks for, or those that run without one.
func (s *ClusterPlan) desired() int64 {
	if s.cluster.Local == nil {
		return s.runsLeft()
	}
	return s.cluster.Local.Desired
}

// cooling returns how long the cluster keeps its bounds because they have just changed.
func (s *ClusterPlan) cooling(r rules, now time.Time) time.Duration {
	if s.entry.MovedAt == nil {
		return 0
	}
	return max(0, r.cooldown-now.Sub(s.entry.MovedAt.Time))
}

// usable returns the largest maximum that makes sense for a stuck cluster: no more than it has, until
// its workload is read.
func (s *ClusterPlan) usable(r rules) int64 {
	switch {
	case !s.stuck:
		return s.max
	case s.unread():
		return min(s.max, max(1, s.Confirmed.Max))
	}
	return min(s.max, max(1, s.cluster.Workload.Ready+r.probe))
}

// saturated reports whether giving it more is not possible or does not help.
func (s *ClusterPlan) saturated() bool {
	return !s.cluster.Reachable || s.stuck || s.limited && s.Confirmed.Max >= s.max
}
