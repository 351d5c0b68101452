// SPDX-License-Identifier: Apache-2.0

// Package webhook changes the Deployments machine-controller-manager and cluster-autoscaler and the
// Worker of a Shoot with the extension, when gardenlet writes them.
//
// Laws:
//
//  1. No request is refused: if an object, or a pool of a Worker, is wrong, gardenlet's version is
//     written.
//  2. Only a configuration that the controller has accepted has an effect.
//  3. During removal, the Deployment keeps Evenkeel until the reserve is drained, and the Worker
//     requests no reserve.
//  4. If the webhook does not answer, the Shoot runs the stock image until gardenlet writes again.
//  5. cluster-autoscaler becomes unmodified only if the manager has its server and all pools have
//     bounds. The server stays as long as it is requested or in use.
package webhook
