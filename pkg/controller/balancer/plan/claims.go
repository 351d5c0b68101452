// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
)

// claim is a target's place in the policy. The zero value claims nothing above the minimum.
type claim struct {
	tier   int32
	weight int64
}

func claimsOf(spec v1alpha1.BalancerSpec) everyClaim {
	claims, policy := everyClaim{}, spec.Policy
	switch policy.PolicyName {
	case v1alpha1.Even:
		for _, t := range spec.Targets {
			claims.addClaim(t.Name, claim{0, 1})
		}
	case v1alpha1.Priority:
		for i, name := range policy.Priorities.TargetOrder {
			claims.addClaim(name, claim{int32(i), 1})
		}
	case v1alpha1.Proportional:
		for name, share := range policy.Proportions.TargetProportions {
			claims.addClaim(name, claim{0, max(0, int64(share))})
		}
	case v1alpha1.Tiers:
		for i, tier := range policy.Tiers {
			for _, name := range tier.Targets {
				share, named := tier.Proportions[name]
				if !named {
					share = 1
				}
				claims.addClaim(name, claim{int32(i), max(0, int64(share))})
			}
		}
	}
	return claims
}

// everyClaim contains claims by name; a second claim with the same name is ignored.
type everyClaim map[string]claim

func (e everyClaim) addClaim(name string, c claim) {
	if _, ok := e[name]; !ok {
		e[name] = c
	}
}

// strangers are names with a share that no target has; negative are names with a share below 0.
func strangers(spec v1alpha1.BalancerSpec) (strangers, negative []string) {
	if spec.Policy.Proportions == nil {
		return nil, nil
	}
	for name, share := range spec.Policy.Proportions.TargetProportions {
		if !slices.ContainsFunc(spec.Targets, func(t v1alpha1.BalancerTarget) bool { return t.Name == name }) {
			strangers = append(strangers, name)
		}
		if share < 0 {
			negative = append(negative, name)
		}
	}
	slices.Sort(strangers)
	slices.Sort(negative)
	return strangers, negative
}
