// SPDX-License-Identifier: Apache-2.0

package reserve

// BornServing decides what a machine that is about to be created will be (law 1): it serves if otherwise fewer than
// replicas machines could, else it is born in reserve. inFlight is how many creates have been decided that machines
// does not show yet; a create whose outcome is unknown counts.
//
// A healthy reserve machine counts as one that could serve, because it is released before the new one boots. So the
// new one is in reserve from birth instead of being put there later.
func BornServing(machines []Machine, inFlight, replicas int) bool {
	able := inFlight
	for _, m := range machines {
		victim := m.Reserve && m.Priority <= PriorityVictim
		if !m.Leaving() && !m.Sick() && !victim {
			able++
		}
	}
	return able < replicas
}
