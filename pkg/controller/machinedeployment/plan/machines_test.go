// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

var (
	newLabels = func(s *mcm.MachineSet) {
		s.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"new": "yes"}
	}
	newDrain = func(s *mcm.MachineSet) {
		s.Spec.Template.Spec.MachineConfiguration = &mcm.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: time.Minute}}
	}
)

var _ = DescribeTable("A machine of an older template",
	func(phase mcm.MachinePhase, change setChange, want string) {
		old, s := newSet("s", 1), newSet("s", 1, change)
		m := newMachine(old, "a", phase, expires(time.Hour))
		p := New(newView(s, m))
		Expect(text(p)).To(Equal(want))
		for _, c := range p.Machines {
			Expect(c.After.Spec.Class.Kind).To(Equal(s.Spec.Template.Spec.Class.Kind))
			if machineutils.IsMachineActive(m) {
				Expect(c.After.Spec).To(Equal(s.Spec.Template.Spec))
			} else {
				Expect(c.After.Spec.NodeTemplateSpec).To(Equal(m.Spec.NodeTemplateSpec))
			}
			Expect(c.Before).To(BeIdenticalTo(m))
		}
	},
	Entry("T8: takes the node template", mcm.MachineRunning, newLabels, "change a"),
	Entry("T8: takes the configuration", mcm.MachinePending, newDrain, "change a"),
	Entry("T8: takes the kind of the class", mcm.MachineRunning, kind("Other"), "change a"),
	Entry("T8: takes none if it has failed", mcm.MachineFailed, newLabels, ""),
	Entry("T8: takes no configuration if it has failed", mcm.MachineFailed, newDrain, ""),
	Entry("T8: takes the kind even if it has failed", mcm.MachineFailed, kind("Other"), "change a"),
	Entry("T8: takes only the kind if it has failed", mcm.MachineFailed, func(s *mcm.MachineSet) { newLabels(s); kind("Other")(s) }, "change a"),
	Entry("T8: does not take the name of the class", mcm.MachineRunning, func(s *mcm.MachineSet) { s.Spec.Template.Spec.Class.Name = "other" }, ""),
	Entry("T8: does not take labels", mcm.MachineRunning, func(s *mcm.MachineSet) { s.Spec.Template.Labels["new"] = "yes" }, ""),
	Entry("T8: does not take annotations", mcm.MachineRunning, func(s *mcm.MachineSet) { s.Spec.Template.Annotations = map[string]string{"new": "yes"} }, ""),
)

var _ = It("T8: A machine that is terminating takes only the kind of the class, and one that is deleted now nothing", func() {
	old, s := newSet("s", 1), newSet("s", 1, newLabels)
	Expect(text(New(newView(s, newMachine(old, "a", mcm.MachineTerminating), newMachine(s, "b", mcm.MachineRunning))))).To(BeEmpty())
	Expect(text(New(newView(s, newMachine(old, "a", mcm.MachineRunning), newMachine(s, "b", mcm.MachineRunning))))).To(Equal("delete a (Surplus)"))
})

