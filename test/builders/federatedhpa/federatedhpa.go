// SPDX-License-Identifier: Apache-2.0

// Package federatedhpa builds FederatedHorizontalPodAutoscalers for tests of the controller and its
// plan.
package federatedhpa

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// Spec is what the builders change.
type Spec = v1alpha1.FederatedHorizontalPodAutoscalerSpec

// Federated is an object between two bounds.
func Federated(lo, hi int32, change ...func(*Spec)) *v1alpha1.FederatedHorizontalPodAutoscaler {
	o := &v1alpha1.FederatedHorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default", UID: "one", Generation: 3}}
	o.Spec = Spec{
		ScaleTargetRef: v1alpha1.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"},
		MinReplicas:    &lo, MaxReplicas: hi, MinPolicy: v1alpha1.AtLeastOne, DeletionPolicy: v1alpha1.Delete,
	}
	for _, f := range change {
		f(&o.Spec)
	}
	return o
}

// Strict uses no more clusters than the minimum allows.
func Strict(s *Spec) { s.MinPolicy = v1alpha1.Strict }

// Minima lets minima move between clusters.
func Minima(s *Spec) { Rebalance(s).Minima = true }

// OnDemand lets clusters join only when the others are full.
func OnDemand(s *Spec) { s.Joining = &v1alpha1.Joining{OnDemand: true} }

// Rebalance returns the settings of rebalancing, and creates them if necessary.
func Rebalance(s *Spec) *v1alpha1.Rebalance {
	if s.Rebalance == nil {
		s.Rebalance = &v1alpha1.Rebalance{}
	}
	return s.Rebalance
}

// Prefer adds a preference for a cluster, or for all with the name "*".
func Prefer(name string, change func(*v1alpha1.ClusterPreference)) func(*Spec) {
	return func(s *Spec) {
		p := v1alpha1.ClusterPreference{Name: name}
		change(&p)
		s.Clusters = append(s.Clusters, p)
	}
}

// AtMost is a preferred maximum.
func AtMost(n int32) func(*v1alpha1.ClusterPreference) {
	return func(p *v1alpha1.ClusterPreference) { p.MaxReplicas = ptr.To(n) }
}

// Tier is a preferred tier.
func Tier(n int32) func(*v1alpha1.ClusterPreference) {
	return func(p *v1alpha1.ClusterPreference) { p.Tier = n }
}

// Weight is a preferred weight.
func Weight(n int32) func(*v1alpha1.ClusterPreference) {
	return func(p *v1alpha1.ClusterPreference) { p.Weight = ptr.To(n) }
}
