// SPDX-License-Identifier: Apache-2.0

package plural_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/plural"
)

func TestPlural(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Plural")
}

var _ = DescribeTable("A number with its noun",
	func(n int, text string) { Expect(plural.Of(n, "machine")).To(Equal(text)) },
	Entry("of one", 1, "1 machine"),
	Entry("of several", 2, "2 machines"),
	Entry("of none", 0, "0 machines"),
)
