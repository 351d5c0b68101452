// SPDX-License-Identifier: Apache-2.0

// Package localcluster runs a real Kubernetes control plane on this machine, which must run Linux,
// with kwok instead of kubelets.
//
// Clusters listen only on 127.0.0.1, and have the identities and RBAC of real ones. An attached
// cluster ends with the process that started it; any process can [Open] a detached one. kwok
// manages Nodes with the annotation kwok.x-k8s.io/node=fake. There is no network, DNS or
// kube-proxy.
package localcluster
