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
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

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
		See: []string{"docs/federation.md: how shares move", "docs/spec/federatedhorizontalpodautoscaler.md: all fields"},
	}
	for _, c := range f.Status.Clusters {
		a.addFact(c.Name, "%s", clusterText(c))
	}
	a.addReason("Each cluster's own autoscaler decides how many replicas it runs. This object only sets its limits, so that they add up to at most %d. Now they add up to at most %d.",
		f.Spec.MaxReplicas, f.Status.CountedReplicas)
	complain(&a, f.Status.Conditions, map[string]metav1.ConditionStatus{
		v1alpha1.ConditionReady: metav1.ConditionFalse, v1alpha1.ConditionBalanced: metav1.ConditionFalse, v1alpha1.ConditionLimited: metav1.ConditionTrue,
		v1alpha1.ConditionClustersUnreachable: metav1.ConditionTrue, v1alpha1.ConditionOverCommitted: metav1.ConditionTrue,
		v1alpha1.ConditionMinExceeded: metav1.ConditionTrue, v1alpha1.ConditionJoiningBlocked: metav1.ConditionTrue,
		v1alpha1.ConditionReplicasLeft: metav1.ConditionTrue,
	})
	for _, c := range f.Status.Clusters {
		explainCluster(&a, f.Spec, c, o.At)
	}
	if len(a.Next) == 0 {
		a.addNext("It is at rest: a share moves when a cluster runs its whole maximum or asks for more, when clusters join or leave, or when this object changes.")
	}
	return a, nil
}

func clusterText(c v1alpha1.ClusterStatus) string {
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
func explainCluster(a *Account, spec v1alpha1.FederatedHorizontalPodAutoscalerSpec, c v1alpha1.ClusterStatus, now time.Time) {
	rebalance, joining := v1alpha1.Rebalance{}, v1alpha1.Joining{}
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
	if c.NotReadySince != nil && c.State != v1alpha1.StateUnreachable { // the time of an outage does not count
		a.addNext("Cluster %s has lacked replicas that it requested since %s. It counts as stuck %s, and then other clusters get what it cannot use.",
			c.Name, formatPast(c.NotReadySince.Time, now), formatFuture(addSeconds(c.NotReadySince, rebalance.StartTimeoutSeconds, defaultStartTimeout), now))
	}
	if c.QuietSince != nil {
		a.addNext("Cluster %s has not been needed since %s. It leaves %s.", c.Name,
			formatPast(c.QuietSince.Time, now), formatFuture(addSeconds(c.QuietSince, joining.QuietSeconds, defaultQuiet), now))
	}
	if c.State == v1alpha1.StateUnreachable && c.LeftReplicas == 0 {
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
func replicasLeft(spec v1alpha1.FederatedHorizontalPodAutoscalerSpec, c v1alpha1.ClusterStatus) string {
	text := fmt.Sprintf("Cluster %s has no autoscaler, and %d replicas there count against maxReplicas.", c.Name, c.LeftReplicas)
	switch {
	case c.State == v1alpha1.StateUnreachable:
		return text + " It cannot be reached; if it is lost for good, list it in spec.unreachable.released."
	case c.State == v1alpha1.StateJoining || c.State == v1alpha1.Used:
		return text + " They belong to its share, because the cluster is used again."
	case c.State != v1alpha1.StateLeft:
		return fmt.Sprintf("%s spec.leavePolicy %s applies to them.", text, cmp.Or(spec.LeavePolicy, v1alpha1.LeaveKeep))
	}
	return text + " Scale the workload there to 0, delete it, or let another autoscaler scale it; or set spec.leavePolicy, select the cluster again, or list it in spec.unreachable.released."
}

// unreachable describes what happens to the share of an unreachable cluster.
func unreachable(u *v1alpha1.Unreachable, c v1alpha1.ClusterStatus, now time.Time) string {
	since := ""
	if c.UnreachableSince != nil {
		since = " since " + formatPast(c.UnreachableSince.Time, now)
	}
	text := fmt.Sprintf("Cluster %s is unreachable%s and continues on its own between %d and %d.", c.Name, since, c.ConfirmedMinReplicas, c.ConfirmedMaxReplicas)
	switch {
	case u != nil && slices.Contains(u.Released, c.Name):
		return text + " Other clusters get its share, because spec.unreachable.released lists it."
	case u != nil && u.Policy == v1alpha1.ReleaseAfter && c.UnreachableSince != nil:
		return text + " Its share is lent to other clusters " + formatFuture(addSeconds(c.UnreachableSince, u.AfterSeconds, 0), now) + "."
	}
	return text + " Its share is kept for it; if the cluster is lost for good, list it in spec.unreachable.released."
}
