// SPDX-License-Identifier: Apache-2.0

// Package written decides what the answer to a request reveals about the stored object, and remembers answers until an informer's
// store shows as much.
//
// The first is [Outcome]. Between a client and the storage stand proxies, priority and fairness, authentication and authorization. Each of them
// answers without having looked at the object, and some of them answer after an earlier attempt has already taken effect:
// client-go and many proxies repeat a request on their own and report only the last attempt. So only an answer that
// requires a look at the request or at the object counts as an answer.
//
// The second is [Cache]. Without it a controller decides on objects that are older than its own writes.
package written
