// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"flag"
	"fmt"
	"syscall"
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

// processorTime returns how long this process has used processors.
func processorTime() time.Duration {
	var usage syscall.Rusage
	Expect(syscall.Getrusage(syscall.RUSAGE_SELF, &usage)).To(Succeed())
	return (time.Duration(usage.Utime.Nano()) + time.Duration(usage.Stime.Nano())).Round(time.Second)
}

// unmakeable returns a world with machines that serve and two in reserve, the last of which cannot be
// made.
func unmakeable(serving, limit int) World {
	w := settled(serving, 2, 0, 0, limit, false)
	m := &w.machines[serving+1]
	m.phase, m.failing, m.closed, m.priority = unmade, true, false, 3
	m.updateStore()
	return w
}

// halfReleased returns a world where the process was killed between its two writes when it released
// a machine for larger replicas: its Node accepts pods, and the Machine has its mark.
func halfReleased() World {
	w := settled(2, 1, 1, 0, 3, false)
	w.machines[1].marked, w.machines[1].was, w.machines[1].priority = true, true, 5
	w.machines[1].updateStore()
	w.machines[2] = machine{}
	return w
}

// namedInReserve returns a world where an autoscaler has named a reserve machine for deletion, and
// that is settled.
func namedInReserve() World {
	w := settled(2, 1, 1, 0, 0, false)
	w.machines[2].named, w.machines[2].returned = true, true
	return w
}

// leftOver returns a world in a rollout in which the excess has fallen to 0 for a machine that could
// not be made, and was made after all: it is in reserve beside a busy machine of the old MachineSet,
// which is to have one of them, and there is no room for another new machine.
func leftOver() World {
	w := settled(2, 1, 1, 0, 0, false)
	w.record, w.template, w.templateSeen = record{}, 1, 1
	w.machines[1], w.machines[2] = w.machines[2], w.machines[1]
	w.machines[2].set = 1
	for s := range w.sets {
		w.sets[s] = machineSet{there: true, asks: 1, total: 3}
		w.sets[s].updateStore()
	}
	w.deploymentSeen = w.visible()
	return w
}

// report prints what was searched.
func report(what string, r Result[World], began time.Time) {
	text := fmt.Sprintf("%d states and %d steps in %s, %s of processors so far", r.States, r.Edges, time.Since(began).Round(time.Millisecond), processorTime())
	AddReportEntry(what, text, ReportEntryVisibilityAlways)
}

