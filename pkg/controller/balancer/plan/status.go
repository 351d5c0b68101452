// SPDX-License-Identifier: Apache-2.0

package plan

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
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
)

// maxMessage is how many bytes of a message of a condition are kept. The API server refuses the whole
// status if one has more than 32768 characters.
const maxMessage = 8 << 10

// Outcome is the result of a plan: the replicas of each target now, in the order of the shares.
type Outcome []int64

// NewStatus returns the status for a view, a plan and its outcome. Conditions keep their times if
// they do not change.
func NewStatus(v View, p Plan, o Outcome) v1alpha1.BalancerStatus {
	was := v.Balancer.Status
	s := v1alpha1.BalancerStatus{
		Selector:           selectorText(v.Balancer.Spec.Selector),
		ObservedGeneration: v.Balancer.Generation,
		Overflow:           clampInt32(p.Overflow),
		Deficit:            clampInt32(p.Deficit),
		ShareErrorPercent:  clampInt32(int64(math.Ceil(100*p.ShareError - 1e-9))),
		Conditions:         slices.Clone(was.Conditions),
	}
	var observed, ready, desired, base int64
	for i, share := range p.Shares {
		observed, ready = observed+share.health.observed, ready+share.health.ready
		desired, base = desired+share.Desired, base+share.Base
		s.Targets = append(s.Targets, share.status(o[i]))
	}
	s.ObservedReplicas, s.ReadyReplicas, s.DesiredReplicas = clampInt32(observed), clampInt32(ready), clampInt32(desired)
	s.Replicas = clampInt32(min(observed, base))
	for _, c := range conditions(v, p, o) {
		c.Message, c.ObservedGeneration, c.LastTransitionTime = shorten(c.Message), v.Balancer.Generation, metav1.NewTime(v.Now)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	slices.SortFunc(s.Conditions, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	return s
}

// selectorText returns an empty text for a selector that is invalid or matches everything. An
// autoscaler rejects an empty selector; otherwise it would count unrelated pods.
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
		Name: s.Name, Replicas: clampInt32(asked), Desired: clampInt32(s.Desired), Base: clampInt32(s.Base),
		Observed: clampInt32(h.observed), Ready: clampInt32(h.ready), NotStarted: clampInt32(h.notStarted), Fallback: clampInt32(s.Fallback),
		UnstartedSince: metaTime(h.unstartedSince), BlockedSince: metaTime(h.blockedSince), RecoveredAt: metaTime(h.recoveredAt), Blocks: h.blocks,
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
	all := []metav1.Condition{resolved(v, p), balancing(p), readyCondition(v, p)}
	if p.Stop == (Hold{}) {
		return append(all, balanced(v, p, o), withinLimits(p), fallbackActive(p))
	}
	for _, name := range []string{v1alpha1.ConditionBalanced, v1alpha1.ConditionWithinLimits, v1alpha1.ConditionFallbackActive} {
		all = append(all, metav1.Condition{Type: name, Status: metav1.ConditionUnknown, Reason: p.Stop.Reason, Message: "see the condition Ready"})
	}
	return all
}

// balancing is the only condition that clients of the original API know.
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

// condition returns a condition whose status the table of reasons defines.
func condition(kind, why, format string, arguments ...any) metav1.Condition {
	status := metav1.ConditionStatus(reason.Balancer[kind].Find(why).Status)
	return metav1.Condition{Type: kind, Status: status, Reason: why, Message: fmt.Sprintf(format, arguments...)}
}

func resolved(v View, p Plan) metav1.Condition {
	const kind = v1alpha1.ConditionTargetsResolved
	held := metav1.Condition{Type: kind, Status: metav1.ConditionFalse}
	var messages []string
	for _, s := range p.Shares {
		if s.Hold != (Hold{}) {
			held.Reason = cmp.Or(held.Reason, s.Hold.Reason)
			messages = append(messages, fmt.Sprintf("target %s: %s", s.Name, s.Hold.Message))
		}
	}
	held.Message = strings.Join(messages, "; ")
	target, resource := unrequested(v)
	switch {
	case held.Reason != "":
		return held
	case v.Autoscaler.Rival != "":
		return condition(kind, "AmbiguousSelector", "HorizontalPodAutoscaler %s selects some of the same pods as %s, so neither of them works: delete it, or give its workload different pods", v.Autoscaler.Rival, v.Autoscaler.Name)
	case len(p.Strangers) > 0:
		return condition(kind, "UnknownNames", "targetProportions contains %s, which is not the name of a target: add the target, or remove the name", strings.Join(p.Strangers, ", "))
	case len(p.Negative) > 0:
		return condition(kind, "NegativeShares", "targetProportions has a negative share for %s, which counts as 0: use 0", strings.Join(p.Negative, ", "))
	case v.Foreign > 0:
		return condition(kind, "ForeignPods", "spec.selector matches pods that belong to no target, and an autoscaler would count them: select by a label that only the pods of targets have")
	case v.Shared > 0:
		return condition(kind, "SharedPods", "more than one target selects the same pods, and they count for each: give the targets different selectors")
	case target != "":
		return condition(kind, "NoRequests", "HorizontalPodAutoscaler %s needs the %s requests of all containers, but some pods of target %s have none: add resources.requests", v.Autoscaler.Name, resource, target)
	}
	return condition(kind, "Resolved", "all targets exist and can be scaled")
}

// unrequested returns the first target with a pod that lacks a request which the Balancer's
// autoscaler needs.
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

func readyCondition(v View, p Plan) metav1.Condition {
	const kind = v1alpha1.ConditionReady
	b := balancing(p)
	switch {
	case p.Stop != (Hold{}):
		return condition(kind, p.Stop.Reason, "%s", b.Message)
	case b.Status == metav1.ConditionFalse:
		return condition(kind, "TargetsUnresolved", "%s", b.Message)
	case v.Balancer.Spec.Paused:
		return condition(kind, "Paused", "spec.paused is set: targets are not scaled")
	}
	return condition(kind, "UnderControl", "the Balancer manages all targets")
}

func balanced(v View, p Plan, o Outcome) metav1.Condition {
	const kind = v1alpha1.ConditionBalanced
	moving := false
	for i, s := range p.Shares {
		moving = moving || v.Targets[i].Known && o[i] != s.Desired
	}
	switch {
	case !moving:
		return condition(kind, "AtGoal", "all targets have the desired replicas")
	case v.Balancer.Spec.Paused:
		return condition(kind, "Paused", "spec.paused is set: status.targets shows the desired replicas")
	}
	return condition(kind, "Moving", "targets change to the desired replicas step by step, as replicas become ready")
}

func withinLimits(p Plan) metav1.Condition {
	const kind = v1alpha1.ConditionWithinLimits
	switch {
	case p.Deficit > 0 && p.Overflow > 0:
		return condition(kind, "TooFewAndNoRoom", "the minimums of the targets exceed %d replicas by %d, and no target has room for %d replicas that fail to start elsewhere", p.Total, p.Deficit, p.Overflow)
	case p.Deficit > 0:
		return condition(kind, "BelowMinimums", "the minimums of the targets exceed %d replicas by %d: raise spec.replicas or lower minReplicas", p.Total, p.Deficit)
	case p.Overflow > 0:
		return condition(kind, "NoRoom", "no target has room for %d of the %d replicas, additional ones included: raise maxReplicas or lower spec.replicas", p.Overflow, p.Total)
	}
	return condition(kind, "Room", "the bounds of the targets fit spec.replicas")
}

func fallbackActive(p Plan) metav1.Condition {
	const kind = v1alpha1.ConditionFallbackActive
	var blocked []string
	for _, s := range p.Shares {
		if s.health.blocked {
			blocked = append(blocked, s.Name)
		}
	}
	if len(blocked) == 0 {
		return condition(kind, "NotNeeded", "no target is blocked")
	}
	return condition(kind, "TargetsBlocked", "replicas fail to start in %s, so other targets run more", strings.Join(blocked, ", "))
}

// shorten cuts a message that is too long.
func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

func metaTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

// clampInt32 limits a count to the range of the API.
func clampInt32(n int64) int32 { return int32(max(0, min(n, math.MaxInt32))) }
