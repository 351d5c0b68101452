// SPDX-License-Identifier: Apache-2.0

package machinetaint

import (
	"cmp"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// forceDeletion is the label by which Gardener has machines deleted without a drain, before a cluster hibernates or is deleted.
const forceDeletion = "force-deletion"

// accounting is where the reserve of a MachineDeployment is counted by default, empty to leave it where it is.
func (s Settings) accounting(d *v1alpha1.MachineDeployment) pool.Accounting {
	if s.Accounting == nil {
		return ""
	}
	return s.Accounting(d)
}

// accounting is where the reserve is to be counted.
func (v View) accounting() (pool.Accounting, error) {
	if text, set := v.Deployment.Annotations[v1alpha1.AccountingAnnotation]; set {
		return v1alpha1.ParseAccounting(text)
	}
	if v.Accounting == "" {
		return v.counted(), nil
	}
	return v.Accounting, nil
}

// counted is where the reserve is counted now. Where that cannot be told, because none is, the default counts.
func (v View) counted() pool.Accounting {
	if a := v.Memory.applied(v.Deployment); a.Counted+a.Absorbed > 0 {
		return pool.Inclusive
	}
	return cmp.Or(v.Accounting, pool.Additive)
}

// asleep reports whether the cluster hibernates, so that nothing in the namespace has replicas, or is being deleted, so that all machines
// carry the label for that. Where replicas include the reserve, it goes, too.
func (c *Controller) asleep(d *v1alpha1.MachineDeployment, machines []pool.Machine) bool {
	forced := len(machines) > 0
	for _, m := range machines {
		forced = forced && m.Object.Labels[forceDeletion] == "True"
	}
	if forced || d.Spec.Replicas > 0 {
		return forced
	}
	for _, item := range c.stores.deployments.List() {
		if other, ok := item.(*v1alpha1.MachineDeployment); ok && other.Namespace == d.Namespace && other.Spec.Replicas > 0 {
			return false
		}
	}
	return true
}

// recovered is the applied excess where replicas include reserve machines and the record of that is lost, and so is the memory of it:
// as many machines in reserve as replicas have room for beside those that serve. It is empty where nothing is lost.
func recovered(v View, w wish) string {
	d := v.Deployment
	if _, there := d.Annotations[v1alpha1.AppliedExcessAnnotation]; there || v.Memory.UID == d.UID || v.Rollout || w.Wish == 0 || w.accounting != pool.Inclusive {
		return ""
	}
	serving, held := 0, 0
	for _, m := range v.Machines {
		switch {
		case m.Leaving():
		case !m.Reserve():
			serving++
		case m.Registered():
			held++
		}
	}
	n := max(0, min(int(d.Spec.Replicas)-serving, held, w.Wish))
	return reserve.Applied{Excess: n, Counted: n, Max: w.Max}.String(int(d.Spec.Replicas))
}

// laid is the MachineDeployment with the numbers that the rule decided on. Where replicas include reserve machines, the record says of how
// many replicas, also after a client raised them: a later reduction is measured from there.
func laid(v View, view reserve.View, rule reserve.Plan) *v1alpha1.MachineDeployment {
	after := *v.Memory.known(v.Deployment)
	if rule.Replicas != view.Replicas || rule.Applied != view.Applied || rule.Applied.Counted > 0 {
		pool.Apply(&after, small(rule.Replicas), rule.Applied)
	}
	return &after
}
