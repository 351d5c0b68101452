// SPDX-License-Identifier: Apache-2.0

package reserve

// ServesOnCreation decides whether a machine that is about to be created serves (law 1): it does if
// otherwise fewer than R machines could serve; else it is in reserve. inFlight is the number of
// creations that the view does not show yet, including those whose outcome is unknown.
//
// A healthy reserve machine counts as one that could serve, because it is released before the new
// machine has booted. The new machine is then in reserve from the start, and does not need to be
// moved there later. One that is dedicated does not, unless it is claimed.
func ServesOnCreation(v View, inFlight int) bool {
	able := inFlight
	owners := Dedicate(v.Machines, v.Dedicated)
	for i, m := range v.Machines {
		victim := m.Reserve && m.Priority <= PriorityVictim
		if !m.Leaving() && !m.Unhealthy() && !victim && (owners[i] == "" || m.Claimed) {
			able++
		}
	}
	return able < v.Replicas
}
