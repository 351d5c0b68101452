// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

const (
	available   = mcm.MachineDeploymentAvailable
	progressing = mcm.MachineDeploymentProgressing
	failing     = mcm.MachineDeploymentReplicaFailure
)

// has gives a MachineDeployment a condition of some age.
func has(of mcm.MachineDeploymentConditionType, is mcm.ConditionStatus, reason string, age time.Duration) deploymentChange {
	return func(d *api.MachineDeployment) {
		d.Status.Conditions = append(d.Status.Conditions, mcm.MachineDeploymentCondition{
			Type: of, Status: is, Reason: reason, Message: "as before", LastUpdateTime: at(-age), LastTransitionTime: at(-age),
		})
	}
}

func within(seconds int32) deploymentChange {
	return func(d *api.MachineDeployment) { d.Spec.ProgressDeadlineSeconds = &seconds }
}

// counted gives a MachineDeployment counts that were reported before.
func counted(replicas, updated, serving int32) deploymentChange {
	return func(d *api.MachineDeployment) {
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = replicas, updated, serving, serving
		d.Status.ObservedGeneration = d.Generation
	}
}

func conditionIn(s mcm.MachineDeploymentStatus, of mcm.MachineDeploymentConditionType) (c mcm.MachineDeploymentCondition) {
	for _, one := range s.Conditions {
		if one.Type == of {
			c = one
		}
	}
	return c
}

var _ = It("P1: The status counts the machines of all sets", func() {
	v := viewOf(newDeployment(4), of("old", 3, "rufl"), of("new", 2, "rpt"))
	v.Sets[0].Machines[2].Status.LastOperation.State = mcm.MachineStateFailed
	v.Sets[1].Machines[0].Status.CurrentStatus.Phase = mcm.MachineAvailable
	s := reportOf(v)
	Expect(s.Replicas).To(BeEquivalentTo(7), "S20")
	Expect(s.UpdatedReplicas).To(BeEquivalentTo(3))
	Expect(s.ReadyReplicas).To(BeEquivalentTo(2))
	Expect(s.AvailableReplicas).To(BeEquivalentTo(3))
	Expect(s.UnavailableReplicas).To(BeEquivalentTo(2), "of the sizes")
	Expect(s.ObservedGeneration).To(BeEquivalentTo(2))
	Expect(s.FailedMachines).To(ConsistOf(HaveValue(And(HaveField("Name", "old-2"), HaveField("OwnerRef", "old")))))
})

var _ = It("P1: More machines that serve than wanted are not less than none unavailable", func() {
	Expect(reportOf(viewOf(newDeployment(1), of("new", 1, "rr"))).UnavailableReplicas).To(BeZero())
})

var _ = It("P1, S24: Preserved machines are counted", func() {
	v := viewOf(newDeployment(2), of("new", 2, "rf"))
	expires(time.Hour)(v.Sets[0].Machines[1])
	s := reportOf(v)
	Expect(s.PreservedFailedReplicas).To(BeEquivalentTo(1))
	Expect(conditionIn(s, available).Status).To(Equal(mcm.ConditionTrue), "P2: they count as available")
})

var _ = DescribeTable("P2: Available", func(d *api.MachineDeployment, machines string, want string) {
	Expect(conditionOf(New(viewOf(d, of("new", d.Spec.Replicas, machines))), available)).To(Equal(want))
},
	Entry("with all", newDeployment(2), "rr", "True MinimumReplicasAvailable"),
	Entry("not with fewer", newDeployment(2), "rp", "False MinimumReplicasUnavailable"),
	Entry("with one of which may be unavailable", newDeployment(2, rolls("0", "1")), "rp", "True MinimumReplicasAvailable"),
	Entry("not with one of them, if it recreates", newDeployment(2, recreates), "rp", "False MinimumReplicasUnavailable"),
	Entry("D12: without replicas", newDeployment(0), "", "True MinimumReplicasAvailable"),
)

