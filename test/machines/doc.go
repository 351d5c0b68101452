// SPDX-License-Identifier: Apache-2.0

// Package machines runs the real machines of a local cluster: process trees with a kubelet,
// containerd and runc, which run pods. It needs Linux and root.
//
// A machine is an init process with namespaces, a folder and a cgroup of its own. It ends with the
// process that started it. Nothing is reachable from outside: sockets in its folder lead to the API
// server, the registry and its kubelet.
package machines
