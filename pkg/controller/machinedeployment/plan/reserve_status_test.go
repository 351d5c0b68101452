// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// statusAfter returns the status after a plan.
func statusAfter(s *spares) api.MachineDeploymentStatus {
	if p := s.decide(); p.DeploymentStatus != nil {
		return p.DeploymentStatus.After
	}
	return s.View.Deployment.Status
}

func countsIn(s api.MachineDeploymentStatus) string {
	failed := ""
	for _, m := range s.FailedMachines {
		failed += " " + m.Name
	}
	return fmt.Sprintf("%d machines, %d updated, %d ready, %d available, %d not; %d of %d in reserve ready%s",
		s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas, s.ReadyExcessReplicas, s.ExcessReplicas, failed)
}

// failedToCome is a machine that failed when it was created.
func failedToCome(m *mcm.Machine) {
	m.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateFailed}
}

func failedLater(m *mcm.Machine) {
	m.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationHealthCheck, State: mcm.MachineStateFailed}
}

var _ = DescribeTable("The status of a MachineDeployment with a reserve counts",
	func(s *spares, want, available, reserve string) {
		after := statusAfter(s)
		Expect(countsIn(after)).To(Equal(want))
		Expect(shown(after, mcm.MachineDeploymentAvailable)).To(Equal(available))
		Expect(shown(after, api.ReserveReady)).To(Equal(reserve))
	},
	Entry("the reserve with the rest", withSpares(2, newDeployment(2), of("new", 4, "rrRR")),
		"4 machines, 4 updated, 4 ready, 4 available, 0 not; 2 of 2 in reserve ready", "True", "True Complete"),
	Entry("no machine in reserve that boots: who waits for the rest does not wait for it", withSpares(2, newDeployment(2), of("new", 4, "rrRP")),
		"3 machines, 3 updated, 3 ready, 3 available, 0 not; 1 of 2 in reserve ready", "True", "False NotReady"),
	Entry("no machine in reserve that has yet to be created", withSpares(2, newDeployment(2), of("new", 4, "rrRN")),
		"3 machines, 3 updated, 3 ready, 3 available, 0 not; 1 of 2 in reserve ready", "True", "False NotReady"),
	Entry("no machine in reserve that is yet to come", withSpares(2, newDeployment(2), of("new", 4, "rr")),
		"2 machines, 2 updated, 2 ready, 2 available, 0 not; 0 of 0 in reserve ready", "True", "False Growing"),
	Entry("a ready one in reserve that leaves no more, while another one takes its place", changed(withSpares(2, newDeployment(2), of("new", 4, "rrRR")), to("new-3", leaving)),
		"4 machines, 4 updated, 4 ready, 4 available, 0 not; 1 of 1 in reserve ready", "True", "False Growing"),
	Entry("one that boots and serves", withSpares(2, newDeployment(3), of("new", 5, "rrpRP")),
		"3 machines, 3 updated, 3 ready, 3 available, 0 not; 0 of 2 in reserve ready", "True", "False NotReady"),
	Entry("one that boots and serves, and what is not available for it", withSpares(1, newDeployment(3), of("new", 4, "rrpP")),
		"3 machines, 3 updated, 2 ready, 2 available, 1 not; 0 of 1 in reserve ready", "False", "False NotReady"),
	Entry("one that boots and serves, also while all in reserve are ready", changed(withSpares(2, newDeployment(3), of("new", 5, "rrpRR")), unreachable),
		"5 machines, 5 updated, 4 ready, 4 available, 1 not; 2 of 2 in reserve ready", "False", "Unknown ClusterUnreachable"),
	Entry("one in reserve that is Unknown", withSpares(2, newDeployment(2), of("new", 4, "rrRU")),
		"4 machines, 4 updated, 3 ready, 3 available, 0 not; 1 of 2 in reserve ready", "True", "False NotReady"),
	Entry("none in reserve that failed when it was created, nor its failure", changed(withSpares(2, newDeployment(2), of("new", 4, "rrRF")), to("new-3", failedToCome)),
		"3 machines, 3 updated, 3 ready, 3 available, 0 not; 1 of 2 in reserve ready", "True", "False NotReady"),
	Entry("one in reserve that failed later, with its failure", changed(withSpares(2, newDeployment(2), of("new", 4, "rrRF")), to("new-3", failedLater)),
		"4 machines, 4 updated, 3 ready, 3 available, 0 not; 1 of 2 in reserve ready new-3", "True", "False NotReady"),
	Entry("failures of those that serve", changed(withSpares(2, newDeployment(3), of("new", 5, "rrfRR")), to("new-2", failedToCome)),
		"5 machines, 5 updated, 4 ready, 4 available, 0 not; 1 of 1 in reserve ready new-2", "True", "False Unhealthy"),
	Entry("one in reserve that boots and leaves, until it has gone", withSpares(1, newDeployment(2), of("new", 3, "rrPR"), of("old", 0, "")), "3 machines, 3 updated, 3 ready, 3 available, 0 not; 1 of 2 in reserve ready", "True", "False Shrinking"),
	Entry("one in reserve that boots and is being deleted, until it has gone", changed(withSpares(1, newDeployment(2), of("new", 3, "rrRP")), to("new-3", leaving, phased(mcm.MachinePending))),
		"4 machines, 4 updated, 3 ready, 3 available, 0 not; 1 of 1 in reserve ready", "True", "True Complete"),
	Entry("old ones in reserve that boot", withSpares(1, newDeployment(2), of("old", 2, "rP"), of("new", 2, "rp")),
		"3 machines, 2 updated, 2 ready, 2 available, 1 not; 0 of 1 in reserve ready", "True", "False SurplusServing"),
	Entry("all, also those in reserve, before the cluster goes", changed(withSpares(1, newDeployment(0), of("new", 1, "P")), forced),
		"1 machines, 1 updated, 0 ready, 0 available, 1 not; 0 of 1 in reserve ready", "True", "False NotReady"),
)

