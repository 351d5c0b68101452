// SPDX-License-Identifier: Apache-2.0

// Package oracle compares machine-controller-manager's MachineDeployment, MachineSet and safety
// controllers with another implementation: it plays the same story with each, on a simulated
// server, and compares what they leave behind.
//
//	ours := oracle.Implementation{Name: "ours", Program: run}
//	verdict := oracle.Judge(suite, story, ours)
//	Expect(verdict.Same()).To(BeTrue(), verdict.String())
//
// A Story is a list of acts: a row of a table, which names rows of docs/controllers.md, or drawn
// from a seed by Random. The oracle must see each fault that is planted in stock.
//
// After you add a story, run go test ./test/oracle -update. ORACLE=100 plays all stories and 100
// random ones of each slice, SEED=7 those of one seed. SHOW='grows and shrinks' prints what stock
// does in stories of that name.
package oracle
