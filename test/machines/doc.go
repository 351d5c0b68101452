// SPDX-License-Identifier: Apache-2.0

// Package machines runs the machines of a local cluster whose MachineClass says that they are real: each is a
// process tree with a kubelet, containerd and runc, which runs pods. It needs Linux, and root.
//
// A machine is an init process with mount, network, pid, uts and ipc namespaces of its own, a folder that is its
// /var and /run, and a cgroup. It ends with its init, and that ends with the process that has started it,
// however that ends: a pipe between the two closes. Then nothing is left but empty cgroups, which a small
// process removes that outlives this one for that.
//
//	machine-controller            this package                      inside a machine
//	  records, faults     --->    Fleet: boots what is due,  ---->  init: mounts, network
//	  a record is deleted --->    ends what has no record           containerd, kubelet ---> Node
//
// Nothing is reachable from outside. In a machine's network are its pods, and listeners on loopback that lead to
// the API server and to the registry, by way of sockets in its folder. The API server reaches kubelets through a
// socket, too (see [Fleet.ServeConnect]).
package machines