// shown returns "status reason" of a condition, of Available only the status.
func shown(s api.MachineDeploymentStatus, of mcm.MachineDeploymentConditionType) string {
	for _, c := range s.Conditions {
		if c.Type == of && of == mcm.MachineDeploymentAvailable {
			return string(c.Status)
		}
		if c.Type == of {
			return fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
	}
	return ""
}

var _ = Describe("The status of a MachineDeployment with a reserve", func() {
	progress := func(s *spares) string { return shown(statusAfter(s), mcm.MachineDeploymentProgressing) }
	creating := func(d *api.MachineDeployment) {
		d.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: mcm.MachineDeploymentProgressing, Status: mcm.ConditionTrue, Reason: "MachineSetUpdated", LastUpdateTime: at(0)}}
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 9, 9, 9, 9
	}

	DescribeTable("says that a rollout has ended once the reserve is there, too",
		func(s *spares, want string) { Expect(progress(s)).To(Equal(want)) },
		Entry("with all of it", withSpares(1, newDeployment(1, creating), of("new", 2, "rR")), "True NewMachineSetAvailable"),
		Entry("not while one boots", withSpares(1, newDeployment(1, creating), of("new", 2, "rP")), "True MachineSetUpdated"),
		Entry("not while one is missing", withSpares(1, newDeployment(1, creating), of("new", 2, "r")), "True MachineSetUpdated"),
		Entry("not while an old one is there", withSpares(1, newDeployment(1, creating), of("old", 0, "P"), of("new", 2, "rR")), "True MachineSetUpdated"),
		Entry("not while all are old", withSpares(1, newDeployment(1, creating), of("old", 2, "rR"), of("new", 0, "")), "True MachineSetUpdated"),
		Entry("without any", withSpares(0, newDeployment(0, creating), of("new", 0, "")), "True NewMachineSetAvailable"),
	)

	It("is followed by what a rollout leaves behind, and not before an old machine in reserve has gone", func() {
		ended := func(letters string) *spares {
			s := withSpares(1, newDeployment(1, keepsSets(0)), of("gone", 0, "", isMarked), of("old", 0, letters, isMarked), of("new", 2, "rR", isMarked))
			s.View.Deployment.Status = statusAfter(s)
			s.View.Deployment.Status.Conditions[1].Reason = "MachineSetUpdated"
			Expect(s.decide().SetDeletions).To(BeEmpty(), "the status has yet to say so")
			s.View.Deployment.Status.Conditions[1].Reason = "NewMachineSetAvailable"
			Expect(s.View.Deployment.Status.Conditions[1].Type).To(Equal(mcm.MachineDeploymentProgressing))
			return s
		}
		Expect(ended("").decide().SetDeletions).To(HaveLen(2))
		Expect(ended("P").decide().SetDeletions).To(BeEmpty())
	})

	It("is written with an event, once", func() {
		s := withSpares(1, newDeployment(1), of("new", 2, "rR"))
		p := s.decide()
		Expect(p.DeploymentStatus.Events).To(ConsistOf(And(HaveField("Type", corev1.EventTypeNormal), HaveField("Reason", Not(BeEmpty())), HaveField("Set", BeNil()))))
		s.carryOut(p)
		s.edit(func(d *api.MachineDeployment) { d.Spec.MinReadySeconds++ })
		p = s.decide()
		Expect(p.DeploymentStatus).NotTo(BeNil(), "the generation is observed")
		Expect(p.DeploymentStatus.Events).To(BeEmpty())
	})

	It("shows the selector", func() {
		Expect(statusAfter(withSpares(1, newDeployment(1), of("new", 2, "rR"))).Selector).To(Equal("name=d"))
	})
})

