// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
)

// Outcome is what became of a plan: what each target is asked for now, in the order of the shares.
type Outcome []int64

// NewStatus is what a view, a plan and its outcome come to. Conditions keep their times where they do not change.
func NewStatus(v View, p Plan, o Outcome) v1alpha1.BalancerStatus {
	was := v.Balancer.Status
	s := v1alpha1.BalancerStatus{
		Selector:           selectorText(v.Balancer.Spec.Selector),
		ObservedGeneration: v.Balancer.Generation,
		Overflow:           small(p.Overflow),
		Deficit:            small(p.Deficit),
		ShareErrorPercent:  small(int64(math.Ceil(100*p.ShareError - 1e-9))),
		Conditions:         slices.Clone(was.Conditions),
	}
	var observed, ready, desired, base int64
	for i, share := range p.Shares {
		observed, ready = observed+share.health.observed, ready+share.health.ready
		desired, base = desired+share.Desired, base+share.Base
		s.Targets = append(s.Targets, share.status(o[i]))
	}
	s.ObservedReplicas, s.ReadyReplicas, s.DesiredReplicas = small(observed), small(ready), small(desired)
	s.Replicas = small(min(observed, base))
	for _, c := range conditions(v, p, o) {
		c.ObservedGeneration, c.LastTransitionTime = v.Balancer.Generation, metav1.NewTime(v.Now)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	slices.SortFunc(s.Conditions, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	return s
}

// selectorText is empty for a selector that is not valid or matches everything: an autoscaler refuses that, where it
// would else count pods of others.
func selectorText(selector metav1.LabelSelector) string {
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return ""
	}
	return parsed.String()
}

func (s Share) status(asked int64) v1alpha1.TargetStatus {
	h := s.health
	t := v1alpha1.TargetStatus{
		Name: s.Name, Replicas: small(asked), Desired: small(s.Desired), Base: small(s.Base),
		Observed: small(h.observed), Ready: small(h.ready), NotStarted: small(h.notStarted),
		UnstartedSince: stamp(h.unstartedSince), BlockedSince: stamp(h.blockedSince), RecoveredAt: stamp(h.recoveredAt), Blocks: h.blocks,
	}
	switch {
	case s.Hold != (Hold{}):
		t.Reason, t.Message = s.Hold.Reason, s.Hold.Message
	case h.blocked:
		t.Reason = "Blocked"
	}
	return t
}

func conditions(v View, p Plan, o Outcome) []metav1.Condition {
	all := []metav1.Condition{resolved(v, p), balancing(p), ready(v, p)}
	if p.Stop == (Hold{}) {
		return append(all, balanced(v, p, o), withinLimits(p), fallbackActive(p))
	}
	for _, name := range []string{v1alpha1.ConditionBalanced, v1alpha1.ConditionWithinLimits, v1alpha1.ConditionFallbackActive} {
		all = append(all, metav1.Condition{Type: name, Status: metav1.ConditionUnknown, Reason: p.Stop.Reason, Message: "see the condition Ready"})
	}
	return all
}

// balancing is all that readers of the original API know.
func balancing(p Plan) metav1.Condition {
	no := func(phase, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionBalancing, Status: metav1.ConditionFalse, Reason: phase, Message: message}
	}
	if p.Stop != (Hold{}) {
		return no(p.Stop.Phase, p.Stop.Message)
	}
	for _, s := range p.Shares {
		if s.Hold != (Hold{}) {
			return no(s.Hold.Phase, fmt.Sprintf("target %s: %s", s.Name, s.Hold.Message))
		}
	}
	return metav1.Condition{Type: v1alpha1.ConditionBalancing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCompleted, Message: "Balancer running OK"}
}

