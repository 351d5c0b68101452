// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
