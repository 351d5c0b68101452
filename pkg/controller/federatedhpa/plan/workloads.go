// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// NoSuchKind is the reason of a fault: the cluster does not have the kind of the workload.
const NoSuchKind = "NoSuchKind"

// WorkloadWrite is one write of a workload.
type WorkloadWrite struct {
	Cluster      string
	Operation    Operation
	Version, UID string
	// Replicas is the number to scale to.
	Replicas int64
}

// placeWorkloads creates workloads in clusters that have an autoscaler or get one, if the object asks for
// placement. In clusters that have left, it does what the object asks for, after the autoscaler is gone. While no
// cluster is added, one that has lost its autoscaler to another client keeps its workload.
func (p *Plan) placeWorkloads(r rules, now time.Time) {
	for _, s := range p.clusterPlans() {
		w := s.cluster.Workload
		if !s.cluster.Reachable || !w.Known || s.cluster.Fault != (Hold{}) {
			continue
		}
		o := WorkloadWrite{Cluster: s.Name, Version: w.Version, UID: w.UID}
		wanted := s.role == used || s.role == joining
		undecided := p.Starting && s.role == idle && s.cluster.Selected
		emptied := !wanted && !undecided && w.Exists && !w.Terminating && s.isEmptied(now)
		switch {
		case wanted && !w.Exists && r.template:
			o.Operation = Create
		case wanted && w.Zeroed && !w.Terminating && s.cluster.Local != nil: // its autoscaler, whose maximum counts, would not scale it
			o.Operation, o.Replicas = Scale, 1
		case wanted && w.Ours && w.Drifted && r.template:
			o.Operation = Change
		case emptied && r.leave == v1alpha1.LeaveDelete && w.Ours && r.template:
			o.Operation = Remove
		case emptied && r.leave == v1alpha1.LeaveScaleToZero && s.Left > 0 && w.Requested > 0:
			o.Operation = Scale
		default:
			continue
		}
		p.Placings = append(p.Placings, o)
	}
}

// mayHaveWorkload reports whether a workload that the hub created, and deletes, is in the cluster, or may
// be.
func (s *ClusterPlan) mayHaveWorkload(r rules) bool {
	w := s.cluster.Workload
	switch {
	case !r.template || r.leave != v1alpha1.LeaveDelete || !s.cluster.Registered:
		return false
	case !w.Known:
		return s.entry.Epoch != 0 && w.Fault.Reason != NoSuchKind
	}
	return w.Exists && w.Ours || w.Arriving
}

// isEmptied reports whether the cluster certainly has no autoscaler of the object, and gets none
// from what was sent.
func (s *ClusterPlan) isEmptied(now time.Time) bool {
	return s.cluster.Absent && s.entry.Outstanding == nil || s.replaced(now)
}

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

// AwaitsWorkload reports whether the cluster must show that its workload is still as its cache shows it, before the
// replicas that are left there count as they are.
func (s *ClusterPlan) AwaitsWorkload(now time.Time) bool {
	return s.Left > 0 && s.mayScale() && s.cluster.Reachable && s.cluster.Workload.Known && now.Sub(s.entry.MovedAt.Time) >= scalesAfter
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
