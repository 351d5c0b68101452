// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

var _ = DescribeTable("A machine is born (1)",
	func(inFlight, replicas int, serving bool) {
		w := settled(2, 1, Unbounded)
		w.view.Replicas = replicas
		Expect(ServesOnCreation(w.view, inFlight)).To(Equal(serving))
	},
	Entry("in reserve where R serve", 0, 2, false),
	Entry("in reserve where a ready one will serve", 0, 3, false),
	Entry("serving where none could", 0, 4, true),
	Entry("in reserve once another one that could is on its way", 1, 4, false),
	Entry("serving where that is not enough", 1, 5, true),
)

var _ = It("A machine is born serving though some cannot: sick, leaving or victims (1)", func() {
	for _, do := range []func(*Machine){
		func(m *Machine) { m.Phase = mcm.MachineUnknown },
		func(m *Machine) { m.Phase = mcm.MachineFailed },
		func(m *Machine) { m.Deleted = true },
		func(m *Machine) { m.Priority = PriorityVictim },
		func(m *Machine) { m.Priority = PriorityVictim - 1 },
	} {
		w := settled(2, 1, Unbounded)
		do(w.machine("c"))
		w.view.Replicas = 3
		Expect(ServesOnCreation(w.view, 0)).To(BeTrue())
	}
})

var _ = It("A machine is born in reserve where one could serve that is not a victim, though its priority is not that of the reserve yet (1)", func() {
	w := settled(2, 1, Unbounded)
	w.machine("c").Priority = PriorityServing
	w.view.Replicas = 3
	Expect(ServesOnCreation(w.view, 0)).To(BeFalse())
})

var _ = It("A machine is born in reserve where one that serves will be drained only (1)", func() {
	w := settled(2, 0, Unbounded)
	w.machine("b").Priority = PriorityVictim
	Expect(ServesOnCreation(w.view, 0)).To(BeFalse())
})

var _ = DescribeTable("Shown",
	func(r, a, most, want int) {
		Expect(pool.VisibleReplicas(r, Applied{Excess: a, Max: most})).To(Equal(want))
	},
	Entry("without bounds", 3, 2, Unbounded, 5),
	Entry("R raised under the max recorded: nothing goes", 4, 2, 5, 5),
	Entry("R at max", 5, 2, 5, 5),
	Entry("R above max", 7, 2, 5, 7),
	Entry("nothing at all", 0, 0, 0, 0),
)
