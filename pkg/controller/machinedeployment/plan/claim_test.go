// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

var _ = DescribeTable("A MachineSet claims",
	func(s *mcm.MachineSet, machines []machineOf, want string) {
		Expect(text(planFor(s, machines))).To(Equal(want))
	},
	Entry("O4: an orphan that it selects, before it counts", newSet("s", 3), these(running("a", orphan)), "adopt a"),
	Entry("O4: one without a phase, as after a migration of the control plane", newSet("s", 1), these(machine("a", "", orphan)), "adopt a"),
	Entry("O4: none that it does not select", newSet("s", 1), these(running("a"), running("b", orphan, relabeled)), ""),
	Entry("O4: none that is being deleted", newSet("s", 1), these(running("a"), running("b", orphan, leaving)), ""),
	Entry("O4, O6: not what it does not select any more", newSet("s", 3), these(running("a", relabeled), running("b")), "release a"),
	Entry("O6: nor one that is being deleted", newSet("s", 1), these(running("a", relabeled, leaving), running("b")), "release a"),
	Entry("O4: nothing more while it is being deleted", newSet("s", 1, goes), these(running("a", orphan), running("b", relabeled)), "remove finalizer"),
	Entry("O1: with its finalizer first", newSet("s", 1, without), these(running("a", orphan)), "adopt a, add finalizer"),
)

var _ = It("O5, O6: What is adopted or released says by which MachineSet", func() {
	p := planFor(newSet("s", 1), these(running("a", orphan), running("b", relabeled)))
	Expect(p.Claims).To(HaveLen(2))
	Expect(p.Claims).To(HaveEach(HaveField("Set.Name", "s")))
})

var _ = It("O4: Two MachineSets do not adopt the same machine", func() {
	s := newSet("s", 1)
	other := newSet("t", 1, func(o *mcm.MachineSet) {
		o.Spec.Selector, o.Spec.Template.Labels = s.Spec.Selector, s.Spec.Template.Labels
	})
	p := New(View{Now: noon, Sets: []Set{{Object: other}, {Object: s}}, Orphans: []*mcm.Machine{newMachine(s, "a", mcm.MachineRunning, orphan)}})
	Expect(p.Claims).To(HaveLen(1))
	Expect(p.Claims[0].Set.Name).To(Equal("s"))
})

var _ = DescribeTable("The rest is decided soon after", func(s *mcm.MachineSet, machines []machineOf) {
	Expect(planFor(s, machines).Again).To(beSoon())
},
	Entry("claims", newSet("s", 1), these(running("a", orphan))),
	Entry("creations", newSet("s", 1), these()),
	Entry("deletions", newSet("s", 1), these(failed("a"))),
)

var _ = DescribeTable("The rest of what a MachineDeployment needs is decided soon after", func(replicas int32, sets []part, want string) {
	p := New(viewOf(newDeployment(replicas), sets...))
	Expect(steps(p)).To(Equal(want))
	Expect(p.Again).To(beSoon())
},
	Entry("it has adopted a set", int32(1), parts(of("new", 1, "", orphanSet)), "adopt new"),
	Entry("it has created one", int32(1), parts(), "new set of 1"),
	Entry("one has another size", int32(2), parts(of("old", 2, "a", isMarked), of("new", 1, "a")), "old 2 -> 1"),
	Entry("a Node has changed", int32(1), parts(of("old", 1, "r"), of("new", 1, "p")), "avoid old-0, protect old-0"),
)

var _ = DescribeTable("A MachineSet that is being deleted",
	func(s *mcm.MachineSet, machines []machineOf, want string) {
		Expect(text(planFor(s, machines))).To(Equal(want))
	},
	Entry("O8: deletes all its machines at once, preserved ones and frozen ones, too", newSet("s", 2, goes, frozen),
		these(running("a"), failed("b", expires(time.Hour)), machine("c", ""), running("d", updated)),
		"delete a (SetDeleted), delete b (SetDeleted), delete c (SetDeleted), delete d (SetDeleted)"),
	Entry("O8: again only those that are not being deleted", newSet("s", 2, goes), these(running("a", leaving), running("b")), "delete b (SetDeleted)"),
	Entry("O8: waits for them", newSet("s", 2, goes), these(machine("a", mcm.MachineTerminating, leaving)), ""),
	Entry("O8, O3: loses its finalizer when they are gone", newSet("s", 2, goes), these(), "remove finalizer"),
	Entry("O8: deletes nothing without the finalizer", newSet("s", 2, goes, without), these(running("a")), ""),
	Entry("O1: gets no finalizer", newSet("s", 2, goes, without), these(), ""),
	Entry("O8: goes even if its spec is invalid", newSet("s", -2, goes), these(running("a")), "delete a (SetDeleted)"),
	Entry("O8: goes even if it selects nothing", newSet("s", 2, goes, nothing), these(running("a")), "delete a (SetDeleted)"),
)

