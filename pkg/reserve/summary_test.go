// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"os"
	"regexp"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

// cannotBeMade has the newest reserve machine of a world be one that cannot be created.
func cannotBeMade(w *world) {
	m := w.machine("d")
	m.Phase, m.Failing, m.HasProviderID, m.Registered = mcm.MachineCrashLoopBackOff, true, false, false
}

var _ = DescribeTable("A summary says",
	func(view View, want string) {
		Expect(Decide(view).Summary.Message).To(Equal(want))
	},
	Entry("how many are there, and no more, of a reserve at rest", settled(3, 1, Unbounded).view, "3 of 3 machines serve, 1 of 1 in reserve, 1 of these ready"),
	Entry("how many serve while some are to come", func() View {
		w := settled(3, 0, Unbounded)
		w.view.Replicas = 5
		return w.view
	}(), "3 of 5 machines serve, 0 of 0 in reserve, 0 of these ready"),
	Entry("what max leaves room for", func() View {
		w := settled(3, 1, 4)
		w.view.Wish = 3
		return w.view
	}(), "3 of 3 machines serve, 1 of 1 in reserve, 1 of these ready; max 4 leaves room for 1 of the 3 desired"),
	Entry("which reduction counts until when", reduced(),
		"5 of 5 machines serve, 2 of 2 in reserve, 2 of these ready; a client reduced replicas, which include the reserve, to 7; next try to reach a reserve of 3 after 2026-01-01T00:01:00Z"),
	Entry("which reduction counts for ever", func() View {
		v := reduced()
		v.Lowered.Lasting = true
		return v
	}(), "5 of 5 machines serve, 2 of 2 in reserve, 2 of these ready; Gardener reduced replicas, which include the reserve, to 7; this counts as max until replicas or the bounds are raised"),
	Entry("when what could not be made is tried again", func() View {
		w := settled(3, 0, Unbounded)
		w.view.Wish = 1
		w.view.Retry = Retry{Failures: 2, Until: start.Add(2 * time.Minute)}
		return w.view
	}(), "3 of 3 machines serve, 0 of 1 in reserve, 0 of these ready; failures to create machines in a row: 2, next try after 2026-01-01T00:02:00Z"),
)

var _ = DescribeTable("The reason of a reserve of one of three that serve is",
	func(want Reason, do func(*world)) {
		w := settled(3, 1, Unbounded)
		do(w)
		Expect(Decide(w.view).Summary.Reason).To(Equal(want))
	},
	Entry("that it is complete", Complete, func(*world) {}),
	Entry("that it is complete while a new max is recorded", Complete, func(w *world) { w.view.Max = 5 }),
	Entry("that it is complete with a machine that is available and joins no cluster", Complete, phase("d", mcm.MachineAvailable)),
	Entry("that it is complete while another machine leaves", Complete, func(w *world) { w.add(running(false)).Named = true }),
	Entry("that it is not ready", NotReady, phase("d", mcm.MachinePending)),
	Entry("that it grows", Growing, wish(2)),
	Entry("a rollout", RollingOut, all(wish(2), replacing)),
	Entry("that none is desired", NotWanted, func(w *world) {
		w.view.Machines = w.view.Machines[:3]
		all(unapplied, wish(0))(w)
	}),
	Entry("that none is desired, even if replicas exceed max", NotWanted, func(w *world) {
		w.view.Machines = w.view.Machines[:3]
		all(unapplied, bounded(2), wish(0))(w)
	}),
	Entry("replicas above max", AboveMax, all(bounded(2), terminating("d"))),
	Entry("max", AtMax, all(bounded(4), wish(2))),
	Entry("one that is preserved", Protected, all(protected("d"), wish(0))),
	Entry("that it shrinks", Shrinking, wish(0)),
	Entry("that it shrinks, though it will not shrink by one that is preserved", Shrinking, func(w *world) {
		w.add(running(true)).Protected = true
		w.view.Wish = 0
	}),
	Entry("that it shrinks, though a machine is unhealthy", Shrinking, func(w *world) {
		w.add(running(true))
		w.add(running(false)).Phase = mcm.MachineUnknown
	}),
	Entry("that it shrinks, while a pod runs there", Shrinking, all(busy("d"), wish(0))),
	Entry("an unhealthy machine beside a reserve of the right size", Unhealthy, func(w *world) { w.add(running(false)).Phase = mcm.MachineUnknown }),
	Entry("an unhealthy machine in the place of another", Unhealthy, func(w *world) { w.view.Wish = 2; w.add(running(false)).Phase = mcm.MachineUnknown }),
	Entry("a machine that leaves and takes the room below max", AwaitingDeletion, all(bounded(4), terminating("d"))),
	Entry("that it grows beside a machine that leaves, where there is room", Growing, all(bounded(5), terminating("d"))),
	Entry("that one cannot be created", CannotBeMade, cannotBeMade),
	Entry("that too few serve", Refilling, replicas(5)),
	Entry("that too many serve", SurplusServing, func(w *world) { w.add(running(false)).Pods = 1; w.view.Applied.Excess = 2 }),
)

