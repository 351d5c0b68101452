// SPDX-License-Identifier: Apache-2.0

package plan

// recreateMachines removes all old machines before it creates new ones.
func (p *Plan) recreateMachines(d *deployment) {
	d.protectFromScaleDown()
	waits := false
	for _, s := range d.old {
		waits = waits || s.Object.Spec.Replicas > 0 || len(s.machines) > 0
		if s.Object.Spec.Replicas > 0 {
			d.resize(s, 0)
		}
	}
	switch {
	case waits && d.newest == nil:
	case waits:
		d.resize(d.newest, min(d.newest.Object.Spec.Replicas, d.replicas()))
	case d.newest == nil:
		p.createNewest(d)
	default:
		d.resize(d.newest, d.replicas())
		p.complete(d)
	}
}
