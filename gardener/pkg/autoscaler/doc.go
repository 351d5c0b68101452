// SPDX-License-Identifier: Apache-2.0

// Package autoscaler keeps the Deployments machine-controller-manager and cluster-autoscaler of a
// Shoot consistent: an unmodified cluster-autoscaler needs the manager's server. The webhook
// changes both; this controller finishes or undoes what is half done.
//
// Watches: Extensions, and these Deployments, once the webhook has changed them. Writes: the same,
// by an empty patch that calls the webhook, or cluster-autoscaler as gardenlet wrote it. Never: a
// Deployment of a Shoot that has had no unmodified cluster-autoscaler.
//
// Laws:
//
//  1. An unmodified cluster-autoscaler without a server for all its pools does not stay: the server
//     returns, or the fork.
//  2. At rest, nothing is written.
//  3. Unfinished work is retried after half a minute, and what is not watched is checked every ten
//     minutes.
package autoscaler
