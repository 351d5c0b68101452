// SPDX-License-Identifier: Apache-2.0

// Package explore searches every interleaving of the controllers' plans with everything around
// them, up to a bound.
//
// In a [Search], each step of any [Actor] leads from one state to another, and keeps the
// invariants. From every state, steps that are not faults end with the requested numbers of
// machines, in any order. [Reserve], [Wishes], [Raises], [Removals], [Moves] and [Distribution] are
// the models.
package explore
