// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"fmt"
	"slices"

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
