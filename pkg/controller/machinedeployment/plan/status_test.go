// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

// lastFailed is a machine whose last operation has failed.
func lastFailed(m *mcm.Machine) {
	m.Spec.ProviderID = "virtual:///" + m.Name
	m.Status.LastOperation = mcm.LastOperation{Description: "no luck", State: mcm.MachineStateFailed, Type: mcm.MachineOperationHealthCheck}
}

func statusOf(s *mcm.MachineSet, machines ...machineOf) mcm.MachineSetStatus {
	return reported(newView(s, objects(s, machines)...)).Sets[0].Object.Status
}

func objects(s *mcm.MachineSet, machines []machineOf) (all []*mcm.Machine) {
	for _, m := range machines {
		all = append(all, m(s))
	}
	return all
}

var _ = Describe("The status of a MachineSet", func() {
	It("S20: counts all its machines, those that are terminating included", func() {
		Expect(statusOf(newSet("s", 1), running("a"), machine("b", mcm.MachineTerminating, leaving)).Replicas).To(BeEquivalentTo(2))
	})

	It("S21: counts those with all labels of the template", func() {
		incomplete := func(m *mcm.Machine) { delete(m.Labels, "part") }
		Expect(statusOf(newSet("s", 2), running("a"), running("b", incomplete)).FullyLabeledReplicas).To(BeEquivalentTo(1))
	})

	It("S22: counts those that are available and those that run", func() {
		s := statusOf(newSet("s", 5), running("a"), machine("b", mcm.MachineAvailable), machine("c", mcm.MachinePending), machine("d", mcm.MachineInPlaceUpdating), machine("e", mcm.MachineUnknown))
		Expect(s.AvailableReplicas).To(BeEquivalentTo(2))
		Expect(s.ReadyReplicas).To(BeEquivalentTo(1))
	})

	It("S23: lists those whose last operation failed, by name, but not the failed ones that are preserved", func() {
		s := statusOf(newSet("s", 4), running("b", lastFailed), failed("a", lastFailed), failed("c", lastFailed, expires(-time.Hour)), running("d", lastFailed, expires(time.Hour)))
		Expect(s.FailedMachines).To(HaveValue(HaveExactElements(HaveField("Name", "a"), HaveField("Name", "b"), HaveField("Name", "d"))))
		first := (*s.FailedMachines)[0]
		Expect(first.ProviderID).To(Equal("virtual:///a"))
		Expect(first.OwnerRef).To(Equal("s"))
		Expect(first.LastOperation.Description).To(Equal("no luck"))
		Expect(statusOf(newSet("s", 1), running("a")).FailedMachines).To(BeNil())
		Expect(statusOf(newSet("s", 1), running("a", lastFailed)).FailedMachines).To(HaveValue(HaveLen(1)))
	})

	It("S23: lists none that has recovered", func() {
		had := func(s *mcm.MachineSet) { s.Status.FailedMachines = &[]mcm.MachineSummary{{Name: "a"}} }
		Expect(statusOf(newSet("s", 1, had), running("a")).FailedMachines).To(BeNil())
	})

	It("S24: counts the failed ones that are preserved, or were", func() {
		Expect(statusOf(newSet("s", 3), failed("a", expires(time.Hour)), failed("b", expires(-time.Hour)), running("c", expires(time.Hour))).PreservedFailedReplicas).To(BeEquivalentTo(2))
	})

	It("S25: counts those that are preserved by themselves, in any phase", func() {
		Expect(statusOf(newSet("s", 2, keeps(2)), running("a", preserve("auto-preserved")), failed("b", preserve("now"))).AutoPreserveFailedMachineCount).To(BeEquivalentTo(1))
	})

	It("S28: has the time of its last change, and the generation that it is about", func() {
		s := statusOf(newSet("s", 0))
		Expect(s.LastOperation.LastUpdateTime.Time).To(Equal(noon))
		Expect(s.ObservedGeneration).To(BeEquivalentTo(3))
	})

	It("S28, P3: keeps what others have written", func() {
		theirs := mcm.MachineSetCondition{Type: "Theirs", Status: mcm.ConditionTrue}
		s := statusOf(newSet("s", 0, func(s *mcm.MachineSet) {
			s.Status.Conditions, s.Status.LastOperation.Description = []mcm.MachineSetCondition{theirs}, "as before"
		}))
		Expect(s.Conditions).To(ConsistOf(theirs))
		Expect(s.LastOperation.Description).To(Equal("as before"))
	})

	It("S28: is not written for its time alone", func() {
		v := newView(newSet("s", 1), objects(newSet("s", 1), these(running("a")))...)
		v.Now = noon.Add(time.Hour)
		Expect(New(v).IsEmpty()).To(BeTrue())
	})

	It("S26: says that machines could not be created, since when, and why the last one was not", func() {
		v := newView(newSet("s", 1))
		c, differs := v.WithFailure(v.Sets[0], Failure{FailedCreate, "quota"})
		Expect(differs).To(BeTrue())
		want := mcm.MachineSetCondition{Type: mcm.MachineSetReplicaFailure, Status: mcm.ConditionTrue, Reason: FailedCreate, Message: "quota", LastTransitionTime: at(0)}
		Expect(c.After.Conditions).To(ConsistOf(want))
		Expect(c.Set).To(BeIdenticalTo(v.Sets[0].Object))

		s := v.Sets[0].Object.DeepCopy()
		s.Status = c.After
		v.Sets[0].Object, v.Now = s, noon.Add(time.Hour)
		_, differs = v.WithFailure(v.Sets[0], Failure{FailedCreate, "quota"})
		Expect(differs).To(BeFalse())
		c, differs = v.WithFailure(v.Sets[0], Failure{FailedCreate, "no such class"})
		Expect(differs).To(BeTrue())
		want.Message = "no such class"
		Expect(c.After.Conditions).To(ConsistOf(want))
		Expect(New(v).Statuses[0].After.Conditions).To(BeEmpty(), "without a failure")
	})
})
