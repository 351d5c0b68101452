// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
)

// stated sets the state that a Machine shows; empty for none.
func stated(text string) machineChange { return annotated(api.ReserveStateAnnotation, text) }

// boots is a machine in reserve that was created so and has no state yet.
func boots(m *plan.Machine) {
	in(mcm.MachinePending)(m)
	stated("")(m)
	annotated(machineutils.MachinePriority, "")(m)
}

var _ = DescribeTable("The state of a machine",
	func(v plan.View, name, state string) {
		states := stateWrites(plan.New(v))
		if state == "" {
			Expect(states).NotTo(HaveKey(name))
			return
		}
		Expect(states).To(HaveKeyWithValue(name, strings.TrimPrefix(state, "none")))
	},
	Entry("in reserve says since when, and that its Node shows it", atRest(machine("r1", stated(""))), "r1",
		"Held since 2026-11-22T11:00:00Z; node r1 carries the reserve taint"),
	Entry("stays if it is true", atRest(), "r1", ""),
	Entry("in reserve shows what is true after the Node is written", atRest(machine("r1", stated(""), tainted())), "r1",
		"Held since 2026-11-22T11:00:00Z; node r1 carries the reserve taint"),
	Entry("in reserve shows that its Node could not be written", atRest(machine("r1", tainted(), nodeLeaving)), "r1",
		"Held since 2026-11-22T11:00:00Z; node r1 does not carry the reserve taint"),
	Entry("in reserve shows a taint that is the only one of others", atRest(machine("r1", tainted(otherTaint), nodeLeaving)), "r1",
		"Held since 2026-11-22T11:00:00Z; node r1 does not carry the reserve taint"),
	Entry("that boots in reserve is written with its priority", atRest(machine("r1", boots)), "r1", ""),
	Entry("that boots in reserve is kept true once it is written", atRest(machine("r1", boots, stated("Held since yesterday"))), "r1",
		"Held since 2026-11-22T11:00:00Z; node r1 carries the reserve taint"),
	Entry("that failed in reserve is written though it is not ready", atRest(machine("r1", boots, in(mcm.MachineFailed))), "r1",
		"Held since 2026-11-22T11:00:00Z; node r1 carries the reserve taint"),
	Entry("in reserve without a Node is not written", atRest(machine("r1", stated(""), withoutNode)), "r1", ""),
	Entry("in reserve that lost its Node is removed", atRest(machine("r1", withoutNode)), "r1", "none"),
	Entry("that leaves the reserve says when, why, and that its Node shows it", atRest(replicas(4)), "r1",
		"Released at 2026-11-22T12:00:00Z (Released); node r1 does not carry the reserve taint"),
	Entry("that leaves it without a Node", atRest(machine("r1", occupied, withoutNode)), "r1", "Released at 2026-11-22T12:00:00Z (Occupied)"),
	Entry("that leaves it although its Node is gone", atRest(replicas(5), machine("r1", withoutNode)), "r1", "Released at 2026-11-22T12:00:00Z (Released)"),
	Entry("that left it before stays, also if its Node is gone", atRest(machine("s1", withoutNode, stated("Released at 2026-11-21T12:00:00Z (Released)"))), "s1", ""),
	Entry("whose mark is renewed without a Node is removed", atRest(machine("r1", withoutNode, annotated(api.ReserveAnnotation, "broken"))), "r1", "none"),
	Entry("that leaves it under a pod says why", atRest(machine("r1", occupied)), "r1",
		"Released at 2026-11-22T12:00:00Z (Occupied); node r1 does not carry the reserve taint"),
	Entry("that left the reserve without a record shows that it serves", atRest(machine("s1", stated("Held since yesterday; node s1 carries the reserve taint"))), "s1",
		"Released at 2026-11-22T12:00:00Z; node s1 does not carry the reserve taint"),
	Entry("that left it before stays", atRest(machine("s1", stated("Released at 2026-11-21T12:00:00Z (Released); node s1 carries the reserve taint"))), "s1", ""),
	Entry("that never was in reserve is not written", atRest(), "s1", ""),
	Entry("is not written before the machine is created", atRest(machine("r1", stated(""), uncreated)), "r1", ""),
	Entry("is not written while the machine is being deleted", atRest(machine("r1", stated(""), leaving)), "r1", ""),
	Entry("is not written while the target cluster does not respond", atRest(unreachable, machine("r1", stated(""))), "r1", ""),
	Entry("that enters the reserve says since when",
		atRest(replicas(2), excess(3), note(api.AppliedExcessAnnotation, "3"), machine("s3", idle)), "s3",
		"Held since 2026-11-22T12:00:00Z; node s3 carries the reserve taint"),
	Entry("that enters the reserve without a Node is not written",
		atRest(replicas(2), excess(3), note(api.AppliedExcessAnnotation, "3"), machine("s3", idle, withoutNode)), "s3", ""),
	Entry("whose mark is renewed says so", atRest(machine("r1", annotated(api.ReserveAnnotation, "broken"))), "r1",
		"Held since 2026-11-22T12:00:00Z; node r1 carries the reserve taint"),
	Entry("whose mark is to be renewed shows since when it is held while pods run", atRest(machine("r1", withTolerantPod, stated(""), annotated(api.ReserveAnnotation, "broken"))), "r1",
		"Held since 2026-11-22T11:00:00Z; node r1 carries the reserve taint"),
)

var _ = Describe("States", func() {
	It("are written with the other changes of a Machine, and after them for the others", func() {
		p := plan.New(atRest(machine("r1", stated("")), machine("r2", occupied)))
		Expect(p.Machines).To(HaveExactElements(
			And(HaveField("Name", "r2"), HaveField("Mark", plan.Free), HaveField("State", HaveValue(HavePrefix("Released at")))),
			And(HaveField("Name", "r1"), HaveField("Mark", plan.Keep), HaveField("State", HaveValue(HavePrefix("Held since")))),
		))
	})

	It("mention a taint of any effect", func() {
		v := atRest(machine("r1", tainted(corev1.Taint{Key: api.ReserveTaintKey, Effect: corev1.TaintEffectNoExecute}), nodeLeaving))
		Expect(stateWrites(plan.New(v))).NotTo(HaveKey("r1"))
	})
})
