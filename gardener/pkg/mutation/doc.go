// SPDX-License-Identifier: Apache-2.0

// Package mutation changes what gardenlet writes for a Shoot, so that the Shoot runs Evenkeel. It
// is pure.
//
// Laws:
//
//  1. Each function is idempotent.
//  2. What gardenlet writes over a changed object is changed in the same way.
//  3. Restore undoes Apply, to what gardenlet wrote.
//  4. Only the containers machine-controller-manager and cluster-autoscaler, one volume, and
//     annotations and labels of the extension change.
//  5. An unexpected object stays as it is, and an error explains why.
package mutation
