// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"slices"
	"strings"

	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	federatedhpaplan "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
)

// AddFederated adds plans of federated autoscalers to a prediction. Their end is their goal: the
// bounds of the clusters when all moves are complete, if the load stays the same.
func (f *Forecast) AddFederated(previews []federatedhpa.Preview) {
	for _, p := range previews {
		f.Plans = append(f.Plans, explainFederated(p))
		e := ClusterEnd{Namespace: p.View.Object.Namespace, Name: p.View.Object.Name, Was: map[string]string{}, Is: map[string]string{}}
		for _, s := range p.Plan.Clusters {
			e.Was[s.Name], e.Is[s.Name] = boundsText(s.Confirmed), boundsText(s.Aim)
		}
		f.End.Federated = append(f.End.Federated, e)
	}
}

func explainFederated(f federatedhpa.Preview) Plan {
	o := f.View.Object
	p := Plan{Kind: "FederatedHorizontalPodAutoscaler", Namespace: o.Namespace, Name: o.Name, State: AtRest}
	for _, order := range f.Plan.Orders {
		p.Steps = append(p.Steps, Step{Do: Bound, On: order.Cluster, From: boundsText(order.Was), To: boundsText(order.Bounds), Why: string(order.Operation)})
	}
	var away []string
	for _, c := range f.View.Clusters {
		if c.Registered && !c.Reachable {
			away = append(away, c.Name)
		}
	}
	moving := slices.ContainsFunc(f.Plan.Clusters, func(s federatedhpaplan.ClusterPlan) bool { return s.Aim != s.Confirmed })
	switch {
	case f.Plan.Stop.Message != "":
		p.State, p.Why = Blocked, f.Plan.Stop.Message
	case o.Spec.Paused:
		p.State, p.Why = Blocked, "spec.paused is set"
	case len(p.Steps) > 0:
		p.State = Moving
	case moving:
		p.State, p.Why = Moving, "bounds are lowered in one cluster before they are raised in another"
	case f.Plan.Missing > 0:
		p.State, p.Why = Blocked, fmt.Sprintf("clusters ask for %d replicas more than there is room for", f.Plan.Missing)
	}
	if len(away) > 0 && p.Why == "" {
		p.Why = "out of reach: " + strings.Join(away, ", ")
	}
	return p
}

// boundsText returns "none" if there is no autoscaler.
func boundsText(b federatedhpaplan.Bounds) string {
	if b.Max == 0 {
		return "none"
	}
	return fmt.Sprintf("%d-%d", b.Min, b.Max)
}
