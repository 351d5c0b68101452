// SPDX-License-Identifier: Apache-2.0

// Package lens is between machine-controller-manager's controllers and the API server. The
// controllers run unmodified; instead of a plain clientset and plain informers, they get those of
// this package. It has two halves: package view shows the controllers objects without a reserve,
// and this package, around it, lets them read their own writes.
//
// # Reading one's own writes
//
// Those controllers decide by counting what their informers contain. Their guard against counting
// too early (expectations) is recorded but never consulted. When the watch is late, they do not see
// the machines that they have just created, and create them again and again: hundreds instead of a
// handful. [Consistent] prevents this.
//
//	controller --write--> Consistent --request--> API server
//	     ^                    |  remembers the resourceVersion
//	     |                    v
//	  Lister().List <- writeTracker <--events--- informer <--watch--- API server
//	  (waits while the store is older than what was written)
//
// The decision must wait, not the write that follows from it: a create that is merely delayed until
// the store has caught up would still carry out a decision based on a stale count. So the listers
// wait.
//
// The laws together are law L4 of the design, and the first half of L7.
//
//   - L4.1 A list from a lister of [Consistent.Bind] never shows a store older than any write, of
//     any object of that kind, that returned before the list was requested. It waits as long as
//     necessary, and fails only after the clientset has stopped.
//   - L4.2 A successful write waits until the store shows it, for Options.Patience at most. This
//     helps callers that look their object up by name right after writing it; L4.1 does not depend
//     on it. While the store is known to be late, writes do not wait: one timeout is enough to
//     know.
//   - L4.3 A write with an unknown outcome (package written) is resolved before it returns. A
//     Create uses a name that is chosen here, so that it can be looked up and repeated without
//     creating a second object; a Delete is looked up and repeated; after an Update or Patch, the
//     resulting version is read. Only the object, or the API server's response that there is none,
//     resolves it: a read that is throttled or denied is repeated.
//   - L4.4 Nothing is refused that a plain clientset would do, so no controller sees an error, an
//     event or a back-off that it would not see without this package. (DeleteCollection, which
//     machine-controller-manager never calls, is the exception: its effect on the store cannot be
//     known.)
//   - L4.5 Lookups by name, lists of one namespace, handlers and watches never wait: event handlers
//     look up owners by name, and metrics list a namespace. A write that is based on such a lookup
//     contains the resourceVersion that was looked up, and conflicts if that is stale.
//   - L4.6 An informer starts with what the API server has stored, not with what a cache of the API
//     server contains, so a process also sees what its predecessor wrote.
//   - L4.7 A list shows machines whose deletion was requested as terminating, although the machine
//     controller may not have written that phase yet. machine-controller-manager counts machines by
//     their phase: it would delete as many others again.
//   - L7.1 After the context given to [New] has ended, every write returns [ErrStopped], and every
//     Get too, because machine-controller-manager retries some failed writes without limit, and
//     only a failing Get ends that. Lists no longer wait.
//
// The package starts no goroutine.
package lens
