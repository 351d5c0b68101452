// SPDX-License-Identifier: Apache-2.0

// Command mutants measures what the tests of a package catch: it changes the code in one small
// place at a time, runs the tests, and expects them to fail.
//
// Each mutant meets only the specs that reach it, up to a limit, so the figures are a lower bound.
// The file equivalent.txt lists mutants that change nothing observable.
package main
