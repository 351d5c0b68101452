// SPDX-License-Identifier: Apache-2.0

// Package storm runs processes against a simulated API server in virtual time, kills them between
// any two of their writes, restarts them, and prints one line that reproduces a failed run: see
// [CrashPoints].
//
// Seeds do not decide the order of goroutines, so a failed run does not always fail again.
package storm
