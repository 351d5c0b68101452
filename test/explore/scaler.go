// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	nodegroupplan "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
)

// scalerSteps completes what an autoscaler has begun.
func (k *walk) scalerSteps() {
	if s := k.from.scaler; s.lowers {
		k.addFact("The autoscaler lowers replicas.", func(w *World) string {
			w.scaler = scaler{}
			w.replicas = s.to
			w.lowest = min(w.lowest, uint8(w.workload()))
			w.plan.outdated = w.plan.pending
			return ""
		})
	}
}

// scalerFaults adds what autoscalers may do: Gardener's lowers the priority of a machine and then
// replicas; ours, behind package nodegroup, names machines together with the replicas.
func (k *walk) scalerFaults() {
	if !k.Names || k.from.scaler.lowers || k.from.replicas == 0 {
		return
	}
	k.machines(func(m *machine) bool { return m.phase > pending && !m.leaving() && m.priority > 1 && !m.preserved }, func(i int) {
		k.addFault("An autoscaler gives "+name(i)+" priority 1.", func(w *World) {
			w.machines[i].priority = 1
			w.machines[i].newVersion()
			w.scaler = scaler{lowers: true, to: w.replicas - 1}
		})
		next := k.from
		if next.nameMachine(i) {
			k.changeDeployment("An autoscaler names "+name(i)+" for deletion.", func(w *World) {
				w.nameMachine(i)
			})
		}
	})
}

// nameMachine names a machine for deletion, as the node group does, and reports whether it accepts
// that.
func (w *World) nameMachine(i int) bool {
	s := w.snapshot()
	g, err := nodegroupplan.NewGroup(s.Deployment)
	if err != nil {
		return false
	}
	members := make([]nodegroupplan.Member, len(s.Machines))
	for k, m := range s.Machines {
		members[k] = nodegroupplan.Member{Machine: m}
	}
	c, err := nodegroupplan.NewRemoval(g, members, s.Rollout.Spread, map[string]bool{name(i): true}, now)
	if err != nil || len(c.Names) == 0 {
		return false
	}
	before := w.visible()
	d := *s.Deployment
	if text, set := c.Annotations[v1alpha1.AppliedExcessAnnotation]; set {
		d.Annotations[v1alpha1.AppliedExcessAnnotation] = text
		if w.record, err = recordOf(&d); err != nil {
			panic(err) // the node group writes only what can be parsed
		}
	}
	w.replicas = uint8(c.Replicas)
	w.machines[i].named = true
	if w.visible() >= before {
		for j := range w.machines {
			w.machines[j].due = w.machines[j].due || w.machines[j].named
		}
	}
	return true
}