var _ = DescribeTable("O8: A MachineSet that is being deleted goes on to count its machines", func(change ...setChange) {
	s := newSet("s", 2, append(change, goes)...)
	p := New(View{Now: noon, Sets: []Set{{Object: s, Machines: objects(s, these(running("a"), machine("b", mcm.MachineTerminating, leaving)))}}})
	Expect(p.Statuses).To(ConsistOf(And(HaveField("After.Replicas", BeEquivalentTo(2)), HaveField("After.ReadyReplicas", BeEquivalentTo(1)))))
},
	Entry("while it waits for them"),
	Entry("also without the finalizer", without),
)

var _ = It("O8: All machines of a MachineSet that is being deleted go at once, however many", func() {
	Expect(planFor(newSet("s", 300, goes), manyRunning(300)).Deletions).To(HaveLen(300))
})

var _ = DescribeTable("An invalid MachineSet",
	func(change setChange, reason, message string) {
		s := newSet("s", 2, change, without)
		v := View{Now: noon, Sets: []Set{{Object: s}}, Orphans: []*mcm.Machine{newMachine(newSet("s", 1), "a", mcm.MachineRunning, orphan)}}
		p := New(v)
		Expect(text(p)).To(BeEmpty(), "E2")
		Expect(p.Statuses).To(HaveLen(1))
		c := p.Statuses[0]
		Expect(c.After.ObservedGeneration).To(BeZero(), "E2")
		Expect(c.After.LastOperation.LastUpdateTime.Time).To(Equal(noon), "S28")
		Expect(c.After.Conditions).To(ConsistOf(And(HaveField("Type", mcm.MachineSetReplicaFailure), HaveField("Status", mcm.ConditionTrue),
			HaveField("Reason", reason), HaveField("Message", ContainSubstring(message)))))
		Expect(c.Events).To(ConsistOf(HaveField("Reason", reason)))
		Expect(New(reported(v)).IsEmpty()).To(BeTrue(), "it is said once")
	},
	Entry("E2, V2: has fewer than no replicas", func(s *mcm.MachineSet) { s.Spec.Replicas = -1 }, InvalidSpec, "replicas"),
	Entry("V2: has labels in its template that it does not select", func(s *mcm.MachineSet) { s.Spec.Template.Labels = map[string]string{"name": "t"} }, InvalidSpec, "labels"),
	Entry("V2: selects by expressions what its template has not", func(s *mcm.MachineSet) {
		s.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "part", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	}, InvalidSpec, "labels"),
	Entry("T9: has no labels in its template", func(s *mcm.MachineSet) {
		s.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "part", Operator: metav1.LabelSelectorOpDoesNotExist}}}
		s.Spec.Template.Labels = nil
	}, InvalidSpec, "labels"),
	Entry("V2: has a selector that means nothing", func(s *mcm.MachineSet) {
		s.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "part", Operator: "Near"}}}
	}, InvalidSpec, "spec.selector: "),
	Entry("V2: has no name of a class", func(s *mcm.MachineSet) { s.Spec.Template.Spec.Class.Name = "" }, InvalidSpec, "class"),
	Entry("V2: has no kind of a class", func(s *mcm.MachineSet) { s.Spec.Template.Spec.Class.Kind = "" }, InvalidSpec, "class"),
	Entry("V4: has no selector", nothing, SelectingAll, "matchLabels"),
	Entry("V4: has an empty selector", all, SelectingAll, "matchLabels"),
)

var _ = It("E2: A MachineSet that becomes valid loses the condition", func() {
	v := reported(View{Now: noon, Sets: []Set{{Object: newSet("s", -1)}}})
	v.Sets[0].Object.Spec.Replicas = 0
	p := New(v)
	Expect(p.Statuses).To(HaveLen(1))
	Expect(p.Statuses[0].After.Conditions).To(BeEmpty())
	Expect(p.Statuses[0].After.ObservedGeneration).To(BeEquivalentTo(3))
	Expect(p.Statuses[0].Events).To(BeEmpty())
	Expect(strings.Count(text(p), "finalizer")).To(BeZero())
})

var _ = It("O1: A MachineSet gets its finalizer, and goes on in the same plan", func() {
	Expect(text(planFor(newSet("s", 2, without), nil))).To(Equal("add finalizer, create 2"))
})
