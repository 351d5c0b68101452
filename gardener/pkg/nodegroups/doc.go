// SPDX-License-Identifier: Apache-2.0

// Package nodegroups contains what an unmodified cluster-autoscaler of a Shoot needs to call the
// manager's server: a Service, and certificates for both sides, signed by an authority of this
// Shoot.
//
// Laws:
//
//  1. Next renews a certificate only when four fifths of its life are over, or when its authority
//     or its names change.
//  2. While a rotation is prepared, both sides trust both authorities; the caller's certificate is
//     already new, the server's still old. On completion, the old authority goes.
//  3. The key of an authority is in a Secret that no pod mounts.
package nodegroups
