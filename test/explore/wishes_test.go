// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Every interleaving of Reserves", func() {
	search := func(m Wishes) Result[WishWorld] {
		began := time.Now()
		r := Search[WishWorld](NewWishes(m), *most)
		AddReportEntry("searched", fmt.Sprintf("%d states and %d steps in %s, %s of processors so far", r.States, r.Edges, time.Since(began).Round(time.Millisecond), processorTime()), ReportEntryVisibilityAlways)
		return r
	}

	DescribeTable("keeps the laws and comes to rest", func(m Wishes) {
		m.Faults = min(*faults, cmp.Or(m.Faults, *faults))
		r := search(m)
		if r.Story != nil {
			Fail(r.Story.String())
		}
		Expect(r.Exhausted).To(BeTrue(), "more states than -explore.states")
	},
		Entry("of one over two MachineDeployments", Wishes{Amount: 2, Rooms: [2]int{2, 2}, Faults: 2}),
		Entry("of one over two MachineDeployments with little room", Wishes{Amount: 3, Rooms: [2]int{2, 1}, Faults: 2}),
		Entry("of two that share a MachineDeployment", Wishes{Amount: 3, Rooms: [2]int{2, 1}, Queue: 1, Faults: 2}),
	)

	DescribeTable("breaks a law without each guard and promise", func(m Wishes, wrong string) {
		m.Faults = 1
		r := search(m)
		Expect(r.Story).NotTo(BeNil())
		Expect(r.Story.Wrong).To(HavePrefix(wrong), "%s", r.Story)
		Expect(replayAgain[WishWorld](NewWishes(m), r.Story)).To(Equal(r.Story.Wrong))
		AddReportEntry("story", r.Story.String())
	},
		Entry("of versions", Wishes{Amount: 3, Rooms: [2]int{2, 2}, Unguarded: GuardVersion}, "I9"),
		Entry("of where machines cannot be created", Wishes{Amount: 2, Rooms: [2]int{2, 2}, Unguarded: KeepBlocked}, "I4: The request of b was raised to 2, and is to be 1 again"),
	)
})
