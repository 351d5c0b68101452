// SPDX-License-Identifier: Apache-2.0

// Package page is the plugin's page: pools, zones, machines, the last hour, Balancers and federated
// autoscalers in a browser. It is rendered on this machine from one overview.Overview and kept up
// to date.
//
// The page consists of fragments, each a section of HTML with an id. A browser gets all of them
// when it loads the page, and then, over one stream of events, those that have changed.
//
// Laws:
//
//  1. Nothing is written, neither to a cluster nor to a disk: only GET is supported, and no request
//     changes anything.
//  2. Only pages of this server can read it. A request is refused if its Host is not this machine's
//     loopback, or if a page of another origin makes it. A name that an attacker points to
//     127.0.0.1 gets nothing.
//  3. A browser that shows the page sends no request to any other server: the page's policy forbids
//     it.
//  4. Text from objects is shown as text, whatever it contains.
//  5. A slow browser delays no other, and gets the newest state instead of all states that it
//     missed.
//  6. However often objects change, they are drawn at most once per pace, and not at all if no
//     browser is connected.
//  7. Serve returns when everything that it started has ended, including open streams.
//  8. Only a browser with the key in the address of this server can read it, because every user of
//     this machine can reach the port.
//  9. How large a reserve should be is computed when a browser asks, one at a time, and no longer
//     than until it disconnects.
package page
