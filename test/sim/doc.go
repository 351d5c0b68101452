// SPDX-License-Identifier: Apache-2.0

// Package sim is a Kubernetes API server in memory, for tests in virtual time. Real clients work
// with it over Server.Config, without sockets, goroutines or unseeded random numbers.
//
//	s := sim.New(sim.Options{Seed: 7, Resources: slices.Concat(sim.Core, sim.Machine)})
//	defer s.Close()
//	client := kubernetes.NewForConfigOrDie(s.ConfigFor("scheduler"))
//	s.Lag("machines", sim.Constantly(50*time.Millisecond))
//
// Package conformance checks these promises, also with a real API server:
//
//  1. One counter provides all resourceVersions. A write that changes nothing takes none and causes
//     no event.
//  2. A write with another resourceVersion or UID than the stored one is a conflict.
//  3. Only the server writes uid, creationTimestamp, deletionTimestamp and generation.
//  4. Status is written only through its subresource, which writes nothing else, except metadata of
//     built-in kinds.
//  5. A deleted object stays until its last finalizer is removed, and none can be added meanwhile.
//  6. Watches deliver every later change that they select once, in order. Forgotten history is 410
//     Gone.
//  7. Built-in kinds drop unknown fields, normalize quantities and take strategic merge patches.
//     Custom resources reject these with 415.
//  8. Server-side apply merges and owns fields by manager, and lists of built-in kinds by key. It
//     conflicts over others' fields unless forced.
//  9. With package policy, objects must comply with the schemas and policies of kubernetes/.
//
// It omits defaulting, other validation, RBAC, server-side apply of a Scale, graceful deletion of
// pods and the existence of namespaces.
package sim
