// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

// failing could not be made, with a code, some time after it was asked for.
func failing(code string, age time.Duration) Machine {
	return NewMachine("x", exhausted, bornAt(Noon.Add(-age)), func(m *Machine) { m.Object.Status.LastOperation.ErrorCode = code })
}

// booting is a machine with an operation, some time after it was asked for.
func booting(age time.Duration, operation mcm.MachineOperationType, state mcm.MachineState) Machine {
	return NewMachine("x", phase(mcm.MachinePending), bornAt(Noon.Add(-age)), func(m *Machine) {
		m.Object.Status.LastOperation = mcm.LastOperation{Type: operation, State: state}
	})
}

func since(t time.Time) func(*Machine) {
	return func(m *Machine) {
		m.Object.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(t)
		m.Object.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateSuccessful, LastUpdateTime: metav1.NewTime(t)}
	}
}

// rejoined is a machine whose Node has recovered.
func rejoined(t time.Time) func(*Machine) {
	return func(m *Machine) {
		since(t)(m)
		m.Object.Status.LastOperation.Type = mcm.MachineOperationHealthCheck
	}
}

// preservedUntil is a machine that a user preserved until then.
func preservedUntil(t time.Time) func(*Machine) {
	return func(m *Machine) { m.Object.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(t) }
}

