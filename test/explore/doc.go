// SPDX-License-Identifier: Apache-2.0

// Package explore searches every interleaving of the plans that ship with everything around them,
// up to a bound.
//
// In a [Search], a state is a small value, and each step of any [Actor] leads to another one. Every
// step keeps the invariants. From every state, steps that are not faults end with the requested
// numbers of machines, in any order. [Reserve] models one MachineDeployment; [Wishes], [Raises],
// [Removals], [Moves] and [Distribution] model what is around it.
package explore
