// SPDX-License-Identifier: Apache-2.0

package reserve

// ServesOnCreation decides whether a machine that is about to be created serves (law 1): it does if
// otherwise fewer than replicas machines could serve; else it is in reserve. inFlight is the number of
// creations that machines does not show yet, including those whose outcome is unknown.
//
// A healthy reserve machine counts as one that could serve, because it is released before the new
// machine has booted. The new machine is then in reserve from the start, and does not need to be moved
// there later.
func ServesOnCreation(machines []Machine, inFlight, replicas int) bool {
	able := inFlight
	for _, m := range machines {
		victim := m.Reserve && m.Priority <= PriorityVictim
		if !m.Leaving() && !m.Unhealthy() && !victim {
			able++
		}
	}
	return able < replicas
}
