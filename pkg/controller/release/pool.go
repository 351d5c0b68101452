// SPDX-License-Identifier: Apache-2.0

package release

import (
	"time"

	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// readPool reads what a decision needs to know of a MachineDeployment.
func (c *Controller) readPool(d *v1alpha1.MachineDeployment, bounds v1alpha1.Bounds, source pool.Source, now time.Time) plan.Pool {
	s := pool.ReadReserve(d, source, now)
	p := plan.Pool{
		Key:      d.Namespace + "/" + d.Name,
		Basis:    plan.BasisOf(d),
		Replicas: s.Requested, Max: int(bounds.Max), Reserve: reserve.ViewOf(s), NodeOf: make(map[string]string, len(s.Machines)), Sample: pool.SampleNode(s),
		WorkerPool: pool.NameOf(d, c.settings.PoolLabels...), Taints: d.Spec.Template.Spec.NodeTemplateSpec.Spec.Taints,
	}
	if _, valid := pool.AppliedReplicas(d); valid {
		p.Applied = ptr.To(pool.Workload(d, d.Spec.Replicas))
	}
	if c.refused.isAside(p.Basis) {
		p.Max = min(p.Max, p.Replicas)
	}
	p.Inclusive = s.Applied.Counted+s.Applied.Absorbed > 0
	c.claimed.Record(d, now)
	c.claimed.Complete(d, p.Reserve)
	for _, m := range p.Reserve.Machines {
		if m.Reserve && m.Claimed {
			p.Claimed = append(p.Claimed, m.Name)
		}
	}
	for _, m := range s.Machines {
		if m.Node != nil {
			p.NodeOf[m.Object.Name] = m.Node.Name
		}
	}
	return p
}
