// SPDX-License-Identifier: Apache-2.0

// Package preparation has images pulled on machines in reserve, so that pods start at once when a
// machine is released.
//
// For each machine and set of images, one pod of the namespace that asked runs on the Node, with
// the images as volumes, which the kubelet only pulls. [plan.New] decides; [States] returns which
// machines are prepared.
package preparation
