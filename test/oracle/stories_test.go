// SPDX-License-Identifier: Apache-2.0

//go:build !race

package oracle_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/oracle"
)

var _ = Describe("Stock beside stock", func() {
	for _, story := range oracle.Stories() {
		It("ends the same: "+story.Name, func() {
			Expect(report(story)).To(BeEmpty())
		})
	}
})
