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
	w := settled(serving, 2, 0, limit, false)
	s := &w.machines[serving+1]
	s.machine.is.phase, s.machine.is.failing, s.host.is.there = unmade, true, false
	w.showAll()
	return w
}

// halfReleased returns a world where the process was killed between its two writes when it released
// a machine for larger replicas: its Node accepts pods, and the Machine has its mark.
func halfReleased() World {
	w := settled(1, 1, 1, 3, false)
	w.deployment.is.replicas = 2
	w.machines[1].host.is.closed = false
	w.showAll()
	return w
}

// namedInReserve returns a world where an autoscaler has named a reserve machine for deletion.
func namedInReserve() World {
	w := settled(2, 1, 1, 0, false)
	w.deployment.is.named = 1 << 2
	w.showAll()
	return w
}

// shrinking returns a world where a user has just given up the reserve.
func shrinking() World {
	w := settled(1, 1, 1, 0, false)
	w.deployment.is.excess = 0
	w.showAll()
	return w
}

// explore searches a model, and reports how long that takes.
func explore[S comparable](m Model[S]) Result[S] {
	began := time.Now()
	r := Search(m, *most)
	AddReportEntry("searched", fmt.Sprintf("%d states and %d steps in %s, %s of processors so far", r.States, r.Edges, time.Since(began).Round(time.Millisecond), processorTime()), ReportEntryVisibilityAlways)
	return r
}

// expectLaws searches a model for a broken law.
func expectLaws[S comparable](m Model[S]) {
	GinkgoHelper()
	r := explore(m)
	if r.Story != nil {
		Fail(r.Story.String())
	}
	Expect(r.Exhausted).To(BeTrue(), "more states than -explore.states")
}

// expectBroken searches a model for a law that is broken.
func expectBroken[S comparable](m Model[S], law string) {
	GinkgoHelper()
	r := explore(m)
	Expect(r.Story).NotTo(BeNil())
	Expect(r.Story.Wrong).To(HavePrefix(law), "%s", r.Story)
	Expect(replayAgain(m, r.Story)).To(Equal(r.Story.Wrong))
	AddReportEntry("story", r.Story.String())
}

var _ = Describe("Every interleaving", func() {
	DescribeTable("keeps the laws and comes to rest", func(m Reserve) {
		m.Faults = min(*faults, cmp.Or(m.Faults, *faults))
		expectLaws(New(m))
	},
		Entry("beyond replicas, without a maximum", Reserve{Release: true}),
		Entry("beyond replicas, with a maximum of 3", Reserve{Release: true, Max: 3}),
		Entry("within replicas, without a maximum", Reserve{Inclusive: true}),
		Entry("within replicas, with a maximum of 3", Reserve{Inclusive: true, Release: true, Max: 3}),
		Entry("within replicas, which users raise beyond a maximum of 3", Reserve{Inclusive: true, Beyond: true, Max: 3}),
		Entry("with requests that are lost", Reserve{Losses: true, Sizes: [2]int{2, 1}}),
		Entry("with requests that are lost, within replicas", Reserve{Losses: true, Inclusive: true, Sizes: [2]int{1, 2}, Max: 3}),
		Entry("with two instances", Reserve{Instances: true, Sizes: [2]int{2, 1}}),
		Entry("with a target cluster that is silent", Reserve{Silence: true, Release: true, Sizes: [2]int{2, 1}, Max: 3}),
		Entry("in rollouts, beyond replicas", Reserve{Rollouts: true, Release: true, Sizes: [2]int{2, 1}}),
		Entry("in rollouts, beyond replicas, with a maximum of 2", Reserve{Rollouts: true, Bounds: true, Losses: true, Sizes: [2]int{1, 1}, Max: 2}),
		Entry("in rollouts, within replicas", Reserve{Rollouts: true, Inclusive: true, Sizes: [2]int{1, 2}, Max: 3}),
		Entry("in rollouts, with a target cluster that is silent", Reserve{Rollouts: true, Silence: true, Sizes: [2]int{1, 1}}),
		Entry("with named machines, beyond replicas", Reserve{Names: true, Release: true, Sizes: [2]int{2, 1}, Max: 3}),
		Entry("with named machines, within replicas", Reserve{Names: true, Inclusive: true, Sizes: [2]int{2, 1}, Max: 3}),
		Entry("with named machines, in rollouts", Reserve{Names: true, Rollouts: true, Sizes: [2]int{1, 1}}),
		Entry("with a machine that cannot be made", Reserve{Sizes: [2]int{1, 2}, Max: 3, From: []World{unmakeable(0, 2), unmakeable(1, 3)}}),
		Entry("with a machine whose release has begun", Reserve{Release: true, Losses: true, Sizes: [2]int{2, 1}, Max: 3, From: []World{halfReleased()}}),
		Entry("with a machine that is released while it goes", Reserve{Release: true, Sizes: [2]int{2, 1}, From: []World{shrinking()}}),
		Entry("with a machine that is named in reserve", Reserve{Faults: 1, Names: true, Sizes: [2]int{2, 1}, From: []World{namedInReserve()}}),
		Entry("with preserved machines", Reserve{Preserve: true, Sizes: [2]int{1, 2}}),
		Entry("with bounds that change", Reserve{Bounds: true, Sizes: [2]int{1, 2}, Max: 3}),
		Entry("with bounds that change, within replicas", Reserve{Bounds: true, Inclusive: true, Sizes: [2]int{1, 2}, Max: 3}),
	)

	DescribeTable("breaks a law without each guard and promise", func(m Reserve, faults int, law string) {
		m.Faults = faults
		expectBroken(New(m), law)
	},
		Entry("of versions", Reserve{Unguarded: GuardVersion, Sizes: [2]int{1, 1}}, 2, "I9"),
		Entry("of MachineDeployments that have changed", Reserve{Unguarded: ConfirmUnchanged, From: []World{settled(2, 1, 2, 0, false)}}, 2, "I"),
		Entry("of pods that come late", Reserve{Unguarded: ListPods, From: []World{settled(2, 0, 1, 0, false)}}, 3, "I2"),
		Entry("of machines that are deleted while they are released", Reserve{Unguarded: ExcludeReleases, Release: true, From: []World{shrinking()}}, 2, "I2"),
		Entry("of answers", Reserve{Unguarded: KeepAnswers, Sizes: [2]int{1, 1}}, 1, "I1"),
		Entry("of names that are repeated", Reserve{Unguarded: RepeatNames, Losses: true, Sizes: [2]int{1, 1}}, 2, "I1"),
		Entry("of Nodes' marks", Reserve{Unguarded: RepairNodes, From: []World{settled(1, 1, 0, 0, false)}}, 2, "I5"),
		Entry("of settings that cannot be parsed", Reserve{Unguarded: KeepUnparsed, Sizes: [2]int{1, 1}, Max: 3, Bounds: true}, 1, "I6"),
	)

	It("gives no target fewer replicas when there is one more to distribute (I8)", func() {
		expectLaws(Distribution{Most: 9})
		planted := Search[share](Distribution{Most: 9, Unsteady: true}, *most)
		Expect(planted.Story).NotTo(BeNil())
		Expect(planted.Story.Wrong).To(HavePrefix("I8"))
		AddReportEntry("story", planted.Story.String())
	})
})
