// SPDX-License-Identifier: Apache-2.0

//go:build !race

package oracle_test

import (
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/oracle"
)

var _ = Describe("Stock, killed before and after each of its writes,", func() {
	for _, name := range []string{"a set shrinks by priority, then by age", "a name that is taken"} {
		if os.Getenv("ORACLE") == "" {
			continue // that takes many plays
		}
		It("ends as if it had not been: "+name, func() {
			Expect(oracle.Killed(suite, oracle.ByHand(name), oracle.Stock)).To(Succeed())
		})
	}
})
