// SPDX-License-Identifier: Apache-2.0

package plan

// recreateMachines removes all old machines before it creates new ones.
func (p *Plan) recreateMachines(d *deployment) {
	d.protectFromScaleDown()
	waits := false
	for _, s := range d.old {
		waits = waits || s.Object.Spec.Replicas > 0 || len(s.machines) > 0
		d.resizeTo0(s)
	}
	switch {
	case waits:
	case d.newest == nil:
		p.createNewest(d)
	default:
		d.resize(d.newest, d.replicas())
		p.complete(d)
	}
}

func (d *deployment) resizeTo0(s *set) {
	if s.Object.Spec.Replicas > 0 {
		d.resize(s, 0)
	}
}