var _ = DescribeTable("Progressing", func(d *api.MachineDeployment, sets []part, want string) {
	v := viewOf(d, sets...)
	p := New(v)
	if c := conditionIn(reportOf(v), progressing); string(c.Status)+" "+c.Reason != want {
		Expect(conditionOf(p, progressing)).To(Equal(want))
	}
},
	Entry("P12: begins when the first set is created", newDeployment(2), parts(), "True NewMachineSetCreated"),
	Entry("P12: begins when a set is found", newDeployment(2, counted(2, 2, 0)), parts(of("new", 2, "pp")), "True FoundNewMachineSet"),
	Entry("P12: begins with each set that is created", newDeployment(2, completed, has(progressing, "True", "NewMachineSetAvailable", time.Hour)), parts(of("old", 2, "rr")), "True NewMachineSetCreated"),
	Entry("P12: also after the deadline", newDeployment(2, counted(3, 1, 2), has(progressing, "False", "ProgressDeadlineExceeded", time.Hour)), parts(of("a", 2, "rr"), of("b", 1, "p")), "True NewMachineSetCreated"),
	Entry("P12: begins anew where a set was created, and that was not written", newDeployment(2, completed, has(progressing, "True", "NewMachineSetAvailable", time.Hour)), parts(of("old", 2, "rr"), of("new", 1, "p")), "True FoundNewMachineSet"),
	Entry("P5, P6: is complete with all machines", newDeployment(2, counted(2, 2, 1), has(progressing, "True", "MachineSetUpdated", time.Hour)), parts(of("new", 2, "rr")), "True NewMachineSetAvailable"),
	Entry("P6: is not while old machines are leaving", newDeployment(2, counted(3, 2, 2), has(progressing, "True", "MachineSetUpdated", time.Hour)), parts(of("old", 0, "t"), of("new", 2, "rr")), "True MachineSetUpdated"),
	Entry("P5: is updated when there are more new machines", newDeployment(2, counted(3, 0, 2), has(progressing, "True", "NewMachineSetCreated", time.Hour)), parts(of("old", 2, "rr"), of("new", 1, "p")), "True MachineSetUpdated"),
	Entry("P5: or fewer old ones", newDeployment(3, counted(4, 1, 3), has(progressing, "True", "NewMachineSetCreated", time.Hour)), parts(of("old", 2, "rr"), of("new", 1, "p")), "True MachineSetUpdated"),
	Entry("P5: when there are more new machines, also without fewer old ones", newDeployment(2, counted(2, 0, 2), has(progressing, "True", "NewMachineSetCreated", time.Hour)), parts(of("old", 2, "rr"), of("new", 1, "p")), "True MachineSetUpdated"),
	Entry("P5: or more that are available", newDeployment(2, counted(3, 1, 2), has(progressing, "True", "NewMachineSetCreated", time.Hour)), parts(of("old", 2, "rr"), of("new", 1, "a")), "True MachineSetUpdated"),
	Entry("P5: or more that run", newDeployment(2, counted(3, 1, 2), func(d *api.MachineDeployment) { d.Status.AvailableReplicas = 3 }, has(progressing, "True", "NewMachineSetCreated", time.Hour)), parts(of("old", 2, "rr"), of("new", 1, "r")), "True MachineSetUpdated"),
	Entry("P5: or more that serve", newDeployment(2, counted(3, 1, 2), has(progressing, "True", "NewMachineSetCreated", time.Hour)), parts(of("old", 2, "rr"), of("new", 1, "r")), "True MachineSetUpdated"),
	Entry("P5: stays otherwise", newDeployment(2, counted(3, 1, 2), has(progressing, "True", "NewMachineSetCreated", time.Hour)), parts(of("old", 2, "rr"), of("new", 1, "p")), "True NewMachineSetCreated"),
	Entry("P5: stays when machines are lost", newDeployment(2, counted(3, 1, 3), has(progressing, "True", "MachineSetUpdated", time.Hour)), parts(of("old", 2, "rp"), of("new", 1, "r")), "True MachineSetUpdated"),
	Entry("P4: stays complete when replicas change", newDeployment(4, counted(2, 2, 2), has(progressing, "True", "NewMachineSetAvailable", time.Hour)), parts(of("new", 2, "rr")), "True NewMachineSetAvailable"),
	Entry("P4: and when machines fail", newDeployment(2, completed, has(progressing, "True", "NewMachineSetAvailable", time.Hour)), parts(of("new", 2, "pp")), "True NewMachineSetAvailable"),
	Entry("P4: stays complete while Recreate waits for old machines", newDeployment(2, recreates, completed, has(progressing, "True", "NewMachineSetAvailable", time.Hour)), parts(of("old", 2, "rr")), "True NewMachineSetAvailable"),
	Entry("P7: also beyond the deadline", newDeployment(2, recreates, within(60), completed, has(progressing, "True", "NewMachineSetAvailable", time.Hour)), parts(of("old", 2, "rr")), "True NewMachineSetAvailable"),
	Entry("P6: is complete without replicas, where there are none", newDeployment(0, recreates, has(progressing, "True", "MachineSetUpdated", time.Hour)), parts(of("old", 1, "")), "True NewMachineSetAvailable"),
	Entry("P6: is not while the only machine is an old one", newDeployment(1, counted(1, 0, 1), has(progressing, "True", "MachineSetUpdated", time.Hour)), parts(of("old", 1, "r"), of("new", 0, "")), "True MachineSetUpdated"),
	Entry("P7: is False after the deadline", newDeployment(2, within(60), counted(3, 1, 2), has(progressing, "True", "MachineSetUpdated", time.Hour)), parts(of("old", 2, "rr"), of("new", 1, "p")), "False ProgressDeadlineExceeded"),
	Entry("P7: not at the deadline", newDeployment(2, within(3600), counted(3, 1, 2), has(progressing, "True", "MachineSetUpdated", time.Hour)), parts(of("old", 2, "rr"), of("new", 1, "p")), "True MachineSetUpdated"),
	Entry("P7: never without one", newDeployment(2, counted(3, 1, 2), has(progressing, "True", "MachineSetUpdated", time.Hour)), parts(of("old", 2, "rr"), of("new", 1, "p")), "True MachineSetUpdated"),
	Entry("P7: stays so", newDeployment(2, within(60), counted(3, 1, 2), has(progressing, "False", "ProgressDeadlineExceeded", time.Hour)), parts(of("old", 2, "rr"), of("new", 1, "p")), "False ProgressDeadlineExceeded"),
	Entry("P7: until there is progress", newDeployment(2, within(60), counted(3, 1, 2), has(progressing, "False", "ProgressDeadlineExceeded", time.Hour)), parts(of("old", 2, "rr"), of("new", 1, "r")), "True MachineSetUpdated"),
	Entry("P14: is Unknown while it is paused", newDeployment(2, paused, counted(2, 2, 2), has(progressing, "True", "NewMachineSetAvailable", time.Hour)), parts(of("new", 2, "rr")), "Unknown DeploymentPaused"),
	Entry("P14: stays so, whatever happens", newDeployment(2, paused, counted(2, 2, 1), has(progressing, "Unknown", "DeploymentPaused", time.Hour)), parts(of("new", 2, "rr")), "Unknown DeploymentPaused"),
	Entry("P14: is Unknown when it goes on", newDeployment(2, counted(3, 1, 2), has(progressing, "Unknown", "DeploymentPaused", time.Hour)), parts(of("old", 2, "rr"), of("new", 1, "p")), "Unknown DeploymentResumed"),
	Entry("P14: but not after the deadline", newDeployment(2, paused, counted(3, 1, 2), has(progressing, "False", "ProgressDeadlineExceeded", time.Hour)), parts(of("old", 2, "rr"), of("new", 1, "p")), "False ProgressDeadlineExceeded"),
	Entry("E4: stays while it is being deleted", newDeployment(2, ends, counted(2, 2, 1), has(progressing, "True", "MachineSetUpdated", time.Hour)), parts(of("new", 2, "rr")), "True MachineSetUpdated"),
)

