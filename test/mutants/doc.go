// SPDX-License-Identifier: Apache-2.0

// Command mutants measures what the tests of a package catch: it changes the code in one small
// place at a time, runs the tests, and expects them to fail.
//
// All mutants of a package are in one test binary, behind switches that an environment variable
// sets; the source is not changed. Each mutant meets only the specs that reach it, up to a limit,
// so the figures are a lower bound. The file equivalent.txt lists mutants that change nothing
// observable. The kinds are in kinds.go and parts.go.
package main
