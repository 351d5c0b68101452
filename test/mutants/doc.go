// SPDX-License-Identifier: Apache-2.0

// Command mutants measures what the tests of a package catch. It changes the package's code in one
// small place, runs the tests, and expects them to fail; and so on for every place.
//
// All mutants of a package are compiled into one test binary, behind a switch that an environment
// variable sets. A mutant therefore costs a test run and no build. The source on disk is never
// changed: the compiler reads the mutated files through an overlay.
//
// A run without a mutant notes which specs reach which mutants, and how long each spec takes. A
// mutant meets only the specs that reach it, the fastest first, up to a limit: storms that take
// longer are left out, so the figures are a lower bound. A mutant that takes more than twice the
// processor time that these specs take without it counts as killed: it never ends.
//
//	source --Mutate--> mutants + source with switches --go test -c -overlay--> one binary --Run--> killed, lived
//
// A mutant that no test can kill because it changes nothing observable is equivalent. The file
// equivalent.txt lists these with a reason each; an entry that matches no mutant any more is an
// error. Not made at all are mutants that never can be seen: factors that change places, two values
// that are compared and do, and numbers that are returned with an error.
//
// The kinds, and the class that each belongs to. The first class is what common mutation tools offer.
//
//	boundary     basic   a < b becomes a <= b, and so on
//	negate       basic   a == b becomes a != b; if cond becomes if !cond
//	arithmetic   basic   a + b becomes a - b, a / b becomes a * b; x++ becomes x--; x += y becomes x -= y
//	force        hard    a condition is always true, or always false
//	operand      hard    a && b becomes a, or b
//	statement    hard    an assignment, a call or a loop is left out
//	branch       hard    the body of a case is skipped
//	return       hard    another value is returned: the opposite, zero, or one more
//	constant     hard    a number is one more
//	arguments    hard    two arguments of the same type change places; min becomes max
//	field        hard    a field or an entry of a composite literal is left at zero
//	part         hard    an argument of cmp.Or, errors.Join or slices.Concat, or an element of a slice, is left out
package main
