// SPDX-License-Identifier: Apache-2.0

// Package written decides what the answer to a request reveals about the stored object, and
// remembers answers until the store of an informer shows as much.
//
// [Outcome] decides. Between a client and the storage are proxies, priority and fairness,
// authentication and authorization. Each of these can answer without having looked at the object,
// and some answer after an earlier attempt has already taken effect: client-go and many proxies
// repeat requests on their own and report only the last attempt. Therefore an answer counts only if
// it required a look at the request or at the object.
//
// [Cache] remembers. Without it, a controller decides on objects that are older than its own
// writes.
package written
