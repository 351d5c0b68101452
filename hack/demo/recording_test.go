// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

func TestDemo(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Demo")
}

var _ = Describe("The recording that the first make demo shows", func() {
	It("has the chapters of the demo", func() {
		text, err := os.ReadFile("recording.txt")
		Expect(err).NotTo(HaveOccurred())
		recording := gbytes.BufferWithBytes(text)
		for i, c := range chapters {
			Expect(recording).To(gbytes.Say("\n" + regexp.QuoteMeta(strconv.Itoa(i+1)+". "+c.title) + "\n"))
		}
		Expect(recording).To(gbytes.Say("Measured in"))
	})
})