var _ = Describe("A MachineDeployment with a reserve", func() {
	It("keeps what the reserve needs to itself", func() {
		s := withSpares(1, newDeployment(2), of("new", 3, "rrR"))
		s.edit(func(d *api.MachineDeployment) {
			d.Annotations[api.BoundsAnnotation], d.Annotations["owner"] = "1:9", "a"
		})
		sets := s.decide().Sets
		Expect(sets).To(HaveLen(1))
		Expect(sets[0].After.Annotations).To(HaveKeyWithValue("owner", "a"))
		for key := range sets[0].After.Annotations {
			Expect(strings.Contains(key, "evenkeel")).To(BeFalse(), key)
		}
		s = withSpares(1, newDeployment(2))
		for key := range s.decide().NewSets[0].Annotations {
			Expect(strings.Contains(key, "evenkeel")).To(BeFalse(), key)
		}
	})

	It("says on each MachineSet for how many machines its size was decided, those in reserve included", func() {
		sets := withSpares(2, newDeployment(3), of("new", 4, "rrRR", keptSized(4))).decide().Sets
		Expect(sets[0].After.Annotations).To(And(HaveKeyWithValue(desired, "5"), HaveKeyWithValue(maximum, "6")))
	})

	It("comes to rest, with the marks of its machines on their Nodes, and nothing is written then", func() {
		s := withSpares(2, newDeployment(2), of("new", 4, "rrRO"))
		for range 3 {
			s.carryOut(s.decide())
		}
		Expect(s.decide().IsEmpty()).To(BeTrue())
		Expect(s.Nodes["node-new-3"].Spec.Taints).To(ConsistOf(HaveField("Key", api.ReserveTaintKey)))
		Expect(s.Nodes["node-new-3"].Annotations).To(And(HaveKey(api.ReserveAnnotation), HaveKeyWithValue(scaleDown, "true")))
		Expect(s.Nodes["node-new-0"].Spec.Taints).To(BeEmpty())
		Expect(s.machine("new-3").Annotations).To(HaveKeyWithValue(api.ReserveStateAnnotation, ContainSubstring("carries the reserve taint")))
	})

	It("keeps the mark of a machine that takes something from a new template", func() {
		s := withSpares(1, newDeployment(1), of("new", 2, "rR"))
		s.edit(func(d *api.MachineDeployment) {
			d.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"new": "yes"}
		})
		first := s.decide()
		for range 3 {
			s.carryOut(s.decide())
		}
		Expect(s.decide().IsEmpty()).To(BeTrue())
		m := s.machine("new-1")
		Expect(pool.Marked(m)).To(BeTrue())
		Expect(first.Machines).To(ConsistOf(HaveField("After.Spec.NodeTemplateSpec", m.Spec.NodeTemplateSpec), HaveField("After.Spec.NodeTemplateSpec", s.machine("new-0").Spec.NodeTemplateSpec)), "in one write")
		Expect(m.Spec.NodeTemplateSpec.Labels).To(HaveKeyWithValue("new", "yes"))
		Expect(m.Spec.NodeTemplateSpec.Spec.Taints).To(ConsistOf(HaveField("Key", api.ReserveTaintKey)))
		Expect(s.machine("new-0").Spec.NodeTemplateSpec.Spec.Taints).To(BeEmpty())
	})

	It("records its excess anew, as it is now, if a client has removed the record", func() {
		s := withSpares(2, newDeployment(1), of("new", 3, "rRR"))
		s.carryOut(s.decide())
		s.edit(asks(1), func(d *api.MachineDeployment) { delete(d.Annotations, api.AppliedExcessAnnotation) })
		p := s.decide()
		Expect(tale(p)).To(Equal("new 3 -> 2, delete new-2 (Surplus)"))
		Expect(p.Deployment.After.Annotations).To(HaveKeyWithValue(api.AppliedExcessAnnotation, "2"), "until that is seen leaving")
		s.carryOut(p)
		after := s.decide().Deployment
		Expect(after.After.Annotations).To(HaveKeyWithValue(api.AppliedExcessAnnotation, "1"))
		Expect(after.Events).To(ConsistOf(HaveField("Message", "Applied excess reduced from 2 to 1")))
	})

	It("changes Nodes for it beside all other writes, since pods may wait for them, and those of a rollout after these", func() {
		urgent := map[string]bool{}
		for _, c := range withSpares(1, newDeployment(3), of("old", 2, "rR"), of("new", 2, "r")).decide().Nodes {
			urgent[c.Before.Name] = c.Urgent
		}
		Expect(urgent).To(Equal(map[string]bool{"node-old-0": false, "node-old-1": true, "node-new-0": false}))
	})

	It("leaves who has applied which field as it is, where it restores none", func() {
		s := withSpares(1, newDeployment(2), of("new", 3, "rrR"))
		s.edit(func(d *api.MachineDeployment) {
			d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "gitops", Operation: metav1.ManagedFieldsOperationApply}}
		})
		for range 3 {
			s.carryOut(s.decide())
		}
		Expect(s.View.Deployment.ManagedFields).To(ConsistOf(HaveField("Manager", "gitops")))
	})

	It("counts what it is to have, those in reserve included, where machines could not be created", func() {
		v := withSpares(2, newDeployment(2), of("new", 4, "rrRRrR")).view()
		v.Settings.SafetyUp, v.Settings.SafetyDown = 2, 1
		c, _ := v.WithFailure(v.Sets[0], Failure{FailedCreate, "quota"})
		Expect(c.After.Conditions).To(ConsistOf(HaveField("Type", mcm.MachineSetReplicaFailure)), "it is not frozen")
	})

	It("creates machines with the mark of now", func() {
		c := withSpares(1, newDeployment(1), of("new", 2, "r")).decide().Creations[0]
		Expect(c.Mark.Since.Equal(noon)).To(BeTrue())
		Expect(c.Mark.Taints).To(ConsistOf(HaveField("Effect", corev1.TaintEffectNoSchedule)))
	})

	It("creates no more than there is room for, over all its sets", func() {
		s := changed(withSpares(3, newDeployment(2), of("new", 5, "rrR")), bounds("1:4"))
		Expect(tale(s.decide())).To(Equal("new 5 -> 4, new creates 1, 1 in reserve"))
		s = changed(withSpares(2, newDeployment(2, paused), of("a", 2, "r"), of("b", 2, "")), bounds("1:9"))
		Expect(tale(s.decide())).To(Equal("a creates 1, 0 in reserve, b creates 2, 2 in reserve"))
	})

	It("is without one when the field asks for none: its machines go, and then all traces", func() {
		s := withSpares(2, newDeployment(1), of("new", 3, "rRR"))
		s.edit(func(d *api.MachineDeployment) { d.Spec.ExcessReplicas = new(int32(0)) })
		for range 6 {
			s.carryOut(s.decide())
		}
		Expect(s.decide().IsEmpty()).To(BeTrue())
		Expect(sketch(s.View)).To(Equal("new 1 (r)"))
		Expect(s.View.Deployment.Annotations).NotTo(Or(HaveKey(api.AppliedExcessAnnotation), HaveKey(api.WantedExcessAnnotation)))
		Expect(s.View.Deployment.Spec.ReserveWitness).To(BeFalse())
		Expect(shown(s.View.Deployment.Status, api.ReserveReady)).To(BeEmpty())
		Expect(s.decide().Memory).To(BeNil())
	})

	It("is as in stock, and remembers nothing, where nobody asks for a reserve, also if growth is to be split over zones", func() {
		s := withSpares(0, newDeployment(4), of("new", 2, "rr", keptSized(2)))
		delete(s.View.Deployment.Annotations, api.AppliedExcessAnnotation)
		s.View.Deployment.Spec.ExcessReplicas = nil
		s.View.Deployment.Annotations[api.AppliedReplicasAnnotation] = "3"
		p := s.decide()
		Expect(tale(p)).To(Equal("new 2 -> 3, new creates 1, 0 in reserve"))
		Expect(p.Memory).To(BeNil())
		Expect(conditionOf(p, api.ReserveReady)).To(BeEmpty())
	})

	It("restores the field that a client which does not know it has removed, with an event", func() {
		s := withSpares(2, newDeployment(1), of("new", 3, "rRR"))
		s.edit(func(d *api.MachineDeployment) { d.Spec.ExcessReplicas, d.Spec.ReserveWitness = nil, false })
		p := s.decide()
		Expect(p.Deployment.After.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(2)))
		Expect(p.Deployment.After.Spec.ReserveWitness).To(BeTrue())
		Expect(p.Deployment.Events).To(ConsistOf(HaveField("Reason", "ExcessRestored")))
		Expect(tale(p)).To(BeEmpty())
	})

	It("gives the field that it has restored back to who applied it", func() {
		s := withSpares(2, newDeployment(1), of("new", 3, "rRR"))
		s.edit(func(d *api.MachineDeployment) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, api.ExcessOwnersAnnotation, api.ExcessOwnersText([]string{"gitops"}))
			d.ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: machinetaint.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:excessReplicas":{}}}`)},
			}}
		})
		before := s.View.Deployment.DeepCopy()
		after := s.decide().Deployment.After
		Expect(after.ManagedFields).To(ContainElement(HaveField("Manager", "gitops")))
		Expect(s.View.Deployment).To(Equal(before), "the object of the view stays as it was")
	})

	It("has no reserve if a client removes the field that knows it, with an event", func() {
		s := withSpares(2, newDeployment(1), of("new", 3, "rRR"))
		s.edit(func(d *api.MachineDeployment) { d.Spec.ExcessReplicas = nil })
		p := s.decide()
		Expect(p.Deployment.Events).To(ConsistOf(HaveField("Reason", "ExcessRemoved")))
		Expect(tale(p)).To(Equal("new 3 -> 1, delete new-2 (Surplus), delete new-1 (Surplus)"))
	})

	It("restores replicas that a client lowered for a machine in reserve", func() {
		s := withSpares(1, newDeployment(1, func(d *api.MachineDeployment) {
			d.Annotations = map[string]string{"node.machine.sapcloud.io/trigger-deletion-by-mcm": "new-2~" + mark(-time.Minute)}
		}), of("new", 3, "rrR", keptSized(3)))
		p := s.decide()
		Expect(p.Deployment.After.Spec.Replicas).To(BeEquivalentTo(2))
		Expect(tale(p)).To(Equal("delete new-2 (Named)"))
		s.carryOut(p)
		s.edit(func(d *api.MachineDeployment) { d.Spec.Replicas = 1 })
		Expect(s.decide().Deployment.After.Spec.Replicas).To(BeEquivalentTo(1), "once")
	})

	It("is looked at again when patience with a surplus ends, or a machine in reserve has had enough time", func() {
		s := withSpares(2, newDeployment(2), of("new", 4, "rrRP"))
		for range 3 {
			s.carryOut(s.decide())
		}
		Expect(s.decide().Again).To(Equal(14 * time.Minute))
		s = withSpares(2, newDeployment(2), of("new", 4, "rrrR"))
		for range 3 {
			s.carryOut(s.decide())
		}
		s.Now = noon.Add(5 * time.Minute)
		Expect(s.decide().Again).To(Equal(5 * time.Minute))
		Expect(s.memory.SurplusSince).To(Equal(noon))
	})

	DescribeTable("is frozen by the number of its machines, those in reserve included", func(letters string, frozen bool) {
		s := withSpares(2, newDeployment(2), of("new", 4, letters))
		s.Settings.SafetyUp, s.Settings.SafetyDown = 2, 1
		s.each(func(m *mcm.Machine) *mcm.Machine {
			m.Labels = map[string]string{"name": "d", hashLabel: "new", mcm.NodeLabelKey: m.Labels[mcm.NodeLabelKey]}
			return m
		})
		is := false
		for _, c := range s.decide().Sets {
			is = is || c.After.Labels[pool.FreezeLabel] == "True"
		}
		Expect(is).To(Equal(frozen))
	},
		Entry("not by those that it is to have, and one of surge", "rrRRrR", false),
		Entry("by as many more as the flag says", "rrRRrRr", true),
	)
})