var _ = Describe("A member's health", func() {
	// memory is what is remembered of a member with these machines.
	memory := func(was Failure, all ...Machine) (Failure, time.Duration) {
		v := view(NewMember("a", 0, machines(all...)))
		v.Memory.Failing = map[string]Failure{"a": was}
		p := New(v)
		return p.Memory.Failing["a"], p.Again
	}

	DescribeTable("by its machines", func(ill bool, again time.Duration, m Machine) {
		is, wait := memory(Failure{}, m)
		Expect(is.Failures > 0).To(Equal(ill))
		Expect(wait).To(Equal(again))
	},
		Entry("runs", false, time.Duration(0), NewMachine("x")),
		Entry("boots", false, 9*time.Minute, NewMachine("x", phase(mcm.MachinePending), bornAt(Noon.Add(-time.Minute)))),
		Entry("is new", false, 10*time.Minute, NewMachine("x", phase(""), bornAt(Noon))),
		Entry("boots for too long", true, time.Minute, NewMachine("x", phase(mcm.MachinePending), bornAt(Noon.Add(-10*time.Minute)))),
		Entry("finds no capacity", true, time.Minute, failing("ResourceExhausted", time.Second)),
		Entry("fails, and will be tried again soon", false, 20*time.Second, failing("Unavailable", 10*time.Second)),
		Entry("fails for longer", true, time.Minute, failing("Internal", 30*time.Second)),
		Entry("is sick, which is no fault in making it", false, time.Duration(0), NewMachine("x", phase(mcm.MachineUnknown))),
		Entry("fails, but leaves", false, time.Duration(0), NewMachine("x", exhausted, leaving)),
		Entry("fails finally", true, time.Minute, NewMachine("x", exhausted, phase(mcm.MachineFailed))),
		Entry("failed finally and is preserved, so that nothing tries it again", false, time.Duration(0), NewMachine("x", exhausted, phase(mcm.MachineFailed), func(m *Machine) { m.Preserved = true })),
		Entry("failed after it ran, which is no fault in making it", false, time.Duration(0), NewMachine("x", broken)),
		Entry("fails finally, and will count as failing soon", false, 20*time.Second, NewMachine("x", exhausted, phase(mcm.MachineFailed), bornAt(Noon.Add(-10*time.Second)), func(m *Machine) { m.Object.Status.LastOperation.ErrorCode = "Internal" })),
		Entry("is being created", false, 9*time.Minute, booting(time.Minute, mcm.MachineOperationCreate, mcm.MachineStateProcessing)),
		Entry("has a failure in something else than its creation", false, 9*time.Minute, booting(time.Minute, mcm.MachineOperationHealthCheck, mcm.MachineStateFailed)),
		Entry("has had one for half a minute", false, 10*time.Minute-30*time.Second, booting(30*time.Second, mcm.MachineOperationHealthCheck, mcm.MachineStateFailed)),
		Entry("has had one for a moment", false, 29*time.Second, booting(time.Second, mcm.MachineOperationHealthCheck, mcm.MachineStateFailed)),
		Entry("is sick, whatever failed before", false, time.Duration(0), NewMachine("x", exhausted, phase(mcm.MachineUnknown))),
		Entry("runs, whatever failed before", false, time.Duration(0), NewMachine("x", bornAt(Noon), func(m *Machine) { m.Object.Status.LastOperation.State = mcm.MachineStateFailed })),
	)

	// within expects what is remembered of a member with one machine, which may boot for so long.
	within := func(patience time.Duration) func(ill bool, again time.Duration, m Machine) {
		return func(ill bool, again time.Duration, m Machine) {
			v := view(NewMember("a", 0, machines(m)))
			v.Settings.BootPatience = patience
			p := New(v)
			Expect(p.Memory.Failing).To(HaveLen(map[bool]int{true: 1}[ill]))
			Expect(p.Again).To(Equal(again))
		}
	}

	DescribeTable("without a limit on how long a machine may boot", within(0),
		Entry("boots for hours", false, time.Duration(0), NewMachine("x", phase(mcm.MachinePending))),
		Entry("was created by a clock that is ahead", false, time.Duration(0), NewMachine("x", phase(mcm.MachinePending), bornAt(Noon.Add(time.Second)))),
		Entry("finds no capacity", true, time.Minute, failing("ResourceExhausted", time.Second)),
		Entry("fails, and will be tried again soon", false, 20*time.Second, failing("Unavailable", 10*time.Second)),
	)

	DescribeTable("with the shortest limit on how long a machine may boot", within(time.Nanosecond),
		Entry("is new", false, time.Nanosecond, NewMachine("x", phase(mcm.MachinePending), bornAt(Noon))),
		Entry("boots for too long", true, time.Minute, NewMachine("x", phase(mcm.MachinePending), bornAt(Noon.Add(-time.Nanosecond)))),
	)

	It("is forgotten where nothing fails", func() {
		Expect(New(view(NewMember("a", 1))).Memory.Failing).To(BeEmpty())
	})

	DescribeTable("by what was before", func(want, was Failure, all ...Machine) {
		is, again := memory(was, all...)
		Expect(is).To(Equal(want))
		Expect(again).To(BeNumerically(">=", 0), "nothing is due before now")
	},
		Entry("it fails no more, but had better wait", Failure{Since: Born, Failures: 1, Until: Noon.Add(time.Second)}, Failure{Since: Born, Failures: 1, Until: Noon.Add(time.Second)}),
		Entry("it has waited, and may try", Failure{Since: Born, Failures: 1, Until: Noon, Probing: true}, Failure{Since: Born, Failures: 1, Until: Noon}),
		Entry("it goes on trying", Failure{Since: Born, Failures: 1, Until: Noon, Probing: true}, Failure{Since: Born, Failures: 1, Until: Noon, Probing: true}),
		Entry("what it tried fails", Failure{Since: Noon, Failures: 2, Until: Noon.Add(2 * time.Minute)}, Failure{Since: Born, Failures: 1, Until: Noon, Probing: true}, failing("ResourceExhausted", 0)),
		Entry("often", Failure{Since: Noon, Failures: 100, Until: Noon.Add(16 * time.Minute)}, Failure{Since: Born, Failures: 99, Until: Noon, Probing: true}, failing("ResourceExhausted", 0)),
		Entry("it fails for the third time", Failure{Since: Noon, Failures: 3, Until: Noon.Add(4 * time.Minute)}, Failure{Since: Born, Failures: 2, Until: Noon, Probing: true}, failing("ResourceExhausted", 0)),
		Entry("for the fourth", Failure{Since: Noon, Failures: 4, Until: Noon.Add(8 * time.Minute)}, Failure{Since: Born, Failures: 3, Until: Noon, Probing: true}, failing("ResourceExhausted", 0)),
		Entry("for the fifth", Failure{Since: Noon, Failures: 5, Until: Noon.Add(16 * time.Minute)}, Failure{Since: Born, Failures: 4, Until: Noon, Probing: true}, failing("ResourceExhausted", 0)),
		Entry("for the sixth, with the longest delay", Failure{Since: Noon, Failures: 6, Until: Noon.Add(16 * time.Minute)}, Failure{Since: Born, Failures: 5, Until: Noon, Probing: true}, failing("ResourceExhausted", 0)),
		Entry("it still fails", Failure{Since: Born, Failures: 3, Until: Born}, Failure{Since: Born, Failures: 3, Until: Born}, failing("ResourceExhausted", 0)),
		Entry("one has become ready since", Failure{}, Failure{Since: Born, Failures: 3, Until: Noon.Add(time.Hour)}, NewMachine("y", since(Born.Add(time.Second)))),
		Entry("one was created since, and is ready", Failure{}, Failure{Since: Born, Failures: 3, Until: Noon.Add(time.Hour)}, NewMachine("y", bornAt(Born.Add(time.Second)))),
		Entry("the Node of an older one has recovered since, which says nothing", Failure{Since: Born, Failures: 3, Until: Noon.Add(time.Hour)},
			Failure{Since: Born, Failures: 3, Until: Noon.Add(time.Hour)}, NewMachine("y", rejoined(Born.Add(time.Second)))),
		Entry("an older one is no longer preserved, which says nothing", Failure{Since: Born, Failures: 3, Until: Noon.Add(time.Hour)},
			Failure{Since: Born, Failures: 3, Until: Noon.Add(time.Hour)}, NewMachine("y", preservedUntil(Born.Add(time.Second)))),
		Entry("one became ready just as it began to fail, which says nothing", Failure{Since: Born, Failures: 3, Until: Noon.Add(time.Hour)},
			Failure{Since: Born, Failures: 3, Until: Noon.Add(time.Hour)}, NewMachine("y", since(Born))),
		Entry("one has become ready in reserve since", Failure{}, Failure{Since: Born, Failures: 3, Until: Noon.Add(time.Hour)}, NewMachine("y", inReserve, since(Born.Add(time.Second)))),
		Entry("one has become ready since, and another was before", Failure{}, Failure{Since: Born, Failures: 3, Until: Noon.Add(time.Hour)},
			NewMachine("y", since(Born.Add(time.Second))), NewMachine("z", since(Born))),
		Entry("one was ready before, which says nothing", Failure{Since: Noon.Add(-time.Minute), Failures: 3, Until: Noon.Add(time.Hour)},
			Failure{Since: Noon.Add(-time.Minute), Failures: 3, Until: Noon.Add(time.Hour)}, NewMachine("y", since(Born))),
		Entry("one has become ready, and another fails", Failure{Since: Born, Failures: 1, Until: Noon.Add(time.Hour)},
			Failure{Since: Born, Failures: 1, Until: Noon.Add(time.Hour)}, NewMachine("y", since(Born.Add(time.Second))), failing("ResourceExhausted", 0)),
	)
})

