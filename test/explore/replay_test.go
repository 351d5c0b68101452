// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// replay returns what is wrong at the end of a story.
func replay[S comparable](m Model[S], begin int, names ...string) string {
	return Replay(m, begin, names...).Wrong
}

// replayAgain replays a story that a search told.
func replayAgain[S comparable](m Model[S], s *Story[S]) string {
	var names []string
	at := s.Begin
	for _, step := range s.Steps {
		steps := m.Steps(at)
		names = append(names, stepNames(steps)[slices.Index(steps, step)])
		at = step.To
	}
	return replay(m, slices.Index(m.Begin(), s.Begin), names...)
}

var _ = Describe("A story", func() {
	DescribeTable("that a search told does not end badly any more", func(wrong string) {
		Expect(wrong).To(BeEmpty())
	},
		Entry("N8: a1 serves and is deleted, though nobody removed it.", replay(NewRemovals(Removals{Replicas: 3, Max: 3, Faults: 1}), 1, "machine-controller-manager creates a3.", "The autoscaler withdraws what does not exist.", "The server decides.", "The server writes.", "The server's store shows the Machines.", "a3 is ready.", "machine-controller-manager deletes a1.")),
	)

	It("prints a line that replays it", func() {
		r := Search[MoveWorld](NewMoves(Moves{Max: 3, Most: 4, Faults: 2, Unguarded: GuardVersion}), 100_000)
		Expect(r.Story.String()).To(HaveSuffix("\n" + r.Story.Line + "\n"))
		Expect(r.Story.Line).To(Equal(`Entry("I9: a is written though it has changed since.", replay(NewMoves(Moves{Max: 3, Most: 4, Faults: 2, Unguarded: 5}), 0, "A user changes replicas of a to 1.", "The store shows the MachineDeployments.", "The controller plans.", "An autoscaler raises a by 1.", "The controller writes a.")),`))
	})

	It("ends where the search says, also if the last steps repeat forever, or nothing is left to do", func() {
		Expect(replay[int](drawing{{0, 1, 1}, {1, 2, 1}, {2, 1, 1}}, 0, "01", "12", "21")).To(Equal("I4: The last 2 steps repeat forever, though nothing fails."))
		Expect(replay[int](drawing{{0, 1, 1}, {1, 2, 1}, {2, 1, 1}}, 0, "01", "12")).To(BeEmpty())
	})

	It("goes on without steps that are no longer possible", func() {
		s := Replay[int](drawing{{0, 1, 1}, {1, 2, 1}}, 0, "03", "01", "13", "12")
		Expect(s.Wrong).To(BeEmpty())
		Expect(s.Steps).To(HaveLen(2))
	})
})
