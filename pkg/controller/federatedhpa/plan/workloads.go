// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// NoSuchKind is the reason of a fault: the cluster does not have the kind of the workload.
const NoSuchKind = "NoSuchKind"

// WorkloadWrite is one write of a workload.
type WorkloadWrite struct {
	Cluster      string
	Operation    Operation
	Version, UID string
}

// placeWorkloads creates workloads in clusters that have an autoscaler or get one, and removes them
// after the autoscaler, if the object asks for placement. While no cluster is added, one that has lost its
// autoscaler to another client keeps its workload.
func (p *Plan) placeWorkloads(r rules, now time.Time) {
	if !r.template {
		return
	}
	for _, s := range p.clusterPlans() {
		w := s.cluster.Workload
		if !s.cluster.Reachable || !w.Known || s.cluster.Fault != (Hold{}) {
			continue
		}
		o := WorkloadWrite{Cluster: s.Name, Version: w.Version, UID: w.UID}
		wanted := s.role == used || s.role == joining
		undecided := p.Starting && s.role == idle && s.cluster.Selected
		switch {
		case wanted && !w.Exists:
			o.Operation = Create
		case wanted && w.Ours && w.Drifted:
			o.Operation = Change
		case !wanted && !undecided && w.Exists && w.Ours && !w.Terminating && s.isEmptied(now):
			o.Operation = Remove
		default:
			continue
		}
		p.Placings = append(p.Placings, o)
	}
}

// mayHaveWorkload reports whether a workload that the hub created, and removes, is in the cluster, or
// may be.
func (s *ClusterPlan) mayHaveWorkload(r rules) bool {
	w := s.cluster.Workload
	switch {
	case !r.template || !s.cluster.Registered:
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
