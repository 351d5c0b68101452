// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// scalesAfter is for how long a cluster may still scale a workload after its autoscaler was removed: the period of
// autoscalers.
const scalesAfter = 15 * time.Second

// countLeft returns how many replicas run in a cluster that has lost its autoscaler: its last maximum, until
// the cluster has certainly ended to scale, and then what the workload asks for. The number never rises, so
// that nothing that others do there takes replicas from clusters in use. Of a workload that the hub created and
// that never had an autoscaler, one replica counts.
func (s *ClusterPlan) countLeft(before v1alpha1.ClusterStatus, r rules, now time.Time) int64 {
	c, w, left := s.cluster, s.cluster.Workload, int64(before.LeftReplicas)
	switch {
	case c.Local != nil && c.Local.Max < min(left, w.Requested): // it has yet to remove some
		return left
	case c.Local != nil, c.Alias && !c.Doubtful, !c.Selected && slices.Contains(r.released, s.Name):
		return 0
	case !c.Absent || s.behind:
		return left
	case before.ConfirmedMaxReplicas > 0:
		left = max(left, int64(before.ConfirmedMaxReplicas))
		if o := before.Outstanding; o != nil {
			left = max(left, int64(o.MaxReplicas))
		}
		left = max(left, min(w.Requested, r.max)) // it may have yet to obey a maximum that was lowered
		s.entry.MovedAt = &metav1.Time{Time: now.Truncate(time.Second)}
	case left == 0 && w.Ours && w.Exists:
		left = 1
	}
	switch {
	case w.Autoscaled && c.Reachable, w.Fault.Reason == NoSuchKind:
		return 0
	case s.mayScale(), !c.Reachable, !w.Known, w.Arriving, w.Exists && w.Requested < 0:
		return left
	case !w.Exists:
		return 0
	}
	return min(left, w.Requested)
}

// mayScale reports whether what is known of the workload is older than the last change that the removed autoscaler
// may have made. The watch of a workload may be late by more than that of autoscalers, as after an outage.
func (s *ClusterPlan) mayScale() bool {
	return s.entry.MovedAt != nil && s.cluster.Workload.AsOf.Sub(s.entry.MovedAt.Time) < scalesAfter
}

// runsLeft returns how many of the replicas that count run, as the workload shows.
func (s *ClusterPlan) runsLeft() int64 {
	if requested := s.cluster.Workload.Requested; requested >= 0 {
		return min(s.Left, requested)
	}
	return s.Left
}

// staysLeft reports whether what is left in the cluster stays there: the object asks for nothing else, or the hub
// cannot do it.
func (s *ClusterPlan) staysLeft(r rules) bool {
	if s.Left == 0 || s.role == used || s.role == joining {
		return false
	}
	w := s.cluster.Workload
	switch r.leave {
	case v1alpha1.LeaveScaleToZero:
		return !s.cluster.Registered || w.Exists && w.Requested < 0
	case v1alpha1.LeaveDelete:
		return !s.cluster.Registered || !(r.template && w.Ours)
	}
	return true
}

// hasLeft reports whether users are told that replicas are left: they stay, or the cluster refuses to change that.
func (s *ClusterPlan) hasLeft(r rules) bool {
	return s.staysLeft(r) || s.Left > 0 && s.role != used && s.role != joining && s.cluster.Workload.Refused != Hold{}
}
