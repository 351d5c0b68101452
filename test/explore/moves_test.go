// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Every interleaving of moves between zones", func() {
	search := func(m Moves) Result[MoveWorld] {
		began := time.Now()
		r := Search[MoveWorld](NewMoves(m), *most)
		AddReportEntry("searched", fmt.Sprintf("%d states and %d steps in %s, %s of processors so far", r.States, r.Edges, time.Since(began).Round(time.Millisecond), processorTime()), ReportEntryVisibilityAlways)
		return r
	}

	DescribeTable("keeps the laws and comes to rest", func(m Moves) {
		m.Faults = *faults
		r := search(m)
		if r.Story != nil {
			Fail(r.Story.String())
		}
		Expect(r.Exhausted).To(BeTrue(), "more states than -explore.states")
	},
		Entry("of growth that is split", Moves{Max: 3, Most: 4}),
		Entry("of growth beside one at its max", Moves{Max: 4, OtherMax: 1, Most: 4}),
		Entry("of replicas that are kept even", Moves{Continuous: true, Max: 3, Most: 4}),
		Entry("of growth and of a pool's excess", Moves{Max: 3, Pool: 1, Most: 3}),
		Entry("of replicas and of a pool's excess", Moves{Continuous: true, Max: 3, Pool: 1, Most: 3}),
		Entry("of machines that may not go", Moves{Continuous: true, Max: 2, Most: 3, Bounds: true, Pins: true}),
	)

	DescribeTable("breaks a law without each guard and promise", func(m Moves, faults int, law string) {
		m.Max, m.Most, m.Faults = cmp.Or(m.Max, 3), cmp.Or(m.Most, 4), faults
		r := search(m)
		Expect(r.Story).NotTo(BeNil())
		Expect(r.Story.Wrong).To(HavePrefix(law), "%s", r.Story)
		Expect(replayAgain[MoveWorld](NewMoves(m), r.Story)).To(Equal(r.Story.Wrong))
		AddReportEntry("story", r.Story.String())
	},
		Entry("of versions", Moves{Unguarded: GuardVersion}, 2, "I9"),
		Entry("of what was taken", Moves{Unguarded: RecordTaken}, 1, "B1"),
		Entry("of pods that must not be evicted", Moves{Continuous: true, Pins: true, Max: 2, Most: 3, Unguarded: ReadPods}, 2, "B4"),
		Entry("of machines that boot", Moves{Continuous: true, Unguarded: ReadReadiness}, 1, "B4"),
		Entry("of shares that boot", Moves{Pool: 1, Most: 3, Unguarded: ReadReadiness}, 2, "B6"),
	)
})
