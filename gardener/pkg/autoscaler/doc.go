// SPDX-License-Identifier: Apache-2.0

// Package autoscaler is the controller that looks after the two Deployments of a Shoot with an
// unmodified cluster-autoscaler: that one calls the server of machine-controller-manager, and is of
// no use without it. The webhook changes both when gardenlet writes them; this controller finishes
// or takes back what is half done.
//
//	  manager                         cluster-autoscaler
//	stock, or without server          fork                 gardenlet's next write goes on
//	with server                       fork                 works; unmodified once the server runs
//	with server                       unmodified           works
//	stock, or without server          unmodified           does not scale: repaired at once
//
// The same counts where the Worker has lost bounds of a pool: cluster-autoscaler does not scale that
// one, so the fork returns.
//
// Watches: Extensions; the Deployments machine-controller-manager and cluster-autoscaler that the
// webhook has changed. Writes: the same two, with an empty patch, which has the webhook look at
// them again; and cluster-autoscaler, to what gardenlet wrote, if that does not help. Never: a
// Deployment of a Shoot that does not have, and did not have, an unmodified cluster-autoscaler.
//
// Laws:
//
//  1. An unmodified cluster-autoscaler without a server, or with a pool that this does not offer, does
//     not stay: the server comes back, or the fork.
//  2. At rest, nothing is written.
//  3. What the controller does not see to the end, it looks at again after half a minute; all that is
//     not watched, every ten minutes.
package autoscaler
