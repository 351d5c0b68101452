// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Every interleaving of removals by an autoscaler", func() {
	search := func(m Removals) Result[RemovalWorld] {
		began := time.Now()
		r := Search[RemovalWorld](NewRemovals(m), *most)
		AddReportEntry("searched", fmt.Sprintf("%d states and %d steps in %s, %s of processors so far", r.States, r.Edges, time.Since(began).Round(time.Millisecond), processorTime()), ReportEntryVisibilityAlways)
		return r
	}

	DescribeTable("keeps the laws and comes to rest", func(m Removals) {
		m.Faults += *faults
		r := search(m)
		if r.Story != nil {
			Fail(r.Story.String())
		}
		Expect(r.Exhausted).To(BeTrue(), "more states than -explore.states")
	},
		Entry("without a reserve", Removals{Replicas: 3, Max: 3}),
		Entry("with a machine in reserve", Removals{Replicas: 2, Spare: 1, Max: 3}),
		Entry("at the minimum", Removals{Replicas: 2, Spare: 1, Min: 1, Max: 2}),
		Entry("at the minimum, without a reserve", Removals{Replicas: 1, Min: 1, Max: 2}),
		Entry("with a fault more", Removals{Replicas: 1, Max: 2, Faults: 1}),
	)

	DescribeTable("breaks a law without each guard and promise", func(m Removals, faults int, law string) {
		m.Replicas, m.Max, m.Faults = cmp.Or(m.Replicas, 2), 3, faults
		r := search(m)
		Expect(r.Story).NotTo(BeNil())
		Expect(r.Story.Wrong).To(HavePrefix(law), "%s", r.Story)
		Expect(replayAgain[RemovalWorld](NewRemovals(m), r.Story)).To(Equal(r.Story.Wrong))
		AddReportEntry("story", r.Story.String())
	},
		Entry("of machines that stores do not show", Removals{Replicas: 3, Unguarded: ReadMachines}, 1, "N8"),
		Entry("of machines that are removed twice", Removals{Unguarded: ReadMachines, Spare: 1}, 3, "N7"),
		Entry("of writes that were lost", Removals{Unguarded: DecideAgain}, 3, "N5"),
		Entry("of names that are repeated", Removals{Unguarded: RemindNames}, 2, "I5"),
	)
})
