// SPDX-License-Identifier: Apache-2.0

// Package e2e runs Gardener's own code against our processes, on two control planes: the seed,
// which holds the Machines, and the Shoot, where they become Nodes. Not real are:
//
//   - The kubelets: a Deployment's container of the seed and the components of the extension are
//     processes, and kwok plays those of machines.
//   - gardener-resource-manager, which applies the ManagedResource once and issues tokens, and
//     gardener-apiserver: Shoots are objects of a CRD.
//   - The provider, which is mostly the virtual one. The actuator sees no Pods of provider-local,
//     and gardener-node-agent reports in-place updates as done at once.
//   - gardenlet's order of writes, and Gardener's fork of cluster-autoscaler, which cannot be
//     imported.
package e2e
