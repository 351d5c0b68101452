// SPDX-License-Identifier: Apache-2.0

package federatedhpa

// Placing is one write of a workload.
type Placing struct {
	Cluster      string
	Deed         Deed
	Version, UID string
}

// place sees to workloads, if that is asked for: there where an autoscaler is or comes, and gone after it where it went.
// It reports whether anything is left to do.
func (p *Plan) place(r rules) bool {
	if !r.template {
		return false
	}
	before := len(p.Placings)
	for _, s := range p.seats() {
		w := s.cluster.Workload
		if !s.cluster.Reachable || !w.Known || s.cluster.Fault != (Hold{}) {
			continue
		}
		o := Placing{Cluster: s.Name, Version: w.Version, UID: w.UID}
		wanted := s.role == used || s.role == joining
		switch {
		case wanted && !w.Exists:
			o.Deed = Create
		case wanted && w.Ours && w.Drifted:
			o.Deed = Change
		case !wanted && w.Exists && w.Ours && s.cluster.Absent && s.entry.Outstanding == nil:
			o.Deed = Remove
		default:
			continue
		}
		p.Placings = append(p.Placings, o)
	}
	return len(p.Placings) > before
}
