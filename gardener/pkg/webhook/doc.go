// SPDX-License-Identifier: Apache-2.0

// Package webhook changes what gardenlet writes into the namespace of a Shoot with the extension.
//
// Watches: writes of the Deployment machine-controller-manager and of the Worker, in namespaces with
// the extension's label, and of Deployments that it has changed, in any namespace.
// Reads: the Extension of the namespace, from the cache of the process.
// Writes: nothing but its answer.
//
// Laws:
//
//  1. No request is ever refused. Where anything is wrong, the object is written as gardenlet wants
//     it, and the log tells why.
//  2. Only a configuration that the controller has accepted has an effect.
//  3. While the extension is being removed, the Deployment keeps Evenkeel until the reserve is
//     drained, and is restored from then on. The Worker requests nothing any more.
//  4. If the webhook does not answer, the API server goes on without it (failurePolicy Ignore): the
//     Shoot runs the stock image, and the Worker requests no reserve, until gardenlet writes again.
package webhook
