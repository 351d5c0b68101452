// SPDX-License-Identifier: Apache-2.0

// Package e2e runs Gardener's own code against our processes, on two control planes of this
// machine: the seed, which holds the Machines, and the Shoot, where they become Nodes. Not real
// are:
//
//   - The kubelet of the seed: it runs a Deployment's container as a process, with other
//     kubeconfigs and ports.
//   - gardener-resource-manager: it applies the ManagedResource once, and issues tokens.
//   - The provider: mostly the virtual one, whose providerSpec replaces what provider-local writes.
//     A migration copies its records to the other seed.
//   - The kubelets of machines, which are kwok. The actuator sees no Pods of provider-local.
//     gardener-node-agent reports in-place updates as done at once.
//   - The pods of the extension and the admission component: they are processes with the rights of
//     their charts.
//   - gardenlet's order of writes, and gardener-apiserver: Shoots are objects of a CRD.
//   - Gardener's fork of cluster-autoscaler, which cannot be imported: see the type fork.
package e2e