func resolved(v View, p Plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionTargetsResolved, Status: metav1.ConditionFalse}
	var held []string
	for _, s := range p.Shares {
		if s.Hold != (Hold{}) {
			c.Reason = cmp.Or(c.Reason, s.Hold.Reason)
			held = append(held, fmt.Sprintf("target %s: %s", s.Name, s.Hold.Message))
		}
	}
	switch {
	case len(held) > 0:
		c.Message = strings.Join(held, "; ")
	case v.Autoscaler.Rival != "":
		c.Reason, c.Message = "AmbiguousSelector", fmt.Sprintf("HorizontalPodAutoscaler %s selects some of the same pods as %s, so neither of them works: delete it, or give its workload different pods", v.Autoscaler.Rival, v.Autoscaler.Name)
	case len(p.Strangers) > 0:
		c.Reason, c.Message = "UnknownNames", fmt.Sprintf("targetProportions contains %s, which is not the name of a target: add the target, or remove the name", strings.Join(p.Strangers, ", "))
	case len(p.Negative) > 0:
		c.Reason, c.Message = "NegativeShares", fmt.Sprintf("targetProportions has a negative share for %s, which counts as 0: use 0", strings.Join(p.Negative, ", "))
	case v.Foreign > 0:
		c.Reason, c.Message = "ForeignPods", "spec.selector matches pods that belong to no target, and an autoscaler would count them: select by a label that only the pods of targets have"
	case v.Shared > 0:
		c.Reason, c.Message = "SharedPods", "more than one target selects the same pods, and they count for each: give the targets different selectors"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Resolved", "all targets exist and can be scaled"
		if target, resource := unrequested(v); target != "" {
			c.Status, c.Reason = metav1.ConditionFalse, "NoRequests"
			c.Message = fmt.Sprintf("HorizontalPodAutoscaler %s needs the %s requests of all containers, but some pods of target %s have none: add resources.requests", v.Autoscaler.Name, resource, target)
		}
	}
	return c
}

// unrequested is the first target with a pod that lacks a request which the Balancer's autoscaler needs.
func unrequested(v View) (target, resource string) {
	for _, t := range v.Targets {
		switch {
		case v.Autoscaler.CPU && t.NoCPU:
			return t.Spec.Name, "cpu"
		case v.Autoscaler.Memory && t.NoMemory:
			return t.Spec.Name, "memory"
		}
	}
	return "", ""
}

func ready(v View, p Plan) metav1.Condition {
	b := balancing(p)
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: p.Stop.Reason, Message: b.Message}
	switch {
	case p.Stop != (Hold{}):
	case b.Status == metav1.ConditionFalse:
		c.Reason = "TargetsUnresolved"
	case v.Balancer.Spec.Paused:
		c.Reason, c.Message = "Paused", "spec.paused is set: targets are not scaled"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "UnderControl", "the Balancer manages all targets"
	}
	return c
}

func balanced(v View, p Plan, o Outcome) metav1.Condition {
	for i, s := range p.Shares {
		if v.Targets[i].Known && o[i] != s.Desired {
			c := metav1.Condition{Type: v1alpha1.ConditionBalanced, Status: metav1.ConditionFalse, Reason: "Moving", Message: "targets change to the desired replicas step by step, as replicas become ready"}
			if v.Balancer.Spec.Paused {
				c.Reason, c.Message = "Paused", "spec.paused is set: status.targets shows the desired replicas"
			}
			return c
		}
	}
	return metav1.Condition{Type: v1alpha1.ConditionBalanced, Status: metav1.ConditionTrue, Reason: "AtGoal", Message: "all targets have the desired replicas"}
}

func withinLimits(p Plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionWithinLimits, Status: metav1.ConditionFalse}
	switch {
	case p.Deficit > 0 && p.Overflow > 0:
		c.Reason = "TooFewAndNoRoom"
		c.Message = fmt.Sprintf("the minimums of the targets exceed %d replicas by %d, and no target has room for %d replicas that fail to start elsewhere", p.Total, p.Deficit, p.Overflow)
	case p.Deficit > 0:
		c.Reason, c.Message = "BelowMinimums", fmt.Sprintf("the minimums of the targets exceed %d replicas by %d: raise spec.replicas or lower minReplicas", p.Total, p.Deficit)
	case p.Overflow > 0:
		c.Reason, c.Message = "NoRoom", fmt.Sprintf("no target has room for %d of the %d replicas, additional ones included: raise maxReplicas or lower spec.replicas", p.Overflow, p.Total)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Room", "the bounds of the targets fit spec.replicas"
	}
	return c
}

func fallbackActive(p Plan) metav1.Condition {
	var blocked []string
	for _, s := range p.Shares {
		if s.health.blocked {
			blocked = append(blocked, s.Name)
		}
	}
	if len(blocked) == 0 {
		return metav1.Condition{Type: v1alpha1.ConditionFallbackActive, Status: metav1.ConditionFalse, Reason: "NotNeeded", Message: "no target is blocked"}
	}
	return metav1.Condition{Type: v1alpha1.ConditionFallbackActive, Status: metav1.ConditionTrue, Reason: "TargetsBlocked",
		Message: "replicas fail to start in " + strings.Join(blocked, ", ") + ", so other targets run more"}
}

func stamp(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

// small is a count as the API has it.
func small(n int64) int32 { return int32(max(0, min(n, math.MaxInt32))) }