var _ = DescribeTable("A plan is made again (10)",
	func(want time.Duration, do func(*world)) {
		w := settled(3, 1, Unbounded)
		w.machine("d").Created = start
		do(w)
		Expect(Decide(w.view).Again).To(Equal(want))
	},
	Entry("never without a reason", time.Duration(0), func(*world) {}),
	Entry("when a machine has booted for too long", 20*time.Minute, phase("d", mcm.MachinePending)),
	Entry("not for one that goes", time.Duration(0), phase("d", mcm.MachineTerminating)),
	Entry("not for one that fails for good", time.Duration(0), phase("d", mcm.MachineFailed)),
	Entry("when a machine has booted for the shortest limit", time.Nanosecond, func(w *world) { phase("d", mcm.MachinePending)(w); w.view.BootPatience = 1 }),
	Entry("not while booting has no limit", time.Duration(0), func(w *world) { phase("d", mcm.MachinePending)(w); w.view.BootPatience = 0 }),
	Entry("when a machine that could not be made is tried again", time.Minute, func(w *world) {
		w.view.Wish = 2
		w.view.Retry = Retry{Failures: 1, Until: start.Add(time.Minute)}
	}),
	Entry("at the very next moment, too", time.Nanosecond, func(w *world) {
		w.view.Wish = 2
		w.view.Retry = Retry{Failures: 1, Until: start.Add(1)}
	}),
	Entry("for the first of several reasons", time.Minute, func(w *world) {
		phase("d", mcm.MachinePending)(w)
		w.view.Retry = Retry{Failures: 1, Until: start.Add(time.Minute)}
	}),
	Entry("for the first of several reasons, whichever that is", 20*time.Minute, func(w *world) {
		phase("d", mcm.MachinePending)(w)
		w.view.Retry = Retry{Failures: 1, Until: start.Add(time.Hour)}
	}),
	Entry("not for what is due now", time.Hour, func(w *world) {
		phase("d", mcm.MachinePending)(w)
		w.machine("d").Created = start.Add(-20 * time.Minute)
		w.view.Retry = Retry{Failures: 1, Until: start.Add(time.Hour)}
	}),
	Entry("not for a machine that seems to be of a later time while booting has no limit", time.Duration(0), func(w *world) {
		phase("d", mcm.MachinePending)(w)
		w.view.BootPatience, w.machine("d").Created = 0, start.Add(time.Minute)
	}),
)

var _ = It("A reserve machine that boots is given up only where that has a limit, and then at the limit (10)", func() {
	for patience, want := range map[time.Duration]int{0: 0, 1: 1, time.Hour: 1, time.Hour + 1: 0} {
		w := settled(3, 1, Unbounded)
		w.machine("d").Phase, w.machine("d").Created = mcm.MachinePending, start.Add(-time.Hour)
		w.view.BootPatience = patience
		Expect(Decide(w.view).Going).To(HaveLen(want), "%s", patience)
	}
})

var _ = It("A machine that has no provider id is not released, in whatever phase (7)", func() {
	w := settled(3, 1, Unbounded)
	w.machine("d").HasProviderID = false
	w.view.Replicas = 4
	Expect(Decide(w.view).Moves).To(BeEmpty())
})

var _ = It("No more machines that run are retired than run beyond R (4)", func() {
	w := settled(4, 2, Unbounded)
	w.view.Machines = w.view.Machines[:4]
	all(replicas(2), empty("a", "b", "c"), uncreated("d"))(w)
	w.view.Applied.Excess = 2
	Expect(Decide(w.view).Moves).To(Equal([]Move{{Name: "c", Reserve: true, Why: Retired}}))
})

var _ = It("Only changes that a plan has no more of leave it at rest", func() {
	w := settled(3, 1, Unbounded)
	for _, p := range []Plan{{Moves: []Move{{Name: "d"}}}, {Owners: []Ownership{{Name: "d"}}}, {Moves: []Move{{Name: "d"}}, Owners: []Ownership{{Name: "d"}}}} {
		p.Applied, p.Replicas = w.view.Applied, w.view.Replicas
		Expect(p.AtRest(w.view)).To(BeFalse())
	}
	Expect(Plan{Applied: w.view.Applied, Replicas: 4}.AtRest(w.view)).To(BeFalse())
	Expect(Plan{Replicas: 3}.AtRest(w.view)).To(BeFalse())
	Expect(Plan{Applied: w.view.Applied, Replicas: 3}.AtRest(w.view)).To(BeTrue())
})

var _ = It("has a page that explains every reason, and no other", func() {
	page, err := os.ReadFile("../../docs/reserve-rule.md")
	Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, r := range reason.ReserveReady {
		if !slices.Contains(ofTheController, r.Name) {
			all = append(all, r.Name)
		}
	}
	Expect(submatches(regexp.MustCompile("`([A-Z][A-Za-z]+)`"), page)).To(ConsistOf(all))
})

// ofTheController are reasons that the rule does not give.
var ofTheController = []string{reason.BoundsInvalid, reason.AnnotationInvalid, reason.CapacityUnknown, reason.ClusterUnreachable, reason.Draining, reason.Preparing, reason.PreparationFailed}

func submatches(pattern *regexp.Regexp, text []byte) []string {
	var found []string
	for _, match := range pattern.FindAllSubmatch(text, -1) {
		found = append(found, string(match[1]))
	}
	return found
}
