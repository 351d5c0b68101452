// SPDX-License-Identifier: Apache-2.0

//go:build !race

package oracle_test

import (
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/oracle"
)

// thinned is every how many-th story by hand a short run plays.
const thinned = 6

var _ = Describe("Stock beside stock", func() {
	for i, story := range oracle.Stories() {
		if os.Getenv("ORACLE") == "" && i%thinned != 0 {
			continue
		}
		It("ends the same: "+story.Name, func() {
			v := oracle.Judge(suite, story, oracle.Stock)
			Expect(v.Differences).To(BeEmpty(), v.String())
			for breach := range v.Stock.Breaches {
				Expect(oracle.Allowed).To(HaveKey(breach), v.Stock.First[breach])
			}
		})
	}
})
