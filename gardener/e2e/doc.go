// SPDX-License-Identifier: Apache-2.0

// Package e2e runs Gardener's own code against our processes, on two control planes of this
// machine: one is the seed, which holds the Machines, and one is the Shoot, where they become
// Nodes.
//
// # Real
//
// Gardener deploys machine-controller-manager (package machinecontrollermanager) and its CRDs,
// reconciles, restores and deletes the Worker (package genericactuator with the delegate of
// provider-local), and judges the Nodes (care.CheckNodesScaling and the health check of Workers).
// In some stories, the provider's container is that of provider-local, whose machines are Pods of a
// third cluster. The process under test runs with the command line of the Deployment that Gardener
// made, as its ServiceAccount on the seed and with the account of its access Secret in the Shoot.
// The stock binary runs the same way.
//
// # Doubles
//
//   - The kubelet: it runs the container of the Deployment as a process of this machine. Such a process has no mounts and no
//     network of its own, so the two kubeconfigs and the port are replaced; every other flag is Gardener's. A new image starts
//     beside the old one, and the old one then has the grace period of the pod to end.
//   - gardener-resource-manager: it applies the ManagedResource once, and issues the tokens of accounts.
//   - The provider, in most stories: machines are those of our virtual provider, so what provider-local's delegate writes into a MachineClass is
//     replaced by its providerSpec.
//     When a control plane migrates, its records are copied to the other seed: they stand for a cloud that stays where it is.
//   - What runs in the machines: kwok plays the kubelets. That of a machine of provider-local registers its Node when its Pod runs; the
//     actuator is not shown these Pods, since it would run a command in each. Where nodes are updated in place, gardener-node-agent
//     says at once that it is done.
//   - The pods of the extension and of the admission component: they are processes with the arguments and the rights of their
//     charts, and are reached by a URL. Each runs once, except where a story has two.
//   - gardenlet's order of writes, and gardener-apiserver: Shoots are objects of a CRD.
//   - Gardener's fork of cluster-autoscaler, which cannot be imported: see the type fork.
package e2e