// readiness has the Node of a machine be ready, or not, for so long at noon.
func readiness(status corev1.ConditionStatus, lasts time.Duration) func(*Machine) {
	return func(m *Machine) {
		m.Node = node(m.Object.Name)
		m.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(Noon.Add(-lasts))}}
	}
}

func isReady(m *Machine)     { readiness(corev1.ConditionTrue, time.Hour)(m) }
func isNotReady(m *Machine)  { readiness(corev1.ConditionUnknown, time.Minute)(m) }
func isGone(m *Machine)      { phase(mcm.MachineUnknown)(m) } // it has no Node
func failedFully(m *Machine) { phase(mcm.MachineFailed)(m); isNotReady(m) }

// nodes sets the Nodes of a member's machines: the first so many are not ready.
func nodes(unready int) Change {
	return func(m *Member) {
		for i := range m.Machines {
			if isReady(&m.Machines[i]); i < unready {
				isNotReady(&m.Machines[i])
			}
		}
	}
}

// known is a view with Nodes.
func known(members ...Member) View {
	v := view(members...)
	v.NodesKnown = true
	return v
}

// outage is a world of three balanced zones with four machines and two in reserve each. That of b fails.
func outage(unready int) *world {
	w := newWorld(poolOf("6", 4, 4, 4)...)
	for i := range w.Members {
		ScaleUp(&w.Members[i])
		Applied(4)(&w.Members[i])
		share(2)(&w.Members[i])
		ready(2)(&w.Members[i])
	}
	nodes(unready)(w.member("b"))
	w.NodesKnown = true
	return w
}

