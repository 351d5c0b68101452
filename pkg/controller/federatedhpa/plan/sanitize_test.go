// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
)

var _ = Describe("What a cluster says of itself", func() {
	shown := func(reason, message string) plan.Hold {
		v := view(Federated(1, 10), has("a", 1, 10, 3, func(c *plan.Cluster) { c.Fault = plan.Hold{Reason: reason, Message: message} }))
		s := plan.NewStatus(v, plan.New(v)).Clusters[0]
		return plan.Hold{Reason: s.Reason, Message: s.Message}
	}
	token := "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYm1y" // 40 characters

	DescribeTable("is shown on one line, without addresses and credentials",
		func(message, expected string) { Expect(shown("RefusedInvalid", message).Message).To(Equal(expected)) },
		Entry("a sentence", "spec.metrics: at most 5 items", "spec.metrics: at most 5 items"),
		Entry("other scripts", "não há memória", "não há memória"),
		Entry("lines and tabs", " one\n\ttwo\r\nthree ", "one two three"),
		Entry("characters that do not print", "a\x00b\u200bc\x1b[1m", "abc[1m"),
		Entry("a URL", "get https://10.0.0.1:6443/api?x=y: refused", "get (address) refused"),
		Entry("an IPv4 address", "dial tcp 10.0.0.1:6443: refused", "dial tcp (address): refused"),
		Entry("an IPv6 address", "dial tcp [fd00::1]:6443: refused", "dial tcp (address): refused"),
		Entry("a credential", "Bearer abc.def is not valid", "Bearer (hidden) is not valid"),
		Entry("a named credential", `password="hunter2" is not valid`, `password (hidden)" is not valid`),
		Entry("a long word with digits", "the header "+token+" is invalid", "the header (hidden) is invalid"),
		Entry("a word with digits that is no credential by its length", token[1:], token[1:]),
		Entry("a long word without digits, such as the name of a field", strings.Repeat("abcde", 9), strings.Repeat("abcde", 9)),
	)

	It("is shown up to a length of 300 characters", func() {
		sentence := strings.Repeat("äö ", 99) + "äöü"
		Expect([]rune(sentence)).To(HaveLen(300))
		Expect(shown("RefusedInvalid", sentence).Message).To(Equal(sentence))
		longer := shown("RefusedInvalid", sentence+"ß").Message
		Expect([]rune(longer)).To(HaveLen(300))
		Expect(longer).To(Equal(strings.Repeat("äö ", 99) + "äö…"))
	})

	It("is not read beyond 4800 bytes", func() {
		Expect(shown("RefusedInvalid", strings.Repeat(" ", 4799)+"ab").Message).To(Equal("a"))
	})

	DescribeTable("has a reason of letters and digits",
		func(reason, expected string) { Expect(shown(reason, "").Reason).To(Equal(expected)) },
		Entry("as usual", "RefusedInvalid", "RefusedInvalid"),
		Entry("with digits", "Refused404", "Refused404"),
		Entry("without other characters", "Refused: see\n<b>", "Refusedseeb"),
		Entry("without other scripts", "Refusé", "Refus"),
		Entry("of up to 64 characters", strings.Repeat("Refused9", 8)+"more", strings.Repeat("Refused9", 8)),
	)
})