var _ = It("P5: Each progress counts from now, and the condition does not flap", func() {
	d := newDeployment(2, counted(3, 0, 2), has(progressing, "True", "MachineSetUpdated", time.Hour))
	c := conditionIn(reportOf(viewOf(d, of("old", 2, "rr"), of("new", 1, "p"))), progressing)
	Expect(c.LastUpdateTime).To(Equal(metav1.NewTime(noon)))
	Expect(c.LastTransitionTime).To(Equal(at(-time.Hour)), "P3")
})

var _ = It("P9: What stands still is looked at again after the deadline", func() {
	d := newDeployment(2, within(3000), counted(3, 1, 2), has(progressing, "True", "MachineSetUpdated", 45*time.Minute))
	Expect(New(viewOf(d, of("old", 2, "rr", isMarked), of("new", 1, "p"))).Again).To(BeNumerically("<=", 5*time.Minute+time.Second))
	d = newDeployment(2, within(3000), counted(3, 1, 2), has(progressing, "True", "MachineSetUpdated", 50*time.Minute-time.Second))
	v := viewOf(d, of("old", 2, "rr", isMarked), of("new", 1, "p"))
	v.Settings.ProtectInRollout = false
	Expect(New(v).Again).To(Equal(2 * time.Second))
	d = newDeployment(2, within(3000), counted(3, 1, 2), has(progressing, "False", "ProgressDeadlineExceeded", time.Minute))
	v = viewOf(d, of("old", 2, "rr", isMarked), of("new", 1, "p"))
	v.Settings.ProtectInRollout = false
	Expect(New(v).Again).To(BeZero(), "once is enough")
})

var _ = DescribeTable("P5: Progressing says about what it is", func(d *api.MachineDeployment, sets []part, want string) {
	Expect(conditionIn(reportOf(viewOf(d, sets...)), progressing).Message).To(Equal(want))
},
	Entry("the new set", newDeployment(2, counted(2, 2, 1), has(progressing, "True", "MachineSetUpdated", time.Hour)), parts(of("new", 2, "rr")), `MachineSet "new" has successfully progressed.`),
	Entry("or the MachineDeployment, where there is none", newDeployment(2, recreates, counted(3, 0, 3), has(progressing, "True", "NewMachineSetCreated", time.Hour)), parts(of("old", 2, "rr")), `Machine Deployment "d" is progressing.`),
)

