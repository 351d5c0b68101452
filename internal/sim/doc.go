// SPDX-License-Identifier: Apache-2.0

// Package sim is a Kubernetes API server in memory, for tests in virtual time.
//
// It sits behind an http.RoundTripper: every real client (typed, dynamic, scale,
// discovery, informers) runs on it unchanged over Server.Config, and no socket,
// goroutine or unseeded random number is involved. A request is served on the
// goroutine that makes it; a watch is a body whose Read takes the next event
// that is due. Whatever blocks does so on channels and timers made where the
// Server was made, so all of it may live in a testing/synctest bubble.
//
//	s := sim.New(sim.Options{Seed: 7, Resources: slices.Concat(sim.Core, sim.Machine)})
//	defer s.Close()
//	client := kubernetes.NewForConfigOrDie(s.ConfigFor("scheduler"))
//	s.Lag("machines", sim.Constantly(50*time.Millisecond))
//
// What it promises. Package conformance has the specs, which a real API server
// passes too; forgotten history and pruning are specified here:
//
//  1. One counter gives all resourceVersions. A write that changes nothing
//     takes no number and makes no event.
//  2. A write decided on another resourceVersion or uid than the stored one is
//     a conflict; preconditions of a delete hold likewise.
//  3. The server alone writes uid, creationTimestamp, deletionTimestamp and
//     generation; generation counts changes of anything but metadata and status.
//  4. Status is written through its subresource and through nothing else, and
//     that writes nothing but status (built-in kinds: and metadata).
//  5. A finalizer keeps a deleted object until the last one goes, and none can
//     be added meanwhile.
//  6. Watches deliver every change after their resourceVersion once, in order,
//     as seen through their selector; forgotten history is answered 410 Gone.
//  7. Built-in kinds are typed: unknown fields vanish, quantities are
//     normalized, strategic merge patches work. Custom resources keep their
//     fields (unless Known prunes them) and refuse such patches with 415.
//  8. Server-side apply merges what a manager names, removes what it no longer
//     names, conflicts over what others own unless it is forced, and records
//     whose each field is. Built-in kinds merge their lists by key; of custom
//     resources lists count as a whole, as of one without a schema.
//  9. With the checks of package policy, objects are held to the schemas, rules
//     and admission policies of kubernetes/, as those files have them.
//
// What it leaves out: defaulting, validation beyond metadata and these checks,
// RBAC, server-side apply of a Scale (415), graceful deletion of pods, the
// existence of namespaces, and the common storage of the two Event groups.
//
// Faults are part of it: watches that lag or stop per kind and identity,
// requests that are slow, writes that fail before or after they took effect,
// reads that fail alone, answers of an overloaded server and of proxies, clients
// that die between two writes, an API server that cannot be reached or that
// hangs, a restore of etcd. Struck counts how often each has struck.
package sim
