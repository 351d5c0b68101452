// SPDX-License-Identifier: Apache-2.0

// Package page is the plugin's page in a browser. A browser loads all fragments, sections of HTML
// with an id, and then gets changed ones over one stream of events.
//
// Laws:
//
//  1. Nothing is written, neither to a cluster nor to a disk: only GET is supported.
//  2. A request is refused if its Host is not this machine's loopback, or a page of another origin
//     makes it.
//  3. The page's policy forbids the browser to send requests to any other server.
//  4. Text from objects is shown as text, whatever it contains.
//  5. A slow browser delays no other, and gets only the newest state.
//  6. Objects are drawn at most once per pace, and only while a browser is connected.
//  7. Serve returns when all that it started has ended, including streams.
//  8. Only a browser with the key in the address can read the page.
//  9. Sizes of reserves are computed one at a time, and only while a browser waits for them.
package page
