// SPDX-License-Identifier: Apache-2.0

// Package mutation changes what gardenlet writes for a Shoot, so that the Shoot runs Evenkeel. Its
// functions are pure; the webhook calls them for each write.
//
// Laws:
//
//  1. A change that was made is not made again: each function is idempotent.
//  2. What gardenlet writes over a changed object becomes the same changed object again.
//  3. Restore undoes Apply, to what gardenlet wrote.
//  4. Only the containers machine-controller-manager and cluster-autoscaler, one volume of the
//     extension, and annotations and labels of the extension change. The provider's container is never
//     touched.
//  5. Where an object is not as expected, it stays as it is, and an error explains why.
package mutation
