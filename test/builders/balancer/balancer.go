// SPDX-License-Identifier: Apache-2.0

// Package balancer builds parts of valid Balancers for tests of the controller and its plan.
package balancer

import (
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
)

// Target returns a target that is the Deployment of the same name.
func Target(name string) v1alpha1.BalancerTarget {
	return v1alpha1.BalancerTarget{Name: name, ScaleTargetRef: v1alpha1.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}}
}

// Fallback returns a fallback after a minute, with changes.
func Fallback(change ...func(*v1alpha1.Fallback)) *v1alpha1.Fallback {
	f := &v1alpha1.Fallback{StartupTimeoutSeconds: ptr.To[int32](60)}
	for _, c := range change {
		c(f)
	}
	return f
}

// Even returns a policy that gives all targets the same.
func Even() v1alpha1.BalancerPolicy {
	return v1alpha1.BalancerPolicy{PolicyName: v1alpha1.Even, Fallback: Fallback()}
}

// InOrder returns a policy that fills one target after the other.
func InOrder(names ...string) v1alpha1.BalancerPolicy {
	return v1alpha1.BalancerPolicy{PolicyName: v1alpha1.Priority, Fallback: Fallback(), Priorities: &v1alpha1.PriorityPolicy{TargetOrder: names}}
}

// Shares returns a policy with these shares for the targets a, b, c and so on.
func Shares(weights ...int32) v1alpha1.BalancerPolicy {
	proportions := map[string]int32{}
	for i, w := range weights {
		proportions[string(rune('a'+i))] = w
	}
	return v1alpha1.BalancerPolicy{PolicyName: v1alpha1.Proportional, Fallback: Fallback(), Proportions: &v1alpha1.ProportionalPolicy{TargetProportions: proportions}}
}
