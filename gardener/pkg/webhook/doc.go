// SPDX-License-Identifier: Apache-2.0

// Package webhook changes what gardenlet writes into the namespace of a Shoot with the extension.
//
// Watches: writes of the Deployments machine-controller-manager and cluster-autoscaler and of the
// Worker, in namespaces with the extension's label, and of Deployments that it has changed, in any
// namespace. Reads: the Extension of the namespace, from the cache of the process; if an unmodified
// cluster-autoscaler is or was requested, also the other Deployment, the Worker and the
// certificates. Writes: nothing but its answer.
//
// Laws:
//
//  1. No request is ever refused. Where anything is wrong, the object is written as gardenlet wants
//     it, and the log contains the reason. Of a Worker, that holds for each pool.
//  2. Only a configuration that the controller has accepted has an effect.
//  3. While the extension is being removed, the Deployment keeps Evenkeel until the reserve is
//     drained, and is restored from then on. The Worker requests nothing any more.
//  4. If the webhook does not answer, the API server goes on without it (failurePolicy Ignore): the
//     Shoot runs the stock image, and the Worker requests no reserve, until gardenlet writes again.
//  5. cluster-autoscaler becomes the unmodified one only if machine-controller-manager, as it is
//     stored, has the server that it calls, and all pools of the Worker have the bounds without which
//     that does not offer them; the first time, only when that server runs.
//     machine-controller-manager has the server for as long as it is wanted, or cluster-autoscaler, as
//     it is stored, is the unmodified one, unless the fork's command or image is lost. An unused
//     server does no harm.
package webhook