var _ = DescribeTable("Failed machines",
	func(s *mcm.MachineSet, machines []machineOf, want string) {
		Expect(text(planFor(s, machines))).To(Equal(want))
	},
	Entry("Y1: are not preserved without being allowed to", newSet("s", 1), these(failed("a")), "delete a (Failed)"),
	Entry("Y2: are preserved, the newest first", newSet("s", 2, keeps(1)), these(failed("a"), failed("b", aged(time.Minute))),
		`change b, (preserve "auto-preserved"), delete a (Failed)`),
	Entry("Y1: are preserved no more than allowed", newSet("s", 2, keeps(1)), these(failed("a", preserve("auto-preserved")), failed("b")), "delete b (Failed)"),
	Entry("Y1: count in any phase", newSet("s", 2, keeps(1)), these(running("a", preserve("auto-preserved")), failed("b")), "delete b (Failed)"),
	Entry("Y2: with an unknown value are preserved", newSet("s", 1, keeps(1)), these(failed("a", preserve("perhaps"))), `change a, (preserve "auto-preserved")`),
	Entry("Y2: with the value false are not", newSet("s", 1, keeps(1)), these(failed("a", preserve("false"))), "delete a (Failed)"),
	Entry("Y2: are preserved, and not one that runs", newSet("s", 2, keeps(1)), these(running("a", aged(time.Minute)), failed("b")), `change b, (preserve "auto-preserved")`),
	Entry("Y2: that are being deleted take no place", newSet("s", 2, keeps(1)), these(failed("a", leaving, aged(time.Minute)), failed("b")), `change b, (preserve "auto-preserved")`),
	Entry("Y2: are preserved also while machines are missing", newSet("s", 3, keeps(1)), these(failed("a")), `change a, (preserve "auto-preserved"), create 2`),
	Entry("Y3: beyond what is allowed lose the value, the oldest first", newSet("s", 2, keeps(1)),
		these(failed("a", preserve("auto-preserved"), aged(time.Minute)), failed("b", preserve("auto-preserved"))), "change b, (preserve no more)"),
	Entry("Y3: that run lose it, too", newSet("s", 1), these(running("a", preserve("auto-preserved"))), "change a, (preserve no more)"),
	Entry("Y4: are spared until their preservation expires", newSet("s", 1), these(failed("a", expires(time.Second))), ""),
	Entry("Y4: are deleted then, whatever their value", newSet("s", 1), these(failed("a", expires(0), preserve("now"))), "delete a (Failed)"),
	Entry("Y4: are spared with the value now", newSet("s", 1), these(failed("a", preserve("now"))), ""),
	Entry("Y4: are spared with the value when-failed", newSet("s", 1), these(failed("a", preserve("when-failed"))), ""),
	Entry("Y4: are deleted with the value false", newSet("s", 1), these(failed("a", preserve("false"))), "delete a (Failed)"),
	Entry("Y4: are deleted with an unknown value", newSet("s", 1), these(failed("a", preserve("perhaps"))), "delete a (Failed)"),
	Entry("Y4: are deleted if their Node is not found", newSet("s", 1), these(failed("a", onNode, preserve("now"))), "delete a (Failed)"),
	Entry("Y6: that are preserved go last, but they go", newSet("s", 0), these(failed("a", expires(time.Hour)), running("b")), "delete b (Surplus), delete a (Surplus)"),
)

var _ = DescribeTable("Of a failed machine and its Node, Y5,",
	func(ofNode, ofMachine, applied string, spared bool) {
		s := newSet("s", 1)
		m := newMachine(s, "a", mcm.MachineFailed, onNode)
		for key, value := range map[string]string{machineutils.PreserveMachineAnnotationKey: ofMachine, machineutils.LastAppliedNodePreserveValueAnnotationKey: applied} {
			if value != "" {
				annotated(key, value)(m)
			}
		}
		v := newView(s, m)
		v.Nodes["node"] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Annotations: map[string]string{machineutils.PreserveMachineAnnotationKey: ofNode}}}
		Expect(New(v).Deletions).To(HaveLen(map[bool]int{true: 0, false: 1}[spared]))
	},
	Entry("the machine's value counts if the Node has none", "", "now", "", true),
	Entry("the Node's value counts if it has one", "when-failed", "false", "", true),
	Entry("the Node's value counts against the machine's", "false", "now", "", false),
	Entry("the Node's value counts once it has been applied, even if it is gone", "", "now", "now", false),
)

var _ = It("Y5: Without a target cluster, the machine's own value counts", func() {
	s := newSet("s", 1)
	v := newView(s, newMachine(s, "a", mcm.MachineFailed, onNode, preserve("now")))
	v.Nodes = nil
	Expect(text(New(v))).To(BeEmpty())
})

var _ = It("Y4: A MachineSet is looked at again when a preservation expires", func() {
	Expect(planFor(newSet("s", 2), these(failed("a", expires(time.Minute)), failed("b", expires(time.Hour)))).Again).To(Equal(time.Minute))
	Expect(planFor(newSet("s", 1), these(running("a", expires(time.Minute)))).Again).To(BeZero(), "nothing happens then to one that runs")
})

var _ = It("Y2: A failed machine that is preserved keeps its other annotations", func() {
	s := newSet("s", 1, keeps(1))
	p := New(newView(s, newMachine(s, "a", mcm.MachineFailed, annotated("others", "stay"))))
	Expect(p.Machines).To(ConsistOf(HaveField("After.Annotations", Equal(map[string]string{machineutils.PreserveMachineAnnotationKey: "auto-preserved", "others": "stay"}))))
})
