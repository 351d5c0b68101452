// SPDX-License-Identifier: Apache-2.0

// Package laws has the suites of packages with laws draw enough inputs to find a small slip.
package laws

import (
	"flag"
	"strconv"
	"testing"
)

// Main runs the tests of a package. Each law is checked on so many inputs, unless the command line says otherwise. The default of 100 is
// too few where several rare things must come together, such as a tie among bounds among tiers:
//
//	go test ./pkg/reserve -rapid.checks=100000
func Main(m *testing.M, checks int) {
	defaults := map[string]string{"rapid.checks": strconv.Itoa(checks), "rapid.nofailfile": "true"}
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { delete(defaults, f.Name) })
	for name, value := range defaults {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	m.Run() // its result is that of the process
}
