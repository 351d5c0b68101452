// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

var _ = Describe("A mode of balancing", func() {
	DescribeTable("that is known", func(text string, want BalanceMode) {
		Expect(ParseBalanceMode(text)).To(Equal(want))
	},
		Entry(nil, "Off", BalanceOff),
		Entry(nil, "ScaleUp", BalanceScaleUp),
		Entry(nil, "Continuous", BalanceContinuous),
	)

	DescribeTable("that is not known is off, and the error says what to write", func(text string) {
		mode, err := ParseBalanceMode(text)
		Expect(mode).To(Equal(BalanceOff))
		Expect(err).To(MatchError(ContainSubstring("write Off, ScaleUp or Continuous")))
		Expect(len(err.Error())).To(BeNumerically("<", 150))
	},
		Entry("empty", ""),
		Entry("in lower case", "continuous"),
		Entry("with a space", "Off "),
		Entry("long", strings.Repeat("x", 1000)),
	)
})

var _ = Describe("A share", func() {
	DescribeTable("is a count", func(text string, want int) {
		Expect(ParseShare(text)).To(BeEquivalentTo(want))
	}, Entry(nil, "0", 0), Entry(nil, "7", 7), Entry(nil, "2147483647", 2147483647))

	DescribeTable("is nothing else", func(text string) {
		_, err := ParseShare(text)
		Expect(err).To(HaveOccurred())
	}, Entry(nil, ""), Entry(nil, "-1"), Entry(nil, "5%"), Entry(nil, "01"), Entry(nil, "2147483648"), Entry(nil, "1\n"))
})

var _ = Describe("A move", func() {
	DescribeTable("reads what it writes", func(m Move, text string) {
		Expect(m.String()).To(Equal(text))
		Expect(ParseMove(text)).To(Equal(m))
	},
		Entry("that gives", Move{ID: "8", To: map[string]int32{"b": 2, "a": 1}}, `{"id":"8","to":{"a":1,"b":2}}`),
		Entry("that gives a machine", Move{ID: "8", To: map[string]int32{"b": 1}, Machine: "m"}, `{"id":"8","to":{"b":1},"machine":"m"}`),
		Entry("that is to take", Move{ID: "8", From: "a", Reserve: 1}, `{"id":"8","from":"a","reserve":1}`),
		Entry("that has taken", Move{ID: "8", From: "a", Taken: 3}, `{"id":"8","from":"a","taken":3}`),
	)

	DescribeTable("that makes no sense is refused", func(text string) {
		_, err := ParseMove(text)
		Expect(err).To(HaveOccurred())
		Expect(len(err.Error())).To(BeNumerically("<", 300))
	},
		Entry("empty", ""),
		Entry("no object", `[]`),
		Entry("without id", `{"from":"a"}`),
		Entry("one-sided on both sides", `{"id":"1","from":"a","to":{"b":1}}`),
		Entry("on no side", `{"id":"1"}`),
		Entry("of nothing", `{"id":"1","to":{"b":0}}`),
		Entry("to nobody", `{"id":"1","to":{"":1}}`),
		Entry("of less than nothing", `{"id":"1","from":"a","taken":-1}`),
		Entry("with more than is known", `{"id":"1","from":"a","colour":"blue"}`),
		Entry("twice the same", `{"id":"1","id":"2","from":"a"}`),
		Entry("trailing", `{"id":"1","from":"a"} x`),
		Entry("too long", `{"id":"`+strings.Repeat("1", 70000)+`","from":"a"}`),
	)
})
