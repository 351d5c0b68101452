// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

// The letters and numbers are the rows of the contract with machine-controller-manager.

// machineOf is a machine that its MachineSet will have.
type machineOf func(*mcm.MachineSet) *mcm.Machine

func machine(name string, phase mcm.MachinePhase, change ...machineChange) machineOf {
	return func(s *mcm.MachineSet) *mcm.Machine { return newMachine(s, name, phase, change...) }
}

func running(name string, change ...machineChange) machineOf {
	return machine(name, mcm.MachineRunning, change...)
}

func failed(name string, change ...machineChange) machineOf {
	return machine(name, mcm.MachineFailed, change...)
}

// manyRunning returns so many machines with the names 000, 001 and so on, each a minute older than the
// next.
func manyRunning(n int) (all []machineOf) {
	for i := range n {
		all = append(all, running(fmt.Sprintf("%03d", i), aged(time.Duration(n-i)*time.Minute)))
	}
	return all
}

func planFor(s *mcm.MachineSet, machines []machineOf) Plan {
	var objects []*mcm.Machine
	for _, m := range machines {
		objects = append(objects, m(s))
	}
	return New(newView(s, objects...))
}

func these(machines ...machineOf) []machineOf { return machines }

var _ = DescribeTable("A MachineSet counts and creates",
	func(s *mcm.MachineSet, machines []machineOf, want string) {
		Expect(text(planFor(s, machines))).To(Equal(want))
	},
	Entry("S1: what is missing, without a MachineDeployment", newSet("s", 2), these(), "create 2"),
	Entry("S1: nothing where all are there", newSet("s", 1), these(running("a")), ""),
	Entry("S2: in place of a terminating machine", newSet("s", 2), these(running("a"), machine("b", mcm.MachineTerminating, leaving)), "create 1"),
	Entry("S2: nothing in place of one that others have deleted, while it is not terminating", newSet("s", 2), these(running("a"), running("b", leaving)), ""),
	Entry("S2: nothing in place of one without a phase", newSet("s", 2), these(running("a"), machine("b", "")), ""),
	Entry("S2: nothing in place of one that has failed and is preserved", newSet("s", 1), these(failed("a", expires(time.Hour))), ""),
	Entry("S2: nothing yet in place of one that has failed: it goes first", newSet("s", 1), these(failed("a")), "delete a (Failed)"),
	Entry("S3: no more than a hundred at once", newSet("s", 500), these(), "create 100"),
	Entry("S3: and deletes no failed machine meanwhile", newSet("s", 3), these(running("a"), failed("b")), "create 1"),
	Entry("S3: and deletes no named machine meanwhile", newSet("s", 3, scaled(0)), these(running("a", priority("1"), marked(-time.Minute))), "create 2"),
	Entry("S5, E7: nothing while its machines are moved in place", newSet("s", 3, updating), these(failed("a")), ""),
	Entry("S6: nothing in place of one that was updated in place", newSet("s", 1), these(running("a", updated)), ""),
)

var _ = DescribeTable("A MachineSet deletes",
	func(s *mcm.MachineSet, machines []machineOf, want string) {
		Expect(text(planFor(s, machines))).To(Equal(want))
	},
	Entry("S4, S6: the surplus", newSet("s", 1), these(running("a"), running("b", aged(2*time.Hour))), "delete b (Surplus)"),
	Entry("S6: all of them where none is wanted", newSet("s", 0), these(running("a"), failed("b")), "delete b (Surplus), delete a (Surplus)"),
	Entry("S6: surplus first, then named, then failed ones, each once", newSet("s", 3, scaled(0)),
		these(failed("a", priority("2")), failed("b"), running("c", priority("1"), marked(-time.Minute)), running("d")),
		"delete c (Surplus), delete a (Failed), delete b (Failed)"),
	Entry("S6: a failed machine at any count", newSet("s", 2), these(failed("a"), running("b")), "delete a (Failed)"),
	Entry("S6: none that was updated in place", newSet("s", 1), these(failed("a", updated), running("b", updated, priority("1"), marked(0)), running("c")), ""),
	Entry("S6: and such ones do not count as surplus", newSet("s", 1), these(running("a", updated), running("b", updated), running("c")), ""),
	Entry("O9: none that is being deleted already, which counts as gone", newSet("s", 1), these(running("a", leaving, aged(time.Minute)), running("b")), ""),
	Entry("O9: none that is terminating", newSet("s", 1, scaled(0)), these(machine("a", mcm.MachineTerminating, priority("1"), marked(0)), running("b")), ""),
	Entry("N5: one that was named when replicas were changed", newSet("s", 2, scaled(0)), these(running("a", priority("1"), marked(0)), running("b")), "delete a (Named)"),
	Entry("N5: or before", newSet("s", 2, scaled(0)), these(running("a", priority("1"), marked(-time.Second)), running("b")), "delete a (Named)"),
	Entry("N5: and not one that was named later", newSet("s", 2, scaled(0)), these(running("a", priority("1"), marked(time.Second)), running("b")), ""),
	Entry("N5: also if it was in a reserve", newSet("s", 2, scaled(0)), these(running("a", markedNow, priority("1"), marked(time.Second)), running("b")), ""),
	Entry("N5: nor where nothing says when replicas were changed", newSet("s", 2), these(running("a", priority("1"), marked(0)), running("b")), ""),
	Entry("S8: one with priority 1 and no mark only as surplus", newSet("s", 2, scaled(0)), these(running("a", priority("1")), running("b")), ""),
	Entry("S8: one with a mark and another priority only as surplus", newSet("s", 2, scaled(0)), these(running("a", priority("2"), marked(0)), running("b")), ""),
	Entry("S12: without regard to minReadySeconds", newSet("s", 1, func(s *mcm.MachineSet) { s.Spec.MinReadySeconds = 500 }),
		these(running("a", aged(time.Minute)), machine("b", mcm.MachinePending, aged(time.Second))), "delete b (Surplus)"),
)

