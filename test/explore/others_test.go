// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"

	. "github.com/onsi/ginkgo/v2"
)

var _ = Describe("Every interleaving of moves between zones", func() {
	DescribeTable("keeps the laws and comes to rest", func(m Moves) {
		m.Faults = *faults
		expectLaws(NewMoves(m))
	},
		Entry("of growth that is split", Moves{Max: 3, Most: 4}),
		Entry("of growth beside one at its max", Moves{Max: 4, OtherMax: 1, Most: 4}),
		Entry("of replicas that are kept even", Moves{Continuous: true, Max: 3, Most: 4}),
		Entry("of growth and of a pool's excess", Moves{Max: 3, Pool: 1, Most: 3}),
		Entry("of replicas and of a pool's excess", Moves{Continuous: true, Max: 3, Pool: 1, Most: 3}),
		Entry("of machines that may not go", Moves{Continuous: true, Max: 2, Most: 3, Bounds: true, Pins: true}),
		Entry("of growth for one that has reached its max", Moves{Promised: true, Max: 2, Most: 3, Bounds: true}),
	)

	DescribeTable("breaks a law without each guard and promise", func(m Moves, faults int, law string) {
		m.Max, m.Most, m.Faults = cmp.Or(m.Max, 3), cmp.Or(m.Most, 4), faults
		expectBroken(NewMoves(m), law)
	},
		Entry("of versions", Moves{Unguarded: GuardVersion}, 2, "I9"),
		Entry("of what was taken", Moves{Unguarded: RecordTaken}, 1, "B1"),
		Entry("of what was declined", Moves{Promised: true, Bounds: true, Unguarded: RecordDeclined}, 2, "B1"),
		Entry("of pods that must not be evicted", Moves{Continuous: true, Pins: true, Max: 2, Most: 3, Unguarded: ReadPods}, 2, "B4"),
		Entry("of machines that boot", Moves{Continuous: true, Unguarded: ReadReadiness}, 1, "B4"),
		Entry("of shares that boot", Moves{Pool: 1, Most: 3, Unguarded: ReadReadiness}, 2, "B6"),
	)
})

var _ = Describe("Every interleaving of those who raise replicas", func() {
	DescribeTable("keeps the laws and comes to rest", func(m Raises) {
		m.Faults = 2 * *faults // pods that come are among them
		expectLaws(NewRaises(m))
	},
		Entry("with one machine in reserve", Raises{Spare: 1, Max: 3}),
		Entry("with two machines in reserve", Raises{Spare: 2, Max: 3}),
		Entry("without a reserve", Raises{Max: 3}),
		Entry("without an autoscaler", Raises{Spare: 2, Max: 3, Alone: true}),
	)

	DescribeTable("breaks a law without each guard and promise", func(m Raises, law string) { expectBroken(NewRaises(m), law) },
		Entry("of versions", Raises{Spare: 1, Max: 3, Faults: 2, Unguarded: GuardVersion}, "I9"),
		Entry("of where requests count from", Raises{Spare: 1, Max: 3, Faults: 2, Unguarded: CountFromLoop}, "N12"),
		Entry("of loops that end with the process", Raises{Spare: 1, Max: 3, Faults: 2, Unguarded: KeepLoop}, "N12"),
	)
})

var _ = Describe("Every interleaving of two groups of pods that need the same reserve", func() {
	DescribeTable("keeps the laws and comes to rest", func(m Gangs) {
		m.Faults = 2 * *faults // pods that come are among them
		expectLaws(NewGangs(m))
	},
		Entry("with machines for one of them", Gangs{Sizes: [2]int{2, 2}, Spare: 2, Max: 4}),
		Entry("with a machine too few for both", Gangs{Sizes: [2]int{2, 2}, Spare: 3, Max: 4}),
		Entry("with a smaller one", Gangs{Sizes: [2]int{3, 1}, Spare: 3, Max: 4}),
		Entry("with a small maximum", Gangs{Sizes: [2]int{2, 1}, Spare: 2, Max: 3}),
	)

	DescribeTable("breaks a law without each guard and promise", func(m Gangs, law string) { expectBroken(NewGangs(m), law) },
		Entry("of versions", Gangs{Sizes: [2]int{2, 2}, Spare: 2, Max: 4, Faults: 2, Unguarded: GuardVersion}, "I9"),
		Entry("of pods that start together", Gangs{Sizes: [2]int{2, 2}, Spare: 3, Max: 4, Faults: 2, Unguarded: TogetherOnly}, "G1"),
	)
})

var _ = Describe("Every interleaving of removals by an autoscaler", func() {
	DescribeTable("keeps the laws and comes to rest", func(m Removals) {
		m.Faults += *faults
		expectLaws(NewRemovals(m))
	},
		Entry("without a reserve", Removals{Replicas: 3, Max: 3}),
		Entry("with a machine in reserve", Removals{Replicas: 2, Spare: 1, Max: 3}),
		Entry("at the minimum", Removals{Replicas: 2, Spare: 1, Min: 1, Max: 2}),
		Entry("at the minimum, without a reserve", Removals{Replicas: 1, Min: 1, Max: 2}),
		Entry("with a fault more", Removals{Replicas: 1, Max: 2, Faults: 1}),
	)

	DescribeTable("breaks a law without each guard and promise", func(m Removals, faults int, law string) {
		m.Replicas, m.Max, m.Faults = cmp.Or(m.Replicas, 2), 3, faults
		expectBroken(NewRemovals(m), law)
	},
		Entry("of machines that stores do not show", Removals{Replicas: 3, Unguarded: ReadMachines}, 1, "N8"),
		Entry("of machines that are removed twice", Removals{Unguarded: ReadMachines, Spare: 1}, 3, "N7"),
		Entry("of writes that were lost", Removals{Unguarded: DecideAgain}, 3, "N5"),
		Entry("of names that are repeated", Removals{Unguarded: RemindNames}, 2, "I5"),
	)
})

var _ = Describe("Every interleaving of Reserves", func() {
	DescribeTable("keeps the laws and comes to rest", func(m Wishes) {
		m.Faults = min(*faults, cmp.Or(m.Faults, *faults))
		expectLaws(NewWishes(m))
	},
		Entry("of one over two MachineDeployments", Wishes{Amount: 2, Rooms: [2]int{2, 2}, Faults: 2}),
		Entry("of one over two MachineDeployments with little room", Wishes{Amount: 3, Rooms: [2]int{2, 1}, Faults: 2}),
		Entry("of two that share a MachineDeployment", Wishes{Amount: 3, Rooms: [2]int{2, 1}, Queue: 1, Faults: 2}),
	)

	DescribeTable("breaks a law without each guard and promise", func(m Wishes, wrong string) {
		m.Faults = 1
		expectBroken(NewWishes(m), wrong)
	},
		Entry("of versions", Wishes{Amount: 3, Rooms: [2]int{2, 2}, Unguarded: GuardVersion}, "I9"),
		Entry("of where machines cannot be created", Wishes{Amount: 2, Rooms: [2]int{2, 2}, Unguarded: KeepBlocked}, "I4: The request of b was raised to 2, and is to be 1 again"),
	)
})
