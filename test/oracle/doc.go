// SPDX-License-Identifier: Apache-2.0

// Package oracle compares two implementations of machine-controller-manager's MachineDeployment,
// MachineSet and safety controllers: stock, and another one. It plays the same story with each, on a
// simulated server in virtual time, and compares what they leave behind.
//
//	ours := oracle.Implementation{Name: "ours", Program: run}
//	for _, story := range oracle.Stories() {
//		verdict := oracle.Judge(suite, story, ours)
//		Expect(verdict.Same()).To(BeTrue(), verdict.String())
//	}
//
// A Story is data: a list of acts, with rest between them. Stories are written by hand, in a table for
// each part of docs/controllers.md, whose rows they name; or Random draws them from a seed, one slice
// of behavior at a time, and RandomInWeather adds faults. Play returns an Ending: the State after each
// act, and the promises broken on the way. State explains how machines are numbered and times
// replaced; exclusions are what is not compared, with reasons. Doubles play everything else: cloud
// for machine-controllers, kubelets and node agents, and the simulated server's garbage collector.
//
// To add a story, add a line to its table, name its rows, and run go test ./test/oracle -update. To
// see what the oracle can see, look at Faults: each is planted in stock, and has to be seen.
//
// Short runs play a part of the stories. ORACLE=100 plays all, and that many random ones of each slice;
// SEED=7 plays the random ones of one seed. SHOW='grows and shrinks' prints what stock does in the
// stories with such a name.
package oracle
