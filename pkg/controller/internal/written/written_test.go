// SPDX-License-Identifier: Apache-2.0

package written_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/controller/internal/written"
)

func TestWritten(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Written")
}

var _ = Describe("The log of writes", func() {
	It("knows nothing of objects that were not written", func() {
		Expect(new(written.Log).Seen("a", "1")).To(BeTrue())
	})

	It("waits for the last write of an object, by number and not by letter", func() {
		var l written.Log
		l.Wrote("a", "10")
		Expect(l.Seen("a", "9")).To(BeFalse())
		Expect(l.Seen("a", "9")).To(BeFalse())
		Expect(l.Seen("b", "9")).To(BeTrue())
		Expect(l.Seen("a", "10")).To(BeTrue())
	})

	It("takes a later version for seen, and is done with it", func() {
		var l written.Log
		l.Wrote("a", "10")
		Expect(l.Seen("a", "100")).To(BeTrue())
		Expect(l.Seen("a", "9")).To(BeTrue())
	})

	It("keeps the later of two writes, in whatever order their answers come", func() {
		var l written.Log
		l.Wrote("a", "12")
		l.Wrote("a", "10")
		Expect(l.Seen("a", "11")).To(BeFalse())
		l.Wrote("a", "13")
		Expect(l.Seen("a", "12")).To(BeFalse())
	})

	It("forgets what is gone", func() {
		var l written.Log
		l.Wrote("a", "10")
		l.Forget("a")
		Expect(l.Seen("a", "9")).To(BeTrue())
	})

	It("does not wait for what it cannot compare", func() {
		var l written.Log
		l.Wrote("a", "10")
		Expect(l.Seen("a", "x")).To(BeTrue())
	})
})
