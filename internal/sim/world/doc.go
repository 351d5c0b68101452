// SPDX-License-Identifier: Apache-2.0

// Package world contains what the storms of several controllers need around a [storm.World]: clients,
// builders of pools, and doubles of the components that are not under test. Only tests import it.
//
// A double is an [Actor]: it looks at everything that is stored, takes the next steps, and looks
// again when something was written or at a time that it knows. Nothing runs while nothing happens,
// so that months of virtual time are cheap:
//
//	p := world.NewPulse(w)
//	w.Start("scheduler", world.Actor{Pulse: p, Every: time.Second, Look: world.Scheduler{}.Look}.Run)
//
// The functions that create and change objects fail the spec on errors.
package world
