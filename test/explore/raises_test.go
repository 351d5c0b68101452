// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Every interleaving of those who raise replicas", func() {
	search := func(m Raises) Result[RaiseWorld] {
		began := time.Now()
		r := Search[RaiseWorld](NewRaises(m), *most)
		AddReportEntry("searched", fmt.Sprintf("%d states and %d steps in %s, %s of processors so far", r.States, r.Edges, time.Since(began).Round(time.Millisecond), processorTime()), ReportEntryVisibilityAlways)
		return r
	}

	DescribeTable("keeps the laws and comes to rest", func(m Raises) {
		m.Faults = 2 * *faults // pods that come are among them
		r := search(m)
		if r.Story != nil {
			Fail(r.Story.String())
		}
		Expect(r.Exhausted).To(BeTrue(), "more states than -explore.states")
	},
		Entry("with one machine in reserve", Raises{Spare: 1, Max: 3}),
		Entry("with two machines in reserve", Raises{Spare: 2, Max: 3}),
		Entry("without a reserve", Raises{Max: 3}),
		Entry("without an autoscaler", Raises{Spare: 2, Max: 3, Alone: true}),
	)

	DescribeTable("breaks a law without each guard and promise", func(m Raises, law string) {
		r := search(m)
		Expect(r.Story).NotTo(BeNil())
		Expect(r.Story.Wrong).To(HavePrefix(law), "%s", r.Story)
		Expect(replayAgain[RaiseWorld](NewRaises(m), r.Story)).To(Equal(r.Story.Wrong))
		AddReportEntry("story", r.Story.String())
	},
		Entry("of versions", Raises{Spare: 1, Max: 3, Faults: 2, Unguarded: GuardVersion}, "I9"),
		Entry("of where requests count from", Raises{Spare: 1, Max: 3, Faults: 2, Unguarded: CountFromLoop}, "N12"),
		Entry("of loops that end with the process", Raises{Spare: 1, Max: 3, Faults: 2, Unguarded: KeepLoop}, "N12"),
	)
})
