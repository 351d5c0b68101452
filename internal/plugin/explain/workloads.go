// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plural"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancer "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
)

// Balancer explains a Balancer.
func Balancer(o overview.Objects, name string) (Account, error) {
	b, err := findObject(o.Balancers, "balancer", name, o)
	if err != nil {
		return Account{}, err
	}
	shown := overview.New(overview.Objects{At: o.At, Balancers: []*balancer.Balancer{b}}).Balancers[0]
	a := Account{
		Title: fmt.Sprintf("Balancer %s: %s, %d ready", name, plural.Of(shown.Replicas, "replica"), b.Status.ReadyReplicas),
		See:   []string{"docs/balancer.md: what it does", "docs/distribute.md: how a number is split", "docs/spec/balancer.md: rules, reasons, and what to do"},
	}
	for _, t := range shown.Targets {
		a.addFact(t.Name, "%s", targetText(t))
	}
	a.addReason("%s", policy(b))
	if b.Status.ShareErrorPercent > 0 {
		a.addReason("Whole replicas cannot match every share exactly: the largest deviation is %d%% of all replicas.", b.Status.ShareErrorPercent)
	}
	complain(&a, b.Status.Conditions, map[string]metav1.ConditionStatus{
		balancer.ConditionReady: metav1.ConditionFalse, balancer.ConditionTargetsResolved: metav1.ConditionFalse,
		balancer.ConditionWithinLimits: metav1.ConditionFalse, balancer.ConditionFallbackActive: metav1.ConditionTrue,
		balancer.ConditionBalanced: metav1.ConditionFalse,
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
func policy(b *balancer.Balancer) string {
	p := b.Spec.Policy
	switch {
	case p.PolicyName == balancer.Priority && p.Priorities != nil:
		return "Targets are filled in order: " + strings.Join(p.Priorities.TargetOrder, ", ") + "."
	case p.PolicyName == balancer.Proportional && p.Proportions != nil:
		var shares []string
		for _, t := range b.Spec.Targets {
			shares = append(shares, fmt.Sprintf("%s %d", t.Name, p.Proportions.TargetProportions[t.Name]))
		}
		return "Targets get replicas in proportion to their shares: " + strings.Join(shares, ", ") + "; the limits of targets take precedence."
	case p.PolicyName == balancer.Tiers:
		var tiers []string
		for _, tier := range p.Tiers {
			tiers = append(tiers, strings.Join(tier.Targets, " and "))
		}
		return "Groups of targets are filled in order: " + strings.Join(tiers, ", then ") + "."
	}
	return "All targets get the same number; the limits of targets take precedence."
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
func explainTarget(a *Account, f *balancer.Fallback, t balancer.TargetStatus, now time.Time) {
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
func startup(f *balancer.Fallback) (time.Duration, bool) {
	switch {
	case f.StartupTimeoutSeconds != nil:
		return time.Duration(*f.StartupTimeoutSeconds) * time.Second, true
	case f.StartupTimeout != nil:
		return f.StartupTimeout.Duration, true
	}
	return 0, false
}

// Defaults of a FederatedHorizontalPodAutoscaler, in seconds.
const (
	defaultCooldown     = 120
	defaultStartTimeout = 300
	defaultQuiet        = 600
)

// Federated explains a FederatedHorizontalPodAutoscaler.
func Federated(o overview.Objects, name string) (Account, error) {
	f, err := findObject(o.Federated, "fhpa", name, o)
	if err != nil {
		return Account{}, err
	}
	a := Account{
		Title: fmt.Sprintf("FederatedHorizontalPodAutoscaler %s: %d replicas, %d wanted, at most %d", name,
			f.Status.CurrentReplicas, f.Status.DesiredReplicas, f.Spec.MaxReplicas),
		See: []string{"docs/federation.md: how shares move", "docs/spec/federatedhorizontalpodautoscaler.md: rules, reasons, and what to do"},
	}
	for _, c := range f.Status.Clusters {
		a.addFact(c.Name, "%s", clusterText(c))
	}
	a.addReason("Each cluster's own autoscaler decides how many replicas it runs. This object only sets its limits, so that they add up to at most %d. Now they add up to at most %d.",
		f.Spec.MaxReplicas, f.Status.CountedReplicas)
	complain(&a, f.Status.Conditions, map[string]metav1.ConditionStatus{
		autoscaling.ConditionReady: metav1.ConditionFalse, autoscaling.ConditionBalanced: metav1.ConditionFalse, autoscaling.ConditionLimited: metav1.ConditionTrue,
		autoscaling.ConditionClustersUnreachable: metav1.ConditionTrue, autoscaling.ConditionOverCommitted: metav1.ConditionTrue,
		autoscaling.ConditionMinExceeded: metav1.ConditionTrue, autoscaling.ConditionJoiningBlocked: metav1.ConditionTrue,
		autoscaling.ConditionReplicasLeft: metav1.ConditionTrue,
	})
	for _, c := range f.Status.Clusters {
		explainCluster(&a, f.Spec, c, o.At)
	}
	if len(a.Next) == 0 {
		a.addNext("It is at rest: shares move when a cluster runs its whole maximum or asks for more, when clusters join or leave, or when this object changes.")
	}
	return a, nil
}

func clusterText(c autoscaling.ClusterStatus) string {
	text := fmt.Sprintf("%s: share %d..%d, runs %d, %d ready, wants %d", cmp.Or(string(c.State), "not seen yet"),
		c.ConfirmedMinReplicas, c.ConfirmedMaxReplicas, c.CurrentReplicas, c.ReadyReplicas, max(c.DesiredReplicas, c.Demand))
	if c.LeftReplicas > 0 {
		text += fmt.Sprintf(", left %d replicas without an autoscaler", c.LeftReplicas)
	}
	if c.LimitedBy != "" {
		text += ", limited by its " + strings.ToLower(string(c.LimitedBy))
	}
	return text
}

// explainCluster describes what a cluster waits for, and until when.
func explainCluster(a *Account, spec autoscaling.FederatedHorizontalPodAutoscalerSpec, c autoscaling.ClusterStatus, now time.Time) {
	rebalance, joining := autoscaling.Rebalance{}, autoscaling.Joining{}
	if spec.Rebalance != nil {
		rebalance = *spec.Rebalance
	}
	if spec.Joining != nil {
		joining = *spec.Joining
	}
	if c.Message != "" {
		a.addReason("Cluster %s: %s.", c.Name, strings.TrimSuffix(c.Message, "."))
	}
	if c.MinReplicas != c.ConfirmedMinReplicas || c.MaxReplicas != c.ConfirmedMaxReplicas || c.Outstanding != nil {
		a.addNext("Cluster %s should have %d..%d and has confirmed %d..%d: the new share counts once the cluster confirms it.",
			c.Name, c.MinReplicas, c.MaxReplicas, c.ConfirmedMinReplicas, c.ConfirmedMaxReplicas)
	}
	if c.LeftReplicas > 0 {
		a.addNext("%s", replicasLeft(spec, c))
	} else if at := addSeconds(c.MovedAt, rebalance.CooldownSeconds, defaultCooldown); at.After(now) {
		a.addNext("Cluster %s keeps its whole share until its cooldown ends %s.", c.Name, formatFuture(at, now))
	}
	if c.NotReadySince != nil && c.State != autoscaling.StateUnreachable { // the time of an outage does not count
		a.addNext("Cluster %s has replicas that have not become ready since %s. It counts as stuck %s, and then other clusters get what it cannot use.",
			c.Name, formatPast(c.NotReadySince.Time, now), formatFuture(addSeconds(c.NotReadySince, rebalance.StartTimeoutSeconds, defaultStartTimeout), now))
	}
	if c.QuietSince != nil {
		a.addNext("Cluster %s has not been needed since %s, and leaves %s.", c.Name,
			formatPast(c.QuietSince.Time, now), formatFuture(addSeconds(c.QuietSince, joining.QuietSeconds, defaultQuiet), now))
	}
	if c.State == autoscaling.StateUnreachable && c.LeftReplicas == 0 {
		a.addNext("%s", unreachable(spec.Unreachable, c, now))
	}
}

// addSeconds adds seconds to a time. It returns the zero time if there is none.
func addSeconds(at *metav1.Time, seconds *int32, otherwise int32) time.Time {
	if at == nil {
		return time.Time{}
	}
	if seconds == nil {
		seconds = &otherwise
	}
	return at.Add(time.Duration(*seconds) * time.Second)
}

// replicasLeft describes what happens to replicas that run without an autoscaler.
func replicasLeft(spec autoscaling.FederatedHorizontalPodAutoscalerSpec, c autoscaling.ClusterStatus) string {
	text := fmt.Sprintf("Cluster %s has no autoscaler, and %d replicas there count against maxReplicas.", c.Name, c.LeftReplicas)
	switch {
	case c.State == autoscaling.StateUnreachable:
		return text + " It cannot be reached; if it is lost for good, list it in spec.unreachable.released."
	case c.State == autoscaling.StateJoining || c.State == autoscaling.Used:
		return text + " They belong to its share, because the cluster is used again."
	case c.State != autoscaling.StateLeft:
		return fmt.Sprintf("%s spec.leavePolicy %s applies to them.", text, cmp.Or(spec.LeavePolicy, autoscaling.LeaveKeep))
	}
	return text + " Scale the workload there to 0, delete it, or let another autoscaler scale it; or set spec.leavePolicy, select the cluster again, or list it in spec.unreachable.released."
}

// unreachable describes what happens to the share of an unreachable cluster.
func unreachable(u *autoscaling.Unreachable, c autoscaling.ClusterStatus, now time.Time) string {
	since := ""
	if c.UnreachableSince != nil {
		since = " since " + formatPast(c.UnreachableSince.Time, now)
	}
	text := fmt.Sprintf("Cluster %s is unreachable%s and continues on its own between %d and %d.", c.Name, since, c.ConfirmedMinReplicas, c.ConfirmedMaxReplicas)
	switch {
	case u != nil && slices.Contains(u.Released, c.Name):
		return text + " Other clusters get its share, because spec.unreachable.released lists it."
	case u != nil && u.Policy == autoscaling.ReleaseAfter && c.UnreachableSince != nil:
		return text + " Its share is lent to other clusters " + formatFuture(addSeconds(c.UnreachableSince, u.AfterSeconds, 0), now) + "."
	}
	return text + " Its share is kept for it; if the cluster is lost for good, list it in spec.unreachable.released."
}