var _ = It("S4, S7: A MachineSet deletes no more than a hundred at once, and the oldest first", func() {
	p := planFor(newSet("s", 30), manyRunning(200))
	Expect(p.Deletions).To(HaveLen(100))
	for i, d := range p.Deletions {
		Expect(d.Machine.Name).To(Equal(fmt.Sprintf("%03d", i)))
		Expect(d.Reason).To(Equal(Surplus))
	}
})

var _ = DescribeTable("Of two machines, S7, the first goes",
	func(first, second machineOf) {
		s := newSet("s", 1)
		for _, machines := range [][]machineOf{{first, second}, {second, first}} {
			p := planFor(s, machines)
			Expect(text(p)).To(HavePrefix("delete %s (Surplus)", first(s).Name), "the other may have failed, too")
		}
	},
	Entry("1: if only the other is preserved", running("b"), failed("a", expires(time.Hour), priority("1"))),
	Entry("1: and not one whose preservation has expired", running("b", expires(-time.Hour), aged(2*time.Hour)), running("a")),
	Entry("2: if both are, and it is by itself", failed("b", expires(2*time.Hour), preserve("auto-preserved")), failed("a", expires(time.Hour), preserve("now"))),
	Entry("2: if both are, and it expires first", failed("b", expires(time.Hour)), failed("a", expires(2*time.Hour), priority("1"))),
	Entry("3: if its priority is lower", running("b", priority("2")), failed("a")),
	Entry("3: and one without a number has 3", running("b", priority("two"), aged(2*time.Hour)), running("a", priority("3"))),
	Entry("3: any number counts", running("b", priority("-7")), running("a", priority("1"), marked(0))),
	Entry("4: if it is marked", running("b", marked(0)), failed("a")),
	Entry("4: if it was marked earlier", running("b", marked(-time.Second)), failed("a", marked(0))),
	Entry("4: if the mark of the other cannot be read", running("b", marked(0)), failed("a", annotated("machine.sapcloud.io/marked-for-deletion-time", "soon"))),
	Entry("5: without a phase before Failed", machine("b", ""), failed("a", aged(2*time.Hour))),
	Entry("5: in another phase before Failed", machine("b", mcm.MachineInPlaceUpdating), failed("a", aged(2*time.Hour))),
	Entry("5: Failed before CrashLoopBackOff", failed("b"), machine("a", mcm.MachineCrashLoopBackOff, aged(2*time.Hour))),
	Entry("5: CrashLoopBackOff before Unknown", machine("b", mcm.MachineCrashLoopBackOff), machine("a", mcm.MachineUnknown, aged(2*time.Hour))),
	Entry("5: Unknown before Pending", machine("b", mcm.MachineUnknown), machine("a", mcm.MachinePending, aged(2*time.Hour))),
	Entry("5: Pending before Available", machine("b", mcm.MachinePending), machine("a", mcm.MachineAvailable, aged(2*time.Hour))),
	Entry("5: Available before Running", machine("b", mcm.MachineAvailable), running("a", aged(2*time.Hour))),
	Entry("6: if it is older", running("b", aged(2*time.Hour)), running("a")),
	Entry("by name, which machine-controller-manager leaves to chance", running("a"), running("b")),
)
