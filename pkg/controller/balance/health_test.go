// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
)

// failing could not be made, with a code, some time after it was asked for.
func failing(code string, age time.Duration) Machine {
	return machine("x", exhausted, bornAt(noon.Add(-age)), func(m *Machine) { m.Object.Status.LastOperation.ErrorCode = code })
}

func since(t time.Time) func(*Machine) {
	return func(m *Machine) { m.Object.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(t) }
}

var _ = Describe("A member's health", func() {
	// memory is what is remembered of a member with these machines.
	memory := func(was Failure, all ...Machine) (Failure, time.Duration) {
		v := view(member("a", 0, machines(all...)))
		v.Memory.Failing = map[string]Failure{"a": was}
		p := NewPlan(v)
		return p.Memory.Failing["a"], p.Again
	}

	DescribeTable("by its machines", func(ill bool, again time.Duration, m Machine) {
		is, wait := memory(Failure{}, m)
		Expect(is.Failures > 0).To(Equal(ill))
		Expect(wait).To(Equal(again))
	},
		Entry("runs", false, time.Duration(0), machine("x")),
		Entry("boots", false, 9*time.Minute, machine("x", phase(mcm.MachinePending), bornAt(noon.Add(-time.Minute)))),
		Entry("is new", false, 10*time.Minute, machine("x", phase(""), bornAt(noon))),
		Entry("boots for too long", true, time.Minute, machine("x", phase(mcm.MachinePending), bornAt(noon.Add(-10*time.Minute)))),
		Entry("finds no capacity", true, time.Minute, failing("ResourceExhausted", time.Second)),
		Entry("fails, and will be tried again soon", false, 20*time.Second, failing("Unavailable", 10*time.Second)),
		Entry("fails for longer", true, time.Minute, failing("Internal", 30*time.Second)),
		Entry("is sick, which is no fault in making it", false, time.Duration(0), machine("x", phase(mcm.MachineUnknown))),
		Entry("fails, but leaves", false, time.Duration(0), machine("x", exhausted, leaving)),
	)

	DescribeTable("by what was before", func(want, was Failure, all ...Machine) {
		is, _ := memory(was, all...)
		Expect(is).To(Equal(want))
	},
		Entry("it fails no more, but had better wait", Failure{Since: born, Failures: 1, Until: noon.Add(time.Second)}, Failure{Since: born, Failures: 1, Until: noon.Add(time.Second)}),
		Entry("it has waited, and may try", Failure{Since: born, Failures: 1, Until: noon, Probing: true}, Failure{Since: born, Failures: 1, Until: noon}),
		Entry("it goes on trying", Failure{Since: born, Failures: 1, Until: noon, Probing: true}, Failure{Since: born, Failures: 1, Until: noon, Probing: true}),
		Entry("what it tried fails", Failure{Since: noon, Failures: 2, Until: noon.Add(2 * time.Minute)}, Failure{Since: born, Failures: 1, Until: noon, Probing: true}, failing("ResourceExhausted", 0)),
		Entry("often", Failure{Since: noon, Failures: 40, Until: noon.Add(16 * time.Minute)}, Failure{Since: born, Failures: 39, Until: noon, Probing: true}, failing("ResourceExhausted", 0)),
		Entry("it still fails", Failure{Since: born, Failures: 3, Until: born}, Failure{Since: born, Failures: 3, Until: born}, failing("ResourceExhausted", 0)),
		Entry("one has become ready since", Failure{}, Failure{Since: born, Failures: 3, Until: noon.Add(time.Hour)}, machine("y", since(born.Add(time.Second)))),
		Entry("one was ready before, which says nothing", Failure{Since: noon.Add(-time.Minute), Failures: 3, Until: noon.Add(time.Hour)},
			Failure{Since: noon.Add(-time.Minute), Failures: 3, Until: noon.Add(time.Hour)}, machine("y", since(born))),
		Entry("one has become ready, and another fails", Failure{Since: born, Failures: 1, Until: noon.Add(time.Hour)},
			Failure{Since: born, Failures: 1, Until: noon.Add(time.Hour)}, machine("y", since(born.Add(time.Second))), failing("ResourceExhausted", 0)),
	)
})
