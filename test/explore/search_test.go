// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// drawing is a model that is drawn: each of its steps is written as "from to actor", and state 0 is
// the first one.
type drawing [][3]int

func (d drawing) Begin() []int { return []int{0} }

func (d drawing) Rest(int) string { return "" }

func (d drawing) Steps(from int) (all []Step[int]) {
	for _, line := range d {
		if line[0] == from {
			all = append(all, Step[int]{What: string(rune('0'+from)) + string(rune('0'+line[1])), To: line[1], Actor: Actor(line[2])})
		}
	}
	return all
}

var _ = Describe("Steps that repeat forever", func() {
	DescribeTable("are a story only if they are fair", func(d drawing, way string) {
		r := Search[int](d, 100)
		if way == "" {
			Expect(r.Story).To(BeNil())
			return
		}
		Expect(r.Story).NotTo(BeNil())
		Expect(r.Story.Wrong).To(HavePrefix("I4"))
		var steps []string
		for _, step := range r.Story.Steps {
			steps = append(steps, step.What)
		}
		Expect(strings.Join(steps, " ")).To(Equal(way))
	},
		Entry("if nobody takes another step", drawing{{0, 1, 1}, {1, 2, 1}, {2, 1, 1}}, "01 12 21"),
		Entry("if steps end", drawing{{0, 1, 1}, {1, 2, 2}, {0, 2, 2}}, ""),
		Entry("not if an actor could end them all the time", drawing{{0, 1, 1}, {1, 0, 1}, {0, 2, 2}, {1, 2, 2}}, ""),
		Entry("if that actor could not do so all the time", drawing{{0, 1, 1}, {1, 0, 1}, {0, 2, 2}}, "01 10"),
		Entry("if that actor is promised no turn", drawing{{0, 1, 1}, {1, 0, 1}, {0, 2, 0}, {1, 2, 0}}, "01 10"),
		Entry("if that actor has another step among them", drawing{{0, 1, 1}, {1, 0, 1}, {0, 4, 2}, {1, 2, 2}, {2, 0, 1}, {2, 4, 2}}, "01 12 20"),
		Entry("by two actors that could each end those of the other", drawing{{0, 1, 1}, {1, 0, 1}, {0, 3, 2}, {1, 3, 2}, {0, 2, 2}, {2, 0, 2}, {2, 3, 1}}, "01 10 02 20"),
		Entry("that an unfair way leads to", drawing{{0, 1, 1}, {1, 0, 1}, {0, 2, 2}, {1, 2, 2}, {2, 3, 1}, {3, 2, 2}}, "02 23 32"),
	)
})

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
		Entry("I1: MachineSets grow to 4 machines, and the maximum is 3.", replay(New(Reserve{Sizes: [2]int{1, 1}, Max: 2, Faults: 1, Rollouts: true, Bounds: true, Losses: true}), 4, "A user changes the template.", "The controller sees the MachineDeployment.", "The controller plans.", "The controller reads the MachineDeployment again.", "The controller writes set1.", "The controller plans.", "The controller reads the MachineDeployment and its MachineSets again.", "The controller creates a machine.", "c is made.", "c is ready.", "The controller sees Machine c.", "The controller plans.", "The controller reads the MachineDeployment again.", "The controller writes set0.", "The controller reads the MachineDeployment and its MachineSets again.", "The controller lists the pods of b.", "The controller deletes b.", "b is gone.", "The controller plans.", "The controller reads the MachineDeployment again.", "The controller writes set1.", "The controller reads the MachineDeployment and its MachineSets again.", "The controller creates a machine.", "c is made.", "c is ready.", "The controller sees Machine c.", "The controller plans.")),
		Entry("L6: 1 new machines that serve are deleted in place of those in reserve: 2 serve of 2.", replay(New(Reserve{Sizes: [2]int{2, 1}, Faults: 2, Rollouts: true, Release: true}), 9, "A user changes the template.", "The controller sees the MachineDeployment.", "The controller plans.", "The controller reads the MachineDeployment again.", "The controller writes set1.", "The controller plans.", "The controller reads the MachineDeployment and its MachineSets again.", "The controller creates a machine.", "d is made.", "d is ready.", "The controller sees Machine d.", "The controller plans.", "The controller reads the MachineDeployment again.", "The controller writes set0.", "The controller reads the MachineDeployment and its MachineSets again.", "The controller lists the pods of c.", "The controller deletes c.", "c is gone.", "The controller plans.", "The controller reads the MachineDeployment again.", "The controller writes set1.", "The controller reads the MachineDeployment and its MachineSets again.", "The controller creates a machine.", "d is made.", "d is ready.", "A user changes the excess to 0.", "The controller sees the MachineDeployment.", "The controller plans.", "The controller writes the MachineDeployment.", "The controller writes set0.", "The controller writes set1.", "The controller plans.", "The controller reads the MachineDeployment and its MachineSets again.", "The controller lists the pods of a.", "The controller deletes a.", "The controller plans.", "The controller writes Machine c.", "The controller sees Machine d.", "The controller plans.")),
		Entry("N8: a1 serves and is deleted, though nobody removed it.", replay(NewRemovals(Removals{Replicas: 3, Max: 3, Faults: 1}), 1, "The controller creates a3.", "The autoscaler withdraws what does not exist.", "The server decides.", "The server writes.", "The server's store shows the Machines.", "a3 is ready.", "The controller deletes a1.")),
	)

	It("prints a line that replays it", func() {
		r := Search[MoveWorld](NewMoves(Moves{Max: 3, Most: 4, Faults: 2, Unguarded: GuardVersion}), 100_000)
		Expect(r.Story.String()).To(HaveSuffix("\n" + r.Story.Line + "\n"))
		Expect(r.Story.Line).To(Equal(`Entry("I9: a is written though it has changed since.", replay(NewMoves(Moves{Max: 3, Most: 4, Faults: 2, Unguarded: 1}), 0, "A user changes replicas of a to 1.", "The store shows the MachineDeployments.", "The controller plans.", "An autoscaler raises a by 1.", "The controller writes a.")),`))
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
