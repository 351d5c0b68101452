// SPDX-License-Identifier: Apache-2.0

// Package written decides what the answer to a request reveals about the stored object ([Outcome]),
// and remembers answers until an informer's store has caught up ([Cache]). An answer counts only if
// it required a look at the object: proxies answer without one, and retries report only the last
// attempt.
package written
