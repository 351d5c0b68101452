// SPDX-License-Identifier: Apache-2.0

// Package storm runs processes against a simulated API server in virtual time, kills them between
// any two of their writes, restarts them, and prints one line that reproduces a failed run: see
// [CrashPoints]. The order of goroutines does not depend on the seed, so a failed run may succeed
// again.
package storm