var _ = Describe("A zone with too many Nodes that are not ready", func() {
	// is reports whether a member counts as unready, and when that may change.
	is := func(was Failure, all ...Machine) (bool, time.Duration) {
		v := known(NewMember("a", 0, machines(all...)))
		v.Memory.Failing = map[string]Failure{"a": was}
		p := New(v)
		return p.Memory.Failing["a"].Unready, p.Again
	}

	DescribeTable("is found by its machines", func(unready bool, again time.Duration, all ...func(*Machine)) {
		var some []Machine
		for i, change := range all {
			some = append(some, NewMachine(fmt.Sprint("x", i), change))
		}
		found, wait := is(Failure{}, some...)
		Expect(found).To(Equal(unready))
		Expect(wait).To(Equal(again))
	},
		Entry("if all are ready", false, time.Duration(0), isReady, isReady),
		Entry("if one of two is not", false, time.Duration(0), isReady, isNotReady),
		Entry("if two of three are not", true, time.Duration(0), isReady, isNotReady, isNotReady),
		Entry("if its only one is not", true, time.Duration(0), isNotReady),
		Entry("if it has not been for half a minute", true, time.Duration(0), readiness(corev1.ConditionFalse, 30*time.Second)),
		Entry("if it has not been for less", false, time.Second, readiness(corev1.ConditionFalse, 29*time.Second)),
		Entry("if it has not been, by a clock that is ahead", true, time.Duration(0), readiness(corev1.ConditionFalse, -time.Minute)),
		Entry("if its Node is gone", true, time.Duration(0), isGone),
		Entry("if it failed", true, time.Duration(0), failedFully),
		Entry("not if it failed and is preserved", false, time.Duration(0), func(m *Machine) { failedFully(m); m.Preserved = true }),
		Entry("if it is preserved in time", true, time.Duration(0), func(m *Machine) { isNotReady(m); m.Preserved = true }),
		Entry("not if it could not be created, so that it never had a Node", false, time.Minute, func(m *Machine) { exhausted(m); phase(mcm.MachineFailed)(m) }),
		Entry("not if it leaves", false, time.Duration(0), func(m *Machine) { isNotReady(m); leaving(m) }),
		Entry("not while it boots", false, 10*time.Minute, func(m *Machine) { isNotReady(m); phase(mcm.MachinePending)(m); bornAt(Noon)(m) }),
		Entry("not while it is updated in place", false, time.Duration(0), func(m *Machine) { isNotReady(m); phase(mcm.MachineInPlaceUpdating)(m) }),
		Entry("not if its Node has not reported yet", false, time.Duration(0), func(m *Machine) { m.Node = node(m.Object.Name) }),
		Entry("not if its Node is not seen yet", false, time.Duration(0), func(*Machine) {}),
	)

	DescribeTable("is well again", func(unready bool, again time.Duration, all ...func(*Machine)) {
		var some []Machine
		for i, change := range all {
			some = append(some, NewMachine(fmt.Sprint("x", i), change))
		}
		found, wait := is(Failure{Since: Noon.Add(-10 * time.Minute), Failures: 1, Until: Born, Probing: true, Unready: true}, some...)
		Expect(found).To(Equal(unready))
		Expect(wait).To(Equal(again))
	},
		Entry("when its Nodes have been ready for five minutes", false, time.Duration(0), readiness(corev1.ConditionTrue, 5*time.Minute)),
		Entry("not before", true, time.Second, readiness(corev1.ConditionTrue, 5*time.Minute-time.Second)),
		Entry("when enough have been", false, time.Duration(0), isReady, isReady, isNotReady),
		Entry("soon when enough will have been", true, time.Minute, readiness(corev1.ConditionTrue, 4*time.Minute), readiness(corev1.ConditionTrue, 2*time.Minute)),
		Entry("not if one has just failed again", true, time.Duration(0), readiness(corev1.ConditionFalse, 0)),
		Entry("when new machines are ready", false, time.Duration(0), isNotReady, func(m *Machine) { readiness(corev1.ConditionTrue, 0)(m); bornAt(Noon.Add(-time.Minute))(m) },
			func(m *Machine) { readiness(corev1.ConditionTrue, 0)(m); since(Noon.Add(-time.Minute))(m) }),
		Entry("when all its machines are gone", false, time.Duration(0)),
	)

	DescribeTable("stays what it was", func(change func(*View)) {
		v := known(NewMember("a", 3, nodes(3)), NewMember("b", 3, nodes(0)))
		v.Memory.Failing = map[string]Failure{"b": {Since: Born, Failures: 1, Until: Born, Probing: true, Unready: true}}
		change(&v)
		p := New(v)
		Expect(p.Memory.Failing).To(Equal(v.Memory.Failing))
		Expect(p.Again).To(BeZero())
	},
		Entry("while Nodes are not known", func(v *View) { v.NodesKnown = false }),
	)

	DescribeTable("is remembered", func(want, was Failure, all ...Machine) {
		v := known(NewMember("a", 0, machines(all...)))
		v.Memory.Failing = map[string]Failure{"a": was}
		Expect(New(v).Memory.Failing["a"]).To(Equal(want))
	},
		Entry("and may try one machine at once, since none has failed", Failure{Since: Noon, Failures: 1, Until: Noon, Probing: true, Unready: true}, Failure{}, NewMachine("x", isNotReady)),
		Entry("and waits after that failed", Failure{Since: Noon, Failures: 2, Until: Noon.Add(2 * time.Minute), Unready: true},
			Failure{Since: Born, Failures: 1, Until: Born, Probing: true, Unready: true}, NewMachine("x", isNotReady), failing("ResourceExhausted", 0)),
		Entry("though one that was tried is ready", Failure{Since: Born, Failures: 1, Until: Born, Probing: true, Unready: true},
			Failure{Since: Born, Failures: 1, Until: Born, Probing: true, Unready: true}, NewMachine("x", isNotReady), NewMachine("y", isNotReady), NewMachine("z", isReady, since(Noon))),
		Entry("beside a failure to create machines, whose delay does not begin again", Failure{Since: Born, Failures: 3, Until: Noon.Add(time.Minute), Unready: true},
			Failure{Since: Born, Failures: 3, Until: Noon.Add(time.Minute)}, NewMachine("x", isNotReady)),
		Entry("no more when it is well, not even earlier failures", Failure{}, Failure{Since: Born, Failures: 3, Until: Noon.Add(time.Minute), Unready: true}, NewMachine("x", isReady)),
	)

	It("gets one replica of growth, wherever that is requested, and others get the rest", func() {
		for asked, want := range map[string]string{"a": "7/5/6", "b": "6/5/7", "c": "6/5/7"} {
			w := outage(4)
			w.ask(asked, 10)
			w.settle()
			Expect(w.replicas()).To(Or(Equal(want), Equal("7/5/6")), asked)
			Expect(condition(New(w.View), "b", ConditionBalanced)).To(Equal("False NodesNotReady"))
			Expect(New(w.View).Blocks).To(Equal(map[string]string{"b": "NodesNotReady"}))
		}
	})

	It("gets no other replica before that one has a machine that is ready", func() {
		w := outage(4)
		w.ask("a", 10)
		w.settle()
		w.ask("a", 10)
		w.settle()
		Expect(w.replicas()).To(Equal("8/5/8"))
	})

	It("keeps a machine of its share to be tried, and others get the rest until it is well", func() {
		w := outage(6)
		w.settle()
		Expect(w.shares()).To(Equal("3/1/3"))
		p := New(w.View)
		Expect(condition(p, "a", ConditionShare)).To(Equal("True FailedOver"))
		Expect(message(p, "a", ConditionShare)).To(Equal("the pool's excess of 6 is complete, partly in other zones, because too many Nodes are not ready in b"))
		Expect(message(p, "b", ConditionBalanced)).To(Equal("too many Nodes of b are not ready, so other zones get its growth"))
		nodes(0)(w.member("b"))
		w.rest()
		Expect(w.shares()).To(Equal("2/2/2"))
		Expect(condition(New(w.View), "b", ConditionBalanced)).To(Equal("True Even"))
	})

	It("gives its share away though its Nodes are half of the cluster's, so that nothing is evicted", func() {
		w := outage(6)
		w.NodeCount, w.UnreadyCount = 8, 4
		w.settle()
		Expect(w.shares()).To(Equal("3/1/3"))
		nodes(0)(w.member("b"))
		w.rest()
		Expect(w.shares()).To(Equal("2/2/2"))
	})

	DescribeTable("keeps a share as it is", func(change func(*View)) {
		w := outage(6)
		w.settle()
		nodes(0)(w.member("b"))
		change(&w.View)
		w.pass(10 * time.Minute)
		Expect(w.shares()).To(Equal("3/1/3"))
	},
		Entry("while Nodes are not known", func(v *View) { v.NodesKnown = false }),
	)

	It("is not named where something else is to be done", func() {
		w := outage(4)
		w.Unreachable = "silent"
		p := New(w.View)
		Expect(condition(p, "b", ConditionBalanced)).To(Equal("False " + ReasonUnreachable))
		Expect(p.Blocks).To(BeEmpty())
	})

	It("is named beside one that cannot create machines", func() {
		w := outage(6)
		w.member("c").Machines = append(w.member("c").Machines, NewMachine("c-x", inReserve, exhausted))
		Expect(message(New(w.View), "a", ConditionShare)).To(Equal(
			"the pool's excess of 6 is complete, partly in other zones, because machines cannot be created in c, and too many Nodes are not ready in b"))
	})

	It("has no effect where all zones of a pool are so, or fail", func() {
		w := outage(6)
		nodes(6)(w.member("a"))
		nodes(6)(w.member("c"))
		Expect(w.settle()).To(BeFalse())
		Expect(w.shares()).To(Equal("2/2/2"))
		w.ask("a", 10)
		w.settle()
		Expect(w.replicas()).To(Equal("6/6/6"))
	})

	It("gets all where the others cannot take anything", func() {
		w := newWorld(NewMember("a", 2, ScaleUp, Applied(2), nodes(2)), NewMember("b", 2, ScaleUp, Applied(2), frozen))
		w.NodesKnown = true
		w.ask("a", 5)
		w.settle()
		Expect(w.replicas()).To(Equal("5/2"))
		Expect(condition(New(w.View), "a", ConditionBalanced)).To(Equal("True Even"))
	})

	It("follows no Node that flaps: once others have its share, they keep it until the Nodes are steady", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			w := outage(6)
			w.settle()
			Expect(w.shares()).To(Equal("3/1/3"))
			for range rapid.IntRange(1, 20).Draw(t, "flaps") {
				for i := range w.member("b").Machines {
					status := rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}).Draw(t, "status")
					m := &w.member("b").Machines[i]
					readiness(status, Noon.Sub(w.Now))(m)
					phase(map[bool]mcm.MachinePhase{true: mcm.MachineRunning, false: mcm.MachineUnknown}[status == corev1.ConditionTrue])(m)
				}
				w.settle()
				w.Now = w.Now.Add(time.Duration(rapid.IntRange(1, 299).Draw(t, "seconds")) * time.Second)
				if w.settle(); w.shares() != "3/1/3" {
					t.Fatalf("shares are %s", w.shares())
				}
			}
		})
	})
})