var _ = It("P3: A condition that is the same stays as it is, and those of others stay", func() {
	d := newDeployment(2, counted(2, 2, 2), has(available, "True", "MinimumReplicasAvailable", time.Hour), has("Others", "True", "Theirs", time.Hour))
	s := reportOf(viewOf(d, of("new", 2, "rr")))
	Expect(conditionIn(s, available)).To(Equal(d.Status.Conditions[0]))
	Expect(conditionIn(s, "Others")).To(Equal(d.Status.Conditions[1]))
})

var _ = DescribeTable("P3: A condition that changes says since when", func(was mcm.ConditionStatus, reason string, since time.Duration) {
	d := newDeployment(2, counted(3, 0, 2), has(progressing, was, reason, time.Hour))
	c := conditionIn(reportOf(viewOf(d, of("old", 2, "rr"), of("new", 1, "p"))), progressing)
	Expect(c).To(And(HaveField("Status", mcm.ConditionTrue), HaveField("Reason", "MachineSetUpdated"), HaveField("LastUpdateTime", metav1.NewTime(noon)), HaveField("LastTransitionTime", at(-since))))
},
	Entry("it has its status, which is not when its reason changes", mcm.ConditionTrue, "NewMachineSetCreated", time.Hour),
	Entry("it has its status, which is when that changes", mcm.ConditionFalse, "ProgressDeadlineExceeded", time.Duration(0)),
	Entry("it has its status, for the same reason, too", mcm.ConditionUnknown, "MachineSetUpdated", time.Duration(0)),
)

var _ = It("P1: What the status said before does not stay", func() {
	d := newDeployment(2, paused, completed)
	d.Status.FailedMachines = []*mcm.MachineSummary{{Name: "old-0"}}
	s := reportOf(viewOf(d, of("old", 2, "rr")))
	Expect(s.FailedMachines).To(BeEmpty(), "it has recovered")
	Expect(s.UpdatedReplicas).To(BeZero(), "there is no new set")
})

var _ = It("P12: When a set is created, the status says only that", func() {
	d := newDeployment(2, completed)
	d.Generation++
	s := reportOf(viewOf(d, of("old", 2, "rr")))
	Expect(s.ObservedGeneration).To(Equal(d.Generation - 1))
	Expect(s.UpdatedReplicas).To(BeEquivalentTo(2))
})

var _ = Describe("P8: ReplicaFailure", func() {
	failed := func(reason string) setChange {
		return func(s *mcm.MachineSet) {
			s.Status.Conditions = []mcm.MachineSetCondition{{Type: mcm.MachineSetReplicaFailure, Status: mcm.ConditionTrue, Reason: reason, Message: "of " + s.Name}}
		}
	}
	It("is that of the new set first", func() {
		s := reportOf(viewOf(newDeployment(2), of("old", 2, "rr", failed("A")), of("new", 1, "p", failed("B"))))
		Expect(conditionIn(s, failing)).To(And(HaveField("Reason", "B"), HaveField("Status", mcm.ConditionTrue), HaveField("Message", "of new")))
	})
	It("is that of another one otherwise", func() {
		s := reportOf(viewOf(newDeployment(2), of("old", 2, "rr", failed("A")), of("new", 1, "p")))
		Expect(conditionIn(s, failing).Reason).To(Equal("A"))
	})
	It("is nothing else that a set says", func() {
		v := viewOf(newDeployment(2), of("new", 2, "rr", byCondition))
		Expect(conditionIn(reportOf(v), failing)).To(BeZero())
	})
	It("goes when no set has it", func() {
		s := reportOf(viewOf(newDeployment(2, has(failing, "True", "A", time.Hour)), of("new", 2, "rr")))
		Expect(conditionIn(s, failing)).To(BeZero())
	})
})

var _ = It("T5: A set that the server refuses is a condition, and an event, once", func() {
	d := newDeployment(2, completed, has(progressing, "True", "NewMachineSetAvailable", time.Hour))
	v := viewOf(d, of("old", 2, "rr"))
	c := v.WithRefused("no more sets")
	Expect(conditionIn(c.After.StockMachineDeploymentStatus, progressing)).To(And(HaveField("Status", mcm.ConditionFalse), HaveField("Reason", "MachineSetCreateError"), HaveField("Message", "no more sets"), HaveField("LastUpdateTime", metav1.NewTime(noon))))
	Expect(c.After.UpdatedReplicas).To(BeEquivalentTo(2))
	Expect(c.Events).To(ConsistOf(And(HaveField("Reason", "MachineSetCreateError"), HaveField("Type", "Warning"))))
	d.Status = c.After
	Expect(v.WithRefused("no more sets")).To(BeNil())
})
