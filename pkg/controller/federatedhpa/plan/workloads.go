// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

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
		case wanted && w.Zeroed && !w.Terminating: // otherwise, its autoscaler would not scale it
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
