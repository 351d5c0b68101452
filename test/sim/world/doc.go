// SPDX-License-Identifier: Apache-2.0

// Package world contains what the storms of several controllers need around a [storm.World]:
// clients, builders of pools, and doubles of other components.
//
// A double is an [Actor]: it reads everything that is stored and takes the next steps, after a
// write or at a time that it knows.
package world
