// SPDX-License-Identifier: Apache-2.0

// Package localcluster runs a real Kubernetes control plane on this machine: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, and kwok in the place of kubelets. Linux only.
//
// The binaries come from hack/localcluster and are built once into .local/bin. A cluster has a name; what it keeps
// (data, keys, ports, logs) is in .local/clusters/<name>, so several run side by side. Everything listens on 127.0.0.1
// only, speaks TLS (but for kwok's health), and has the identity it has in a real cluster: RBAC is on.
//
// An attached cluster belongs to the process that started it and dies with it, even when that is killed with -9.
// A detached one outlives its starter; any process may [Open] it, and starting it again joins it.
//
// # Nodes
//
// No kubelet runs. A Node with the annotation kwok.x-k8s.io/node=fake is taken over by kwok: its lease in
// kube-node-lease is renewed, it is made Ready if it is not (capacity, allocatable and addresses that it has are kept,
// otherwise it gets 8 cores), pods bound to it run at once, pods of Jobs complete, deleted pods go. A node that loses
// the annotation is left alone at once, lease and pods: after the node-monitor-grace-period of
// kube-controller-manager (50 s, see [Options.ExtraArgs]) its Ready condition is Unknown and stays so.
// A node that gets the annotation again becomes Ready again.
//
// # Failures
//
// A [Process] can be killed, paused and started again. A [Link] cuts one client off from the API server while all others reach it.
// [Cluster.Backup] and [Cluster.Restore] bring etcd back to an earlier state, resourceVersions included.
//
// # Differences from a production cluster
//
// No leader election, so that a restarted component works at once. Without kube-controller-manager nobody makes service
// accounts, so the ServiceAccount admission plugin is off. No network, no DNS, no kube-proxy. The Service "kubernetes"
// has no endpoints, since those may not be loopback addresses.
package localcluster
