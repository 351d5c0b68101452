// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
)

var _ = Describe("A machine whose MachineDeployment is gone, or hidden,", func() {
	It("is not said to be without a MachineDeployment if that could not be read", func() {
		w := newWorld()
		w.Sets, w.Missing = nil, []string{"machinesets: no rights to list them"}
		Expect(machine(w, "c")).To(And(HavePrefix("Machine c: its MachineDeployment is not known\n"), ContainSubstring("machinesets: no rights to list them"), Not(ContainSubstring("does not manage it"))))
		Expect(deployment(w)).To(ContainSubstring("Not everything could be read (machinesets: no rights to list them)"))
	})

	It("goes with its MachineDeployment, whatever its place", func() {
		w := newWorld()
		w.Deployments[0].DeletionTimestamp = ptr.To(formatPast(time.Minute))
		Expect(machine(w, "c")).To(And(ContainSubstring("Its MachineDeployment is being deleted"), Not(ContainSubstring("to serve"))))
		Expect(deployment(w)).To(And(ContainSubstring("It is being deleted, since 11:59:00 UTC (60s ago)"), Not(ContainSubstring("at rest")), Not(ContainSubstring("When replicas are raised"))))
	})
})
