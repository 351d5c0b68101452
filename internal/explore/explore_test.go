// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"flag"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var (
	faults = flag.Int("explore.faults", 1, "how many faults may happen on one way")
	most   = flag.Int("explore.states", 3_000_000, "how many states are searched at most")
)

func TestExplore(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Explore")
}

// report prints what was searched.
func report(what string, r Result[World], began time.Time) {
	text := fmt.Sprintf("%d states and %d steps in %s", r.States, r.Edges, time.Since(began).Round(time.Millisecond))
	AddReportEntry(what, text, ReportEntryVisibilityAlways)
}

var _ = Describe("Every interleaving", func() {
	DescribeTable("keeps the laws and comes to rest", func(m Reserve) {
		m.Faults = *faults
		began := time.Now()
		r := Search[World](m, *most)
		report("searched", r, began)
		Expect(r.Story).To(BeNil(), "%s", r.Story)
		Expect(r.Exhausted).To(BeTrue(), "more states than -explore.states")
	},
		Entry("beyond replicas, without a maximum", Reserve{}),
		Entry("beyond replicas, with a maximum of 3", Reserve{Max: 3}),
		Entry("within replicas, without a maximum", Reserve{Inclusive: true}),
		Entry("within replicas, with a maximum of 3", Reserve{Inclusive: true, Max: 3}),
	)

	DescribeTable("breaks a law without each of the guards", func(without Guard, replicas, excess, busy, faults int, law string) {
		began := time.Now()
		r := Search[World](Reserve{From: []World{settled(replicas, excess, busy, faults, false)}, Unguarded: without}, *most)
		report("searched", r, began)
		Expect(r.Story).NotTo(BeNil())
		Expect(r.Story.Wrong).To(HavePrefix(law), "%s", r.Story)
		AddReportEntry("story", r.Story.String())
	},
		Entry("of deletions", GuardRemove, 1, 1, 1, 2, "I3"),
		Entry("of machines that are needed", GuardNeeded, 1, 1, 1, 2, "I3"),
		Entry("of pods that come late", GuardEmpty, 2, 0, 1, 3, "I2"),
	)
})
