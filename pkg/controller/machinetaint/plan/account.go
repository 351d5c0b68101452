// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// desiredAccounting returns where the reserve is to be counted.
func (v View) desiredAccounting() (pool.Accounting, error) {
	if text, set := v.Deployment.Annotations[v1alpha1.AccountingAnnotation]; set {
		return v1alpha1.ParseAccounting(text)
	}
	if v.Accounting == "" {
		return v.presentAccounting(), nil
	}
	return v.Accounting, nil
}

// awaitsAccounting reports whether a MachineDeployment without an applied excess waits until it is
// known where its reserve is to be counted; then all MachineDeployments are synced. Before, a
// reserve would be created beyond replicas, and one that replicas include would become workload's.
func awaitsAccounting(v View) bool {
	_, set := v.Deployment.Annotations[v1alpha1.AccountingAnnotation]
	_, applied := v.Memory.withKnownExcess(v.Deployment).Annotations[v1alpha1.AppliedExcessAnnotation]
	return v.Settings.Accounting != nil && v.Accounting == "" && !set && !applied
}

// presentAccounting returns where the reserve is counted now. If replicas include none of it, only
// settings show that: the annotation, or else the default. Replicas still include none of it while
// the annotation cannot be parsed.
func (v View) presentAccounting() pool.Accounting {
	if v.Memory.AppliedTo(v.Deployment).Included() {
		return pool.Inclusive
	}
	text, set := v.Deployment.Annotations[v1alpha1.AccountingAnnotation]
	if !set {
		return cmp.Or(v.Accounting, pool.Additive)
	}
	own, _ := v1alpha1.ParseAccounting(text)
	return cmp.Or(own, pool.Additive)
}

// recoveredExcess returns the applied excess if replicas include reserve machines, and both the
// record of that and the memory of it are lost: as many machines in reserve as replicas leave room
// for beside those that serve, up to what is desired. While that cannot be read, the marks of
// machines alone decide. It is empty if nothing is lost, or no reserve is desired.
func recoveredExcess(v View, w desired) string {
	d := v.Deployment
	if _, there := d.Annotations[v1alpha1.AppliedExcessAnnotation]; there || v.Memory.UID == d.UID || v.Rollout || w.accounting != pool.Inclusive {
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
	n := max(0, min(int(d.Spec.Replicas)-serving, held))
	if w.problem == nil {
		n = min(n, w.Wish)
	}
	return reserve.Applied{Excess: n, Counted: n, Max: w.Max}.String(int(d.Spec.Replicas))
}

// withNumbers returns the MachineDeployment with the numbers that the rule decided on. If replicas
// include reserve machines, they are recorded, also after a client raised them: a later reduction
// is measured from there.
func withNumbers(v View, view reserve.View, rule reserve.Plan) *v1alpha1.MachineDeployment {
	after := *v.Memory.withKnownExcess(v.Deployment)
	if rule.Replicas != view.Replicas || rule.Applied != view.Applied || rule.Applied.Counted > 0 {
		pool.Apply(&after, pool.ClampInt32(rule.Replicas), rule.Applied)
	}
	if rule.Applied.Excess == 0 {
		// Others record that they have taken the whole reserve.
		after.Annotations = maps.Clone(after.Annotations)
		delete(after.Annotations, v1alpha1.AppliedExcessAnnotation)
	}
	return &after
}
