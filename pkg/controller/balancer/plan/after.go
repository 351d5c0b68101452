// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"

// Ask is one write of a workload's scale.
type Ask struct {
	// Target is the target's name in the Balancer.
	Target   string
	Object   Object
	From, To int64
}

// After returns the Balancer as it is after a plan, and the scales that the plan writes.
func (v View) After(p Plan) (*v1alpha1.Balancer, []Ask) {
	var o Outcome
	var asks []Ask
	for i, s := range p.Shares {
		o = append(o, s.Current)
		if s.Moving() && p.Stop == (Hold{}) && !v.Balancer.Spec.Paused {
			o[i] = s.Next
			asks = append(asks, Ask{s.Name, v.Targets[i].Object, s.Current, s.Next})
		}
	}
	b := v.Balancer.DeepCopy()
	b.Status = NewStatus(v, p, o)
	return b, asks
}
