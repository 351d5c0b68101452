// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
)

func (r *reading) balancers() []Balancer {
	all := []Balancer{}
	for _, o := range slices.SortedFunc(slices.Values(r.Balancers), byName) {
		b := Balancer{Namespace: o.Namespace, Name: o.Name, Policy: string(o.Spec.Policy.PolicyName), Replicas: 1}
		if o.Spec.Replicas != nil {
			b.Replicas = int(*o.Spec.Replicas)
		}
		for _, t := range o.Spec.Targets {
			b.Targets = append(b.Targets, target(t, o.Status.Targets, b.Replicas))
		}
		r.inspectBalancer(o)
		all = append(all, b)
	}
	return all
}

func target(t balancer.BalancerTarget, statuses []balancer.TargetStatus, replicas int) Target {
	shown := Target{Name: t.Name, Min: amount(t.MinReplicas, replicas, false)}
	if t.MaxReplicas != nil {
		most := max(shown.Min, amount(t.MaxReplicas, replicas, true))
		shown.Max = &most
	}
	for _, s := range statuses {
		if s.Name == t.Name {
			shown.Wanted, shown.Current, shown.Ready = int(s.Desired), int(s.Observed), int(s.Ready)
			shown.Why = targetProblem(s)
		}
	}
	return shown
}

func targetProblem(s balancer.TargetStatus) string {
	if s.BlockedSince != nil && s.Message == "" {
		return fmt.Sprintf("blocked, %d fail to start", s.NotStarted)
	}
	return oneLine(cmp.Or(s.Message, s.Reason))
}

// amount returns a number, or a percentage of replicas; 0 for anything else.
func amount(n *intstr.IntOrString, replicas int, up bool) int {
	if n == nil {
		return 0
	}
	value, err := intstr.GetScaledValueFromIntOrPercent(n, replicas, up)
	if err != nil {
		return 0
	}
	return value
}

func (r *reading) federated() []Federated {
	all := []Federated{}
	for _, o := range slices.SortedFunc(slices.Values(r.Federated), byName) {
		f := Federated{
			Namespace: o.Namespace, Name: o.Name, Workload: o.Spec.ScaleTargetRef.Kind + "/" + o.Spec.ScaleTargetRef.Name,
			Min: 1, Max: int(o.Spec.MaxReplicas), Clusters: []Cluster{},
		}
		if o.Spec.MinReplicas != nil {
			f.Min = int(*o.Spec.MinReplicas)
		}
		for _, c := range o.Status.Clusters {
			f.Clusters = append(f.Clusters, cluster(c))
		}
		slices.SortFunc(f.Clusters, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
		r.inspectFederated(o)
		all = append(all, f)
	}
	return all
}

func cluster(c autoscaling.ClusterStatus) Cluster {
	return Cluster{
		Name: c.Name, Min: int(c.ConfirmedMinReplicas), Max: int(c.ConfirmedMaxReplicas),
		Current: int(c.CurrentReplicas), Desired: int(c.DesiredReplicas), Ready: int(c.ReadyReplicas),
		State: string(c.State), Why: oneLine(cmp.Or(c.Message, c.Reason)),
		Reachable: c.State != autoscaling.StateUnreachable, Limited: c.LimitedBy == autoscaling.ByMax,
	}
}

// complaint is a condition that reports a problem while it has a given status.
type complaint struct {
	kind   string
	status metav1.ConditionStatus
	grade  grade
	// do is what to do if the message does not say it.
	do string
}

var balancerComplaints = []complaint{
	{balancer.ConditionTargetsResolved, metav1.ConditionFalse, broken, "check that the targets exist and that the controller may scale them"},
	{balancer.ConditionReady, metav1.ConditionFalse, broken, "kubectl -n %s describe balancer %s"},
	{balancer.ConditionWithinLimits, metav1.ConditionFalse, lacking, "change the bounds of targets, or replicas"},
	{balancer.ConditionFallbackActive, metav1.ConditionTrue, lacking, "check why pods do not start there: kubectl -n %s describe pods"},
}

func (r *reading) inspectBalancer(o *balancer.Balancer) {
	object := objectRef("balancer", o.Namespace, o.Name)
	said := false
	for _, c := range balancerComplaints {
		met := matchingCondition(o.Status.Conditions, c)
		// Ready is a summary: it repeats other conditions.
		if met == nil || c.kind == balancer.ConditionReady && said && met.Reason != "Paused" {
			continue
		}
		said = true
		what, do := splitMessage(met.Message)
		switch {
		case met.Reason == "Paused":
			r.addProblem(noted, object, "paused: targets are not scaled", "when you are done, set spec.paused to false")
			continue
		case c.kind == balancer.ConditionFallbackActive || c.kind == balancer.ConditionReady || strings.HasPrefix(what, "target "):
			what, do = oneLine(met.Message), ""
		}
		r.addProblem(c.grade, object, what, cmp.Or(do, commandFor(c.do, o)))
	}
	if len(o.Status.Conditions) == 0 && !r.isNew(o) {
		r.addProblem(lacking, object, "no controller has reported on it", "check that evenkeel-workloads runs with balancer among its --controllers")
	}
}

var federatedComplaints = []complaint{
	{autoscaling.ConditionReady, metav1.ConditionFalse, broken, "kubectl -n %s describe fhpa %s"},
	{autoscaling.ConditionClustersUnreachable, metav1.ConditionTrue, broken, "check the network to them; if they are lost for good, list them in spec.unreachable.released"},
	{autoscaling.ConditionOverCommitted, metav1.ConditionTrue, broken, "restore the unreachable clusters, or lower maxReplicas"},
	{autoscaling.ConditionLimited, metav1.ConditionTrue, lacking, "raise maxReplicas, or the limits of clusters"},
	{autoscaling.ConditionJoiningBlocked, metav1.ConditionTrue, lacking, "raise maxReplicas"},
	{autoscaling.ConditionMinExceeded, metav1.ConditionTrue, noted, "if you do not want this, raise minReplicas or change minPolicy"},
}

func (r *reading) inspectFederated(o *autoscaling.FederatedHorizontalPodAutoscaler) {
	object := objectRef("fhpa", o.Namespace, o.Name)
	for _, c := range federatedComplaints {
		met := matchingCondition(o.Status.Conditions, c)
		switch {
		case met == nil:
		case met.Reason == "Paused":
			r.addProblem(noted, object, "paused: the clusters' autoscalers are not changed", "when you are done, set spec.paused to false")
		default:
			r.addProblem(c.grade, object, oneLine(met.Message), commandFor(c.do, o))
		}
	}
	for _, s := range o.Status.Clusters {
		if s.State == autoscaling.Frozen || s.Reason == "Stuck" {
			r.addProblem(lacking, object, fmt.Sprintf("cluster %s: %s", s.Name, oneLine(cmp.Or(s.Message, s.Reason))), "check the autoscaler and the pods of that cluster")
		}
	}
	if len(o.Status.Conditions) == 0 && !r.isNew(o) {
		r.addProblem(lacking, object, "no controller has reported on it", "check that evenkeel-workloads runs with federatedhpa among its --controllers")
	}
}

// matchingCondition returns the condition of a complaint, or nil if there is nothing to complain
// about.
func matchingCondition(conditions []metav1.Condition, c complaint) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == c.kind && conditions[i].Status == c.status {
			return &conditions[i]
		}
	}
	return nil
}