var _ = Describe("Every interleaving", func() {
	DescribeTable("keeps the laws and comes to rest", func(m Reserve) {
		m.Faults = min(*faults, cmp.Or(m.Faults, *faults))
		began := time.Now()
		r := Search[World](New(m), *most)
		report("searched", r, began)
		if r.Story != nil {
			Fail(r.Story.String())
		}
		Expect(r.Exhausted).To(BeTrue(), "more states than -explore.states")
	},
		Entry("beyond replicas, without a maximum", Reserve{Reductions: true}),
		Entry("beyond replicas, with a maximum of 3", Reserve{Reductions: true, Max: 3}),
		Entry("within replicas, without a maximum", Reserve{Inclusive: true}),
		Entry("within replicas, with a maximum of 3", Reserve{Inclusive: true, Max: 3}),
		Entry("within replicas, which users raise beyond a maximum of 3", Reserve{Inclusive: true, Beyond: true, Max: 3}),
		Entry("in rollouts, beyond replicas", Reserve{Rollouts: true, Faults: 1, Sizes: [2]int{1, 1}}),
		Entry("in rollouts, beyond replicas, with a maximum of 2", Reserve{Rollouts: true, Faults: 1, Bounds: true, Sizes: [2]int{1, 1}, Max: 2}),
		Entry("in rollouts, within replicas", Reserve{Rollouts: true, Faults: 1, Inclusive: true, Sizes: [2]int{1, 1}, Max: 2}),
		Entry("in rollouts, with what is left of a reserve", Reserve{Faults: 1, Sizes: [2]int{0, 1}, From: []World{leftOver()}}),
		Entry("with named machines, beyond replicas", Reserve{Names: true, Sizes: [2]int{2, 1}, Max: 3}),
		Entry("with named machines, within replicas", Reserve{Names: true, Inclusive: true, Sizes: [2]int{2, 1}, Max: 3}),
		Entry("with a machine that cannot be made", Reserve{Faults: 1, Reductions: true, Sizes: [2]int{0, 2}, Max: 2, From: []World{unmakeable(0, 2)}}),
		Entry("with a machine whose release has begun", Reserve{Sizes: [2]int{2, 1}, Max: 3, From: []World{halfReleased()}}),
		Entry("with a machine that is named in reserve", Reserve{Faults: 1, Names: true, Sizes: [2]int{2, 1}, From: []World{namedInReserve()}}),
		Entry("with preserved machines", Reserve{Preserve: true, Sizes: [2]int{1, 2}}),
		Entry("with bounds that change", Reserve{Bounds: true, Sizes: [2]int{1, 2}, Max: 3}),
		Entry("with bounds that change, within replicas", Reserve{Bounds: true, Inclusive: true, Sizes: [2]int{1, 2}, Max: 3}),
	)

	DescribeTable("breaks a law without each guard and promise", func(m Reserve, faults int, law string) {
		m.Faults = faults
		began := time.Now()
		r := Search[World](New(m), *most)
		report("searched", r, began)
		Expect(r.Story).NotTo(BeNil())
		Expect(r.Story.Wrong).To(HavePrefix(law), "%s", r.Story)
		Expect(replayAgain[World](New(m), r.Story)).To(Equal(r.Story.Wrong))
		AddReportEntry("story", r.Story.String())
	},
		Entry("of creations", Reserve{Unguarded: GuardCreate, Sizes: [2]int{1, 1}, Max: 2}, 2, "I1"),
		Entry("of pods that come late", Reserve{Unguarded: GuardEmpty, From: []World{settled(2, 0, 1, 3, 0, false)}}, 3, "I2"),
		Entry("of deletions", Reserve{Unguarded: GuardRemove, From: []World{settled(1, 1, 1, 2, 0, false)}}, 2, "I3"),
		Entry("of machines that are needed", Reserve{Unguarded: GuardNeeded, From: []World{settled(1, 1, 1, 2, 0, false)}}, 2, "I3"),
		Entry("of what plans remember", Reserve{Unguarded: KeepMemory, From: []World{settled(1, 1, 1, 1, 0, false)}}, 1, "I4"),
		Entry("of who may be retired", Reserve{Unguarded: RetireSurplus, From: []World{settled(1, 1, 0, 1, 0, false)}}, 1, "I4: a was put into reserve, and is to be released again"),
		Entry("of Nodes' marks", Reserve{Unguarded: RepairNodes, From: []World{settled(1, 1, 0, 2, 0, false)}}, 2, "I5"),
		Entry("of settings that cannot be parsed", Reserve{Unguarded: KeepUnparsed, Sizes: [2]int{1, 1}, Max: 3, Bounds: true}, 1, "I6"),
		Entry("of reductions", Reserve{Unguarded: KeepReduction, Reductions: true, Sizes: [2]int{1, 2}, From: []World{unmakeable(1, 0)}}, 1, "L10"),
		Entry("of versions", Reserve{Unguarded: GuardVersion, Sizes: [2]int{1, 1}}, 2, "I9"),
	)

	It("gives no target fewer replicas when there is one more to distribute (I8)", func() {
		r := Search[share](Distribution{Most: 9}, *most)
		AddReportEntry("searched", fmt.Sprintf("%d states and %d steps", r.States, r.Edges))
		Expect(r.Exhausted).To(BeTrue())
		if r.Story != nil {
			Fail(r.Story.String())
		}
		planted := Search[share](Distribution{Most: 9, Unsteady: true}, *most)
		Expect(planted.Story).NotTo(BeNil())
		Expect(planted.Story.Wrong).To(HavePrefix("I8"))
		AddReportEntry("story", planted.Story.String())
	})
})
