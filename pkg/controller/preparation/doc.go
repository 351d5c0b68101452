// SPDX-License-Identifier: Apache-2.0

// Package preparation prepares machines in reserve: it has the images pulled there that workload will use,
// so that pods start at once when a machine is released.
//
// For each machine and each set of images, one pod of the namespace that asked runs on the Node. Its only
// container waits. The images are volumes of the pod, so that the kubelet pulls them, keeps them as long as the
// pod is there, and runs nothing of them. The pod belongs to the Node, needs no resources, and is not workload.
// It is deleted when its machine leaves the reserve, and goes with its Node.
//
// [plan.New] decides which pods are created and deleted. [States] tells other controllers which machines
// are prepared. Nothing waits for that: an image that cannot be had delays no release.
package preparation
