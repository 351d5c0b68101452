// SPDX-License-Identifier: Apache-2.0

// Package lens stands between machine-controller-manager's controllers and the API server. The controllers run
// unmodified; what they are given instead of a plain clientset and plain informers comes from here. It has two halves:
// package view below shows them a world without a reserve, and this package, around it, lets them read their own writes.
//
// # Reading one's own writes
//
// Those controllers decide by counting what their informers hold, and their guard against counting too early
// (expectations) is recorded but never consulted. When the watch is late they do not see the machines they have
// just created, and create them again, and again: hundreds for a handful wanted. [Consistent] is the cure.
//
//	controller --write--> Consistent --request--> API server
//	     ^                    |  remembers the resourceVersion
//	     |                    v
//	  Lister().List <--- horizon <--events--- informer <--watch--- API server
//	  (waits while the store is older than what was written)
//
// The decision is what has to wait, not the write that follows from it: a create that was merely delayed until the
// store had caught up would still carry out a decision made on a stale count. So the listers wait.
//
// The laws; together they are law L4 of the design, and the first half of L7.
//
//   - L4.1 A list taken from a lister of [Consistent.Bind] never shows a store older than any write that returned
//     before the list was asked for, of whichever object of that kind. It waits as long as it takes, and errs only
//     when the clientset has stopped.
//   - L4.2 A write that succeeded waits for the store to show it, for Options.Patience at most. This is a courtesy to
//     callers that look their object up by name right after writing it; L4.1 does not rest on it. While the store is known
//     to be late, writes do not wait: one timeout is enough to know.
//   - L4.3 A write whose outcome is unknown (package written) is settled before it returns. A Create is
//     made under a name chosen here, so that it can be looked up and repeated without making a second object;
//     a Delete is looked up and repeated; of an Update or Patch the resulting version is read back. Only the object, or
//     the API server's word that there is none, settles it: a read that is throttled or denied is repeated.
//   - L4.4 Nothing is refused that a plain clientset would do, so no controller sees an error, an event or
//     a back-off that it would not see without this package. (DeleteCollection, which machine-controller-manager
//     never calls, is the exception: its effect on the store cannot be known.)
//   - L4.5 Lookups by name, lists of one namespace, handlers and watches never wait: event handlers look up owners
//     by name, and metrics list a namespace. What is written on the strength of such a lookup carries the
//     resourceVersion that was looked up, and conflicts if that is stale.
//   - L4.6 What an informer begins with is what the API server has stored, not what a cache of the API server holds, so
//     a process also sees what its predecessor wrote.
//   - L7.1 Once the context given to [New] has ended every write answers [ErrStopped], and every Get too, because
//     machine-controller-manager retries some failed writes for ever and only a failing Get ends that. No list waits any
//     longer.
//
// The package starts no goroutine.
package lens
