// SPDX-License-Identifier: Apache-2.0

// Package localcluster runs a real Kubernetes control plane on this machine: etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, with kwok instead of kubelets. It supports only
// Linux.
//
// The binaries come from hack/localcluster and are built once into .local/bin. Each cluster has a
// name. Its data, keys, ports and logs are in .local/clusters/<name>, so several clusters run side
// by side. Everything listens only on 127.0.0.1, uses TLS (except kwok's health endpoint), and has
// the same identity as in a real cluster, with RBAC.
//
// An attached cluster belongs to the process that started it and ends with it, even if that is
// killed with -9. A detached cluster outlives its starter. Any process can [Open] it, and starting
// it again joins it.
//
// # Nodes
//
// There are no kubelets. kwok manages Nodes with the annotation kwok.x-k8s.io/node=fake: it renews
// the Lease in kube-node-lease, makes the Node Ready (existing capacity, allocatable and addresses
// stay; otherwise it gets 8 cores), runs pods bound to it at once, completes pods of Jobs, and
// removes deleted pods. If a Node loses the annotation, kwok stops at once: after the
// node-monitor-grace-period of kube-controller-manager (50 s, see [Options.ExtraArgs]), its Ready
// condition becomes Unknown and stays so. When the Node gets the annotation again, it becomes Ready
// again.
//
// # Failures
//
// A [Process] can be killed, paused and restarted. A [Link] disconnects one client from the API
// server while all others still reach it. [Cluster.Backup] and [Cluster.Restore] return etcd to an
// earlier state, including resourceVersions.
//
// # Differences from a production cluster
//
// There is no leader election, so a restarted component works at once. Without
// kube-controller-manager, service accounts would not be created, so the ServiceAccount admission
// plugin is off. There is no network, DNS or kube-proxy. The Service "kubernetes" has no endpoints,
// because these must not be loopback addresses.
package localcluster
