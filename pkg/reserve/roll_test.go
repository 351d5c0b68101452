// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

// Stories of whole rollouts are in pkg/controller/machinedeployment/plan.
var _ = Describe("A rollout", func() {
	It("in place moves pods to ready reserve while a machine is updated, and never marks a busy one", func() {
		w := settled(2, 1, Unbounded)
		w.view.Rollout = true
		m := w.machine("a")
		m.Phase, m.Pods = mcm.MachineInPlaceUpdating, 0
		plan := Decide(w.view)
		Expect(plan.Moves).To(Equal([]Move{{"c", false, Swapped}, {"a", true, Swapped}}))
		w.carryOut(plan)
		for _, phase := range []mcm.MachinePhase{mcm.MachineInPlaceUpdateSuccessful, mcm.MachineRunning} {
			w.machine("a").Phase = phase
			Expect(Decide(w.view).Moves).To(BeEmpty())
		}
	})

	DescribeTable("in place gives no machine up, however long ago it was created (10)", func(phase mcm.MachinePhase) {
		w := settled(2, 2, Unbounded)
		w.view.Rollout, w.view.Now = true, start.Add(time.Hour)
		w.machine("d").Phase = phase
		plan := Decide(w.view)
		Expect(plan.Going).To(BeEmpty())
		Expect(plan.Summary.Reason).NotTo(Equal(CannotBeMade))
		Expect(plan.Total).To(Equal(4))
	},
		Entry("while it is updated", mcm.MachineInPlaceUpdating),
		Entry("before it runs again", mcm.MachineInPlaceUpdateSuccessful),
	)

	It("that recreates all gives the first machines to workload", func() {
		w := settled(3, 2, Unbounded)
		for _, m := range w.present(func(Machine) bool { return true }) {
			w.remove(m)
		}
		plan, rested := w.settle()
		Expect(rested).To(BeTrue())
		Expect(plan.Summary).To(And(HaveField("Serving", 3), HaveField("Ready", 2)))
		Expect(w.log).To(ContainElements("f born, serves true", "h born, serves true", "i born, serves false"))
		Expect(w.log).NotTo(ContainElement(ContainSubstring("Released")))
	})
})
