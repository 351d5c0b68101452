// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plural"
	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
)

// Balancer explains a Balancer.
func Balancer(o overview.Objects, name string) (Account, error) {
	b, err := findObject(o.Balancers, "balancer", name, o)
	if err != nil {
		return Account{}, err
	}
	shown := overview.New(overview.Objects{At: o.At, Balancers: []*v1alpha1.Balancer{b}}).Balancers[0]
	a := Account{
		Title: fmt.Sprintf("Balancer %s: %s, %d ready", name, plural.Of(shown.Replicas, "replica"), b.Status.ReadyReplicas),
		See:   []string{"docs/balancer.md: what it does", "docs/distribute.md: how a number is split", "docs/spec/balancer.md: all fields"},
	}
	for _, t := range shown.Targets {
		a.addFact(t.Name, "%s", targetText(t))
	}
	a.addReason("%s", policy(b))
	if b.Status.ShareErrorPercent > 0 {
		a.addReason("Whole replicas cannot match every share exactly: the largest deviation is %d %% of all replicas.", b.Status.ShareErrorPercent)
	}
	complain(&a, b.Status.Conditions, map[string]metav1.ConditionStatus{
		v1alpha1.ConditionReady: metav1.ConditionFalse, v1alpha1.ConditionTargetsResolved: metav1.ConditionFalse,
		v1alpha1.ConditionWithinLimits: metav1.ConditionFalse, v1alpha1.ConditionFallbackActive: metav1.ConditionTrue,
		v1alpha1.ConditionBalanced: metav1.ConditionFalse,
	})
	for _, t := range b.Status.Targets {
		explainTarget(&a, b.Spec.Policy.Fallback, t, o.At)
	}
	if len(a.Next) == 0 {
		a.addNext("It is at rest: nothing changes until replicas, the policy, or the pods of a target change.")
	}
	return a, nil
}

func targetText(t overview.Target) string {
	text := fmt.Sprintf("%d desired, %d exist, %d ready", t.Wanted, t.Current, t.Ready)
	switch {
	case t.Max != nil:
		text += fmt.Sprintf("; between %d and %d", t.Min, *t.Max)
	case t.Min > 0:
		text += fmt.Sprintf("; at least %d", t.Min)
	}
	return text
}

// policy describes in a sentence how replicas are distributed.
func policy(b *v1alpha1.Balancer) string {
	p := b.Spec.Policy
	switch {
	case p.PolicyName == v1alpha1.Priority && p.Priorities != nil:
		return "Targets are filled in order: " + strings.Join(p.Priorities.TargetOrder, ", ") + "."
	case p.PolicyName == v1alpha1.Proportional && p.Proportions != nil:
		var shares []string
		for _, t := range b.Spec.Targets {
			shares = append(shares, fmt.Sprintf("%s %d", t.Name, p.Proportions.TargetProportions[t.Name]))
		}
		return "Targets get replicas in proportion to their shares: " + strings.Join(shares, ", ") + "; the limits of targets take precedence."
	case p.PolicyName == v1alpha1.Tiers:
		var tiers []string
		for _, tier := range p.Tiers {
			tiers = append(tiers, strings.Join(tier.Targets, " and "))
		}
		return "Groups of targets are filled in order: " + strings.Join(tiers, ", then ") + "."
	}
	return "All targets get the same; the limits of targets take precedence."
}

// complain repeats the messages of conditions that report a problem.
func complain(a *Account, conditions []metav1.Condition, bad map[string]metav1.ConditionStatus) {
	said := map[string]bool{}
	for _, c := range conditions {
		if bad[c.Type] == c.Status && !said[c.Message] {
			a.addReason("%s (%s).", strings.TrimSuffix(c.Message, "."), c.Reason)
			said[c.Message] = true
		}
	}
}

// explainTarget describes what a target waits for.
func explainTarget(a *Account, f *v1alpha1.Fallback, t v1alpha1.TargetStatus, now time.Time) {
	switch {
	case t.Message != "":
		a.addReason("Target %s: %s.", t.Name, strings.TrimSuffix(t.Message, "."))
	case t.BlockedSince != nil:
		a.addReason("Target %s has been blocked since %s: %d of its replicas fail to start. Its share is %d; other targets run %d of it instead.",
			t.Name, formatPast(t.BlockedSince.Time, now), t.NotStarted, t.Base, t.Fallback)
		a.addNext("Target %s gets its share back once its new replicas have been ready for %s.", t.Name, plan.RecoveryDelay(f, t.Blocks))
	case t.UnstartedSince != nil && f != nil:
		if patience, ok := startup(f); ok {
			a.addNext("Target %s has had replicas that do not start since %s. It counts as blocked %s.", t.Name,
				formatPast(t.UnstartedSince.Time, now), formatFuture(t.UnstartedSince.Add(patience), now))
		}
	case t.Replicas != t.Desired:
		a.addNext("Target %s has %d replicas now and changes to %d step by step, as replicas become ready elsewhere.", t.Name, t.Replicas, t.Desired)
	}
}

// startup returns how long a replica may take to start.
func startup(f *v1alpha1.Fallback) (time.Duration, bool) {
	switch {
	case f.StartupTimeoutSeconds != nil:
		return time.Duration(*f.StartupTimeoutSeconds) * time.Second, true
	case f.StartupTimeout != nil:
		return f.StartupTimeout.Duration, true
	}
	return 0, false
}
