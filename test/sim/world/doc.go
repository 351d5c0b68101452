// SPDX-License-Identifier: Apache-2.0

// Package world contains what the storms of several controllers need around a [storm.World]: clients,
// builders of pools, and doubles of the components that are not under test. Only tests import it.
//
// A double is an [Actor]: it reads everything that is stored, takes the next steps, and does so
// again when something was written or at a time that it knows. Nothing runs while nothing happens,
// so that months of virtual time are cheap:
//
//	waker := world.NewWaker(w)
//	w.Start("scheduler", world.Actor{Waker: waker, Delay: time.Second, Reconcile: world.Scheduler{}.Reconcile}.Run)
//
// The functions that create and change objects fail the spec on errors.
package world
