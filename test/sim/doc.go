// SPDX-License-Identifier: Apache-2.0

// Package sim is a Kubernetes API server in memory, for tests in virtual time.
//
// It is behind an http.RoundTripper: every real client (typed, dynamic, scale, discovery,
// informers) works with it unchanged over Server.Config, without sockets, goroutines or unseeded
// random numbers. A request is served on the goroutine that makes it. A watch is a body whose Read
// returns the next event that is due. Everything that blocks uses channels and timers created
// together with the Server, so all of it can live in a testing/synctest bubble.
//
//	s := sim.New(sim.Options{Seed: 7, Resources: slices.Concat(sim.Core, sim.Machine)})
//	defer s.Close()
//	client := kubernetes.NewForConfigOrDie(s.ConfigFor("scheduler"))
//	s.Lag("machines", sim.Constantly(50*time.Millisecond))
//
// The server keeps these promises. Package conformance contains the specs, which a real API server
// passes, too; forgotten history and pruning are specified here:
//
//  1. One counter provides all resourceVersions. A write that changes nothing takes no number and
//     causes no event.
//  2. A write that was decided on another resourceVersion or UID than the stored one is a conflict;
//     the same applies to preconditions of a delete.
//  3. Only the server writes uid, creationTimestamp, deletionTimestamp and generation. generation
//     counts changes of anything except metadata and status.
//  4. Status is written only through its subresource, which writes nothing else (for built-in
//     kinds, also metadata).
//  5. A deleted object with finalizers stays until the last one is removed, and none can be added
//     meanwhile.
//  6. Watches deliver every change after their resourceVersion once, in order, as seen through
//     their selector. Forgotten history is answered with 410 Gone.
//  7. Built-in kinds are typed: unknown fields are dropped, quantities are normalized, strategic
//     merge patches work. Custom resources keep their fields (unless Known prunes them) and reject
//     such patches with 415.
//  8. Server-side apply merges the fields that a manager names, removes those that it no longer
//     names, conflicts over fields of other managers unless forced, and records the owner of each
//     field. Lists of built-in kinds are merged by key; lists of custom resources count as a whole,
//     as without a schema.
//  9. With the checks of package policy, objects must comply with the schemas, rules and admission
//     policies of kubernetes/.
//
// It omits defaulting, validation beyond metadata and these checks, RBAC, server-side apply of a
// Scale (415), graceful deletion of pods, the existence of namespaces, and the common storage of
// the two Event groups.
//
// Faults are part of it: watches that lag or stop, per kind and identity; slow requests; writes
// that fail before or after they took effect; reads that fail; answers of an overloaded server and
// of proxies; clients that die between two writes; an API server that is unreachable or hangs; a
// restore of etcd. Struck counts how often each has occurred.
//
// A client that writes without end while no time passes ends the process, with a description: in
// virtual time, that would last until the limit of the test.
package sim
