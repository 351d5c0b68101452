// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// recheckPods is how often a plan is made again while a surplus stays because of its pods. Budgets
// change often, and only few changes matter.
const recheckPods = time.Minute

// Evictions is what decides which machines of a surplus can be drained.
type Evictions struct {
	// Budgets are the PodDisruptionBudgets of the namespaces of Pods; BudgetsUnknown is why they are
	// not known, if they are not.
	Budgets        []pool.Budget
	BudgetsUnknown string
	// Pods are those on each machine that serves, by its name.
	Pods map[string][]*corev1.Pod
	// Expected are pods of other machines that are about to be evicted.
	Expected []*corev1.Pod
}

// NeedsEvictions reports whether more machines serve than replicas, or did, and patience with them has
// ended, so that one may have to be drained.
func (v View) NeedsEvictions() bool {
	since := v.Memory.SurplusSince
	if since.IsZero() && v.Settings.SurplusPatience > 0 || v.Now.Sub(since) < v.Settings.SurplusPatience {
		return false
	}
	serving := 0
	for _, m := range v.Machines {
		if !m.Reserve() && !m.Leaving() && !pool.Unhealthy(m.Phase()) {
			serving++
		}
	}
	return serving > v.Memory.Workload(v.Deployment) || !since.IsZero()
}

// addEvictions adds to the view of the rule which machines can be drained. While that is not read, none
// can.
// Without a target cluster, there are no pods.
func (v View) addEvictions(rule *reserve.View) {
	e := v.Evictions
	if v.Targetless {
		return
	}
	if e == nil {
		for i := range rule.Machines {
			rule.Machines[i].Pinned = "its pods have yet to be read"
		}
		return
	}
	evictor := pool.NewEvictor(v.Settings.Eviction, e.Budgets, e.BudgetsUnknown, v.Now)
	evictor.Expect(e.Expected...)
	for i := range rule.Machines {
		m := &rule.Machines[i]
		m.Pinned = evictor.WhyNot(e.Pods[m.Name]...)
		if v.Machines[i].Unseen {
			m.Pinned = "its Node is not seen, and so are its pods"
		}
	}
	rule.Budgets = evictor.Shared(e.Pods)
}

// recheck returns the time until a surplus is looked at again that stays although patience has ended;
// 0 if there is none.
func recheck(v View, rule reserve.Plan) time.Duration {
	if rule.SurplusSince.IsZero() || v.Now.Sub(rule.SurplusSince) < v.Settings.SurplusPatience {
		return 0
	}
	return recheckPods
}
