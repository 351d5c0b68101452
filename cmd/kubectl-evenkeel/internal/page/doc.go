// SPDX-License-Identifier: Apache-2.0

// Package page is the plugin's page: pools, zones, machines, the last hour, Balancers and federated autoscalers in a
// browser, drawn on this machine from one overview.Overview and kept up to date.
//
// The page is made of fragments, each a section of HTML with an id. A browser gets all of them when it loads the page,
// and over one stream of events those that differ from what it has.
//
// Laws:
//
//  1. Nothing is written, neither to a cluster nor to a disk: only GET is supported, and nothing it asks for changes
//     anything.
//  2. Only pages of this very server read it: a Host that is not this machine's loopback is refused, and so is a
//     request that another origin's page makes. A name that an attacker points to 127.0.0.1 gets nothing.
//  3. A browser that shows the page asks nobody else for anything: the policy that is sent with it forbids it.
//  4. What objects say is text, whatever it contains.
//  5. A browser that is slow delays nobody, and gets the newest state instead of all those that it missed.
//  6. However often objects change, they are drawn at most once per pace, and not at all where nobody looks.
//  7. Serve returns when all that it started has ended, open streams included.
//  8. Only a browser that was given the key in the address of this server reads it: the port is open to every user of this machine.
package page
