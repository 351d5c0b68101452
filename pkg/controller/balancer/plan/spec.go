// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
)

// MaxTargets limits the targets of a Balancer if the installed CRD sets no lower limit.
const MaxTargets = 256

// IsValid reports whether a Balancer can scale anything.
func IsValid(spec v1alpha1.BalancerSpec) bool { return invalid(spec) == "" }

// invalid returns what is wrong with a spec and how to fix it; empty if it is valid. The CRD
// rejects all of this but one workload in two versions of its API. An object may also have been
// stored before the CRD did so.
func invalid(spec v1alpha1.BalancerSpec) string {
	if len(spec.Targets) > MaxTargets {
		return fmt.Sprintf("there are more than %d targets: split them into several Balancers", MaxTargets)
	}
	for i, t := range spec.Targets {
		if slices.ContainsFunc(spec.Targets[:i], func(u v1alpha1.BalancerTarget) bool { return u.Name == t.Name }) {
			return fmt.Sprintf("two targets are named %q: rename one", t.Name)
		}
		if slices.ContainsFunc(spec.Targets[:i], func(u v1alpha1.BalancerTarget) bool { return isSameWorkload(u.ScaleTargetRef, t.ScaleTargetRef) }) {
			return fmt.Sprintf("target %q names the same workload as another target: remove one", t.Name)
		}
		if what := invalidBounds(t); what != "" {
			return fmt.Sprintf("target %q: %s", t.Name, what)
		}
	}
	if s := spec.Selector; len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return "an empty selector matches every pod of the namespace: use a label that the pods of all targets have"
	}
	if _, err := metav1.LabelSelectorAsSelector(&spec.Selector); err != nil {
		return fmt.Sprintf("selector: %v", err)
	}
	if t := spec.Transition; t != nil && !(validLimit(t.MaxSurge) && validLimit(t.MaxUnavailable)) {
		return "transition: use numbers from 0, or percentages from 0% to 100%"
	}
	return invalidPolicy(spec.Policy)
}

// isSameWorkload reports whether two references name one workload, in any versions of its API.
func isSameWorkload(a, b v1alpha1.ScaleTargetReference) bool {
	kindOf := func(r v1alpha1.ScaleTargetReference) schema.GroupKind {
		return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
	}
	return a.Name == b.Name && kindOf(a) == kindOf(b)
}

func invalidBounds(t v1alpha1.BalancerTarget) string {
	for _, l := range []*intstr.IntOrString{t.MinReplicas, t.MaxReplicas} {
		if !validLimit(l) {
			return fmt.Sprintf("bound %s: use a number from 0, or a percentage from 0%% to 100%%", l)
		}
	}
	if t.MinReplicas == nil || t.MaxReplicas == nil || t.MinReplicas.Type != t.MaxReplicas.Type {
		return ""
	}
	if resolveLimit(t.MinReplicas, 100, 0) > resolveLimit(t.MaxReplicas, 100, 0) {
		return "minReplicas must not be above maxReplicas: lower minReplicas or raise maxReplicas"
	}
	return ""
}

func validLimit(l *intstr.IntOrString) bool {
	if l == nil || l.Type == intstr.Int {
		return l == nil || l.IntVal >= 0
	}
	percent, ok := percentage(*l)
	return ok && percent >= 0 && percent <= 100
}

// percentage parses a text such as 20%.
func percentage(l intstr.IntOrString) (int64, bool) {
	if l.Type != intstr.String {
		return 0, false
	}
	digits, percent := strings.CutSuffix(l.StrVal, "%")
	n, err := strconv.ParseInt(digits, 10, 8)
	return n, percent && err == nil
}

func invalidPolicy(p v1alpha1.BalancerPolicy) string {
	var missing string
	switch p.PolicyName {
	case v1alpha1.Priority:
		if p.Priorities == nil {
			missing = "priorities"
		}
	case v1alpha1.Proportional:
		if p.Proportions == nil {
			missing = "proportions"
		}
	case v1alpha1.Tiers:
		if len(p.Tiers) == 0 {
			missing = "tiers"
		}
	case v1alpha1.Even:
	default:
		return fmt.Sprintf("policyName %q is not known: use priority, proportional, even or tiers", p.PolicyName)
	}
	if missing != "" {
		return fmt.Sprintf("policyName %s requires the field %s", p.PolicyName, missing)
	}
	if f := p.Fallback; f != nil && (f.StartupTimeoutSeconds == nil) == (f.StartupTimeout == nil) {
		return `fallback: set exactly one of startupTimeoutSeconds (180) and startupTimeout ("3m")`
	}
	return ""
}

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
