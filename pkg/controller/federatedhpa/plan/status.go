// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
)

// NewStatus returns the status for a view and a plan: the ledger, which must be written before the
// plan's orders are sent, and what users want to know. Conditions keep their times if they do not
// change.
func NewStatus(v View, p Plan) v1alpha1.FederatedHorizontalPodAutoscalerStatus {
	s := v1alpha1.FederatedHorizontalPodAutoscalerStatus{
		ObservedGeneration: v.Object.Generation,
		Conditions:         slices.Clone(v.Object.Status.Conditions),
	}
	r := rulesOf(v.Object)
	for i := range p.Clusters {
		seat := &p.Clusters[i]
		if seat.forgotten(r) {
			continue
		}
		c := seat.status(r)
		for total, n := range map[*int32]int32{
			&s.CurrentReplicas: c.CurrentReplicas, &s.DesiredReplicas: c.DesiredReplicas, &s.ReadyReplicas: c.ReadyReplicas,
			&s.MinReplicas: c.ConfirmedMinReplicas, &s.MaxReplicas: c.ConfirmedMaxReplicas, &s.CountedReplicas: clampInt32(seat.share()),
		} {
			*total = clampInt32(int64(*total) + int64(n))
		}
		s.Clusters = append(s.Clusters, c)
	}
	for _, c := range conditions(v, p, r) {
		c.ObservedGeneration, c.LastTransitionTime = v.Object.Generation, metav1.NewTime(v.Now)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	slices.SortFunc(s.Conditions, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	return s
}

// forgotten reports whether a cluster is no longer listed: the object does not select it, nothing
// was promised to it and nothing is left there, or it was released for good, or it is one too
// many.
func (s *ClusterPlan) forgotten(r rules) bool {
	if s.share() > 0 {
		return !s.cluster.Registered && slices.Contains(r.released, s.Name)
	}
	return s.omitted || !s.cluster.Selected && !s.mayHaveWorkload(r)
}

func (s *ClusterPlan) status(r rules) v1alpha1.ClusterStatus {
	e := s.entry
	e.MinReplicas, e.MaxReplicas, e.LeftReplicas = clampInt32(s.Aim.Min), clampInt32(s.Aim.Max), clampInt32(s.Left)
	was := Bounds{int64(e.ConfirmedMinReplicas), int64(e.ConfirmedMaxReplicas)}
	e.ConfirmedMinReplicas, e.ConfirmedMaxReplicas = clampInt32(s.Confirmed.Min), clampInt32(s.Confirmed.Max)
	switch l := s.cluster.Local; {
	case s.behind, l == nil && !s.cluster.Absent:
	case l == nil:
		e.ConfirmedVersion = ""
	case was != s.Confirmed, e.ConfirmedVersion == "", IsNewer(e.ConfirmedVersion, l.Version):
		e.ConfirmedVersion = l.Version
	}
	if l := s.cluster.Local; l != nil && s.cluster.Reachable {
		e.CurrentReplicas, e.DesiredReplicas, e.LimitedBy, e.Demand = clampInt32(l.Current), clampInt32(l.Desired), l.Limit, 0
		if s.limited {
			e.Demand = clampInt32(l.Demand)
		}
		if s.missing() {
			e.CurrentReplicas, e.LimitedBy = 0, ""
		}
		e.ReadyReplicas = clampInt32(s.cluster.Workload.Ready)
	} else if s.Confirmed.Max == 0 { // it had none when it was last seen
		e.CurrentReplicas, e.DesiredReplicas, e.ReadyReplicas, e.LimitedBy, e.Demand, e.NotReadySince = 0, 0, 0, "", 0, nil
	}
	if s.role == idle || s.role == waiting {
		e.OnDemand, e.QuietSince, e.RemovableAfter = false, nil, nil
		if s.Left == 0 {
			e.MovedAt = nil
		}
	}
	var why Hold
	e.State, why = s.clusterState(r)
	e.Reason, e.Message = sanitizedReason(why.Reason), sanitized(why.Message)
	return e
}

// clusterState returns the state of the cluster that the status shows first.
func (s *ClusterPlan) clusterState(r rules) (v1alpha1.ClusterState, Hold) {
	c := s.cluster
	switch {
	case !c.Registered:
		return v1alpha1.StateUnreachable, Hold{"NotRegistered", "the hub no longer knows this cluster; its share is kept until spec.unreachable.released lists it"}
	case !c.Reachable:
		return v1alpha1.StateUnreachable, cmp.Or(c.Fault, Hold{"NoContact", "the cluster does not answer"})
	case c.Fault != Hold{}:
		return v1alpha1.Refused, c.Fault
	case s.staysLeft(r):
		return v1alpha1.StateLeft, Hold{"ReplicasLeft", fmt.Sprintf("%d replicas run there without an autoscaler and count against maxReplicas", s.Left)}
	case c.Foreign != Hold{}:
		return v1alpha1.Refused, c.Foreign
	case s.role == leaving, s.role == idle && !s.cluster.Selected:
		return v1alpha1.Leaving, c.Workload.Refused
	case s.role == joining:
		return v1alpha1.StateJoining, c.Workload.Fault
	case s.role == waiting:
		return v1alpha1.Waiting, Hold{"NoRoom", "other clusters use all of maxReplicas"}
	case s.role == idle:
		return v1alpha1.Idle, c.Workload.Refused
	case s.frozen():
		return v1alpha1.Frozen, c.Local.Inactive
	case s.stuck && !s.missing():
		return v1alpha1.Used, Hold{"Stuck", "requested replicas do not become ready"}
	}
	return v1alpha1.Used, c.Workload.Fault
}

func conditions(v View, p Plan, r rules) []metav1.Condition {
	all := []metav1.Condition{readyCondition(v, p, r), unreachable(p)}
	if p.Stop != (Hold{}) || v.Object.DeletionTimestamp != nil {
		for _, t := range []string{v1alpha1.ConditionBalanced, v1alpha1.ConditionLimited, v1alpha1.ConditionOverCommitted, v1alpha1.ConditionMinExceeded, v1alpha1.ConditionJoiningBlocked, v1alpha1.ConditionReplicasLeft} {
			all = append(all, metav1.Condition{Type: t, Status: metav1.ConditionUnknown, Reason: cmp.Or(p.Stop.Reason, "Deleting"), Message: "see the condition Ready"})
		}
		return all
	}
	return append(all, balanced(p), limited(p), overCommitted(p, r), minExceeded(p, r), joiningBlocked(p), replicasLeft(p, r))
}

// condition returns a condition with the reason yes or no. The table of reasons defines its status.
func condition(kind string, is bool, yes, no Hold) metav1.Condition {
	why := no
	if is {
		why = yes
	}
	status := metav1.ConditionStatus(reason.Federation[kind].Find(why.Reason).Status)
	return metav1.Condition{Type: kind, Status: status, Reason: why.Reason, Message: why.Message}
}

func (p Plan) clustersWhere(which func(*ClusterPlan) bool) []string {
	var names []string
	for _, s := range p.clusterPlans() {
		if which(s) {
			names = append(names, s.Name)
		}
	}
	return names
}

// listed joins the first names and counts the others, which keeps messages short.
func listed(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func readyCondition(v View, p Plan, r rules) metav1.Condition {
	no := p.Stop
	refused := p.clustersWhere(func(s *ClusterPlan) bool {
		state, _ := s.clusterState(r)
		return state == v1alpha1.Refused && s.cluster.Selected
	})
	inUse := p.clustersWhere(func(s *ClusterPlan) bool { return s.role == used || s.role == joining })
	switch {
	case v.Object.DeletionTimestamp != nil:
		no = Hold{"Deleting", "the objects in clusters are being removed"}
		if away := p.clustersWhere(func(s *ClusterPlan) bool { return !s.cluster.Reachable && !s.abandoned(r) }); len(away) > 0 {
			no.Message += "; unreachable: " + listed(away)
		}
	case no != Hold{}:
	case v.Object.Spec.Paused:
		no = Hold{"Paused", "spec.paused is set: the clusters' autoscalers are not changed"}
	case p.Omitted > 0:
		no = Hold{"TooManyClusters", fmt.Sprintf("at most %d clusters can be used, and %d more are selected: narrow spec.clusterSelector", maxClusters, p.Omitted)}
	case len(refused) > 0:
		no = Hold{"ClustersRefused", "see status.clusters for " + listed(refused)}
	case len(inUse) == 0:
		no = Hold{"NoClusters", "no selected cluster can be used: check spec.clusterSelector and status.clusters"}
	}
	return condition(v1alpha1.ConditionReady, no == Hold{}, Hold{"UnderControl", "the hub manages all selected clusters"}, no)
}

func unreachable(p Plan) metav1.Condition {
	away := p.clustersWhere(func(s *ClusterPlan) bool { return s.hasAutoscaler() && !s.cluster.Reachable && !s.cluster.Starting })
	return condition(v1alpha1.ConditionClustersUnreachable, len(away) > 0,
		Hold{"OutOfReach", "these clusters do not answer and keep their bounds: " + listed(away)},
		Hold{"AllReached", "all clusters with a share answer"})
}

func balanced(p Plan) metav1.Condition {
	moving := p.clustersWhere(func(s *ClusterPlan) bool { return !s.Lent && (s.Aim != s.Confirmed || s.entry.Outstanding != nil) })
	return condition(v1alpha1.ConditionBalanced, len(moving) == 0, Hold{"AtGoal", "all clusters have their desired bounds"},
		Hold{"Moving", "bounds are being changed in " + listed(moving)})
}

func limited(p Plan) metav1.Condition {
	return condition(v1alpha1.ConditionLimited, p.Missing > 0,
		Hold{"TooFewReplicas", fmt.Sprintf("clusters request %d more replicas than maxReplicas and their own limits allow", p.Missing)},
		Hold{"Enough", "no cluster requests more than it may have"})
}

func overCommitted(p Plan, r rules) metav1.Condition {
	var lent, counted int64
	for _, s := range p.clusterPlans() {
		if counted += s.share(); s.Lent {
			lent += s.share()
		}
	}
	over := counted - r.max
	return condition(v1alpha1.ConditionOverCommitted, over > 0,
		Hold{"MaximaExceedMaxReplicas", fmt.Sprintf("the maximums of the clusters may add up to %d more than maxReplicas; %d of these are the lent shares of unreachable clusters", over, lent)},
		Hold{"Within", "the maximums of the clusters do not add up to more than maxReplicas"})
}

func minExceeded(p Plan, r rules) metav1.Condition {
	var sum int64
	for _, s := range p.clusterPlans() {
		sum += s.Aim.Min
	}
	return condition(v1alpha1.ConditionMinExceeded, sum > r.min,
		Hold{"MinimaExceedMinReplicas", fmt.Sprintf("the minimums of the clusters add up to %d more than minReplicas", sum-r.min)},
		Hold{"Within", "the minimums of the clusters do not add up to more than minReplicas"})
}

func joiningBlocked(p Plan) metav1.Condition {
	blocked := p.clustersWhere(func(s *ClusterPlan) bool { return s.role == waiting })
	return condition(v1alpha1.ConditionJoiningBlocked, len(blocked) > 0,
		Hold{"NoRoom", "other clusters use all of maxReplicas; these clusters wait: " + listed(blocked)},
		Hold{"NotNeeded", "no cluster waits for a share"})
}

func replicasLeft(p Plan, r rules) metav1.Condition {
	var sum int64
	clusters := p.clustersWhere(func(s *ClusterPlan) bool {
		if !s.hasLeft(r) {
			return false
		}
		sum += s.Left
		return true
	})
	return condition(v1alpha1.ConditionReplicasLeft, len(clusters) > 0,
		Hold{"WithoutAutoscaler", fmt.Sprintf("%d replicas run without an autoscaler, and count against maxReplicas, in clusters that have left: %s", sum, listed(clusters))},
		Hold{"NoneLeft", "no replicas run without an autoscaler in clusters that have left"})
}
