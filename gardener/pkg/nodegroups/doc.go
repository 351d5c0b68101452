// SPDX-License-Identifier: Apache-2.0

// Package nodegroups contains what a Shoot has in its namespace on the seed so that an unmodified
// cluster-autoscaler can call the server of its machine-controller-manager: a Service, and
// certificates for both sides, which an authority of this Shoot signs. It signs nothing else.
//
// Laws:
//
//  1. Next changes nothing that is valid: a certificate is renewed when four fifths of its life are
//     over, or when its authority or its names change.
//  2. While the Shoot prepares a rotation of its authorities, there are two: both sides trust both,
//     the caller has a certificate of the new one, and the server one of the old one. So a side that
//     was told later, or earlier, is trusted. When the rotation is being completed, the old one is gone.
//  3. The key of an authority is in a Secret that no pod mounts.
package nodegroups
