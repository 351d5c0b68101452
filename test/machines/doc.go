// SPDX-License-Identifier: Apache-2.0

// Package machines runs the real machines of a local cluster: process trees with a kubelet,
// containerd and runc, which run pods. It needs Linux and root.
//
// A machine has namespaces, a folder and a cgroup of its own, cannot be reached from outside, and
// ends with the process that started it.
package machines
