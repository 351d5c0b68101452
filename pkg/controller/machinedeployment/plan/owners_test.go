// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	machineinternal "github.com/gardener/machine-controller-manager/pkg/apis/machine"
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/validation"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

func orphanSet(s *mcm.MachineSet) { s.OwnerReferences = nil }
func cutOff(s *mcm.MachineSet)    { s.Labels["name"] = "other" }
func unfinished(d *api.MachineDeployment) {
	d.Finalizers = nil
}

var _ = DescribeTable("A MachineDeployment claims",
	func(d *api.MachineDeployment, sets []part, want string) {
		Expect(moves(New(viewOf(d, sets...)))).To(Equal(want))
	},
	Entry("O4: an orphan that it selects, before it counts", newDeployment(2), parts(of("new", 2, "", orphanSet)), "adopt new"),
	Entry("O4: all of them, and decides nothing else", newDeployment(2), parts(of("a", 1, "r"), of("b", 1, "", orphanSet), of("new", 2, "", orphanSet)), "adopt b, adopt new"),
	Entry("O4: none that it does not select", newDeployment(1), parts(of("new", 1, "r"), of("b", 1, "", orphanSet, cutOff)), ""),
	Entry("O4: none that is being deleted", newDeployment(1), parts(of("new", 1, "r"), of("b", 1, "", orphanSet, goes)), ""),
	Entry("O4: none while it is being deleted", newDeployment(1, ends), parts(of("b", 1, "", orphanSet)), "remove finalizer"),
	Entry("O6: not what it does not select any more", newDeployment(1), parts(of("a", 1, "r", cutOff), of("new", 1, "r")), "release a"),
	Entry("O6: but keeps that while it is being deleted", newDeployment(1, ends), parts(of("a", 1, "r", cutOff)), "remove finalizer"),
	Entry("E2: nothing while it is invalid", newDeployment(-1), parts(of("a", 0, "", cutOff), of("b", 1, "", orphanSet)), ""),
)

var _ = Describe("O11: An orphan that several MachineDeployments select", func() {
	adopts := func(age time.Duration, name string, change ...deploymentChange) string {
		v := viewOf(newDeployment(1, func(d *api.MachineDeployment) { d.CreationTimestamp = at(-time.Hour) }), of("new", 1, "r"), of("b", 1, "", orphanSet))
		other := newDeployment(1, append(change, func(d *api.MachineDeployment) { d.Name, d.UID, d.CreationTimestamp = name, "other", at(-age) })...)
		v.Others = []*api.MachineDeployment{other}
		return moves(New(v))
	}
	It("is adopted by the oldest of them", func() {
		Expect(adopts(2*time.Hour, "e")).To(BeEmpty())
		Expect(adopts(time.Minute, "a")).To(Equal("adopt b"))
	})
	It("is adopted by the first by name, if they are of one age", func() {
		Expect(adopts(time.Hour, "a")).To(BeEmpty())
		Expect(adopts(time.Hour, "e")).To(Equal("adopt b"))
	})
	It("is not left to one that does not adopt it", func() {
		Expect(adopts(2*time.Hour, "e", ends)).To(Equal("adopt b"))
		Expect(adopts(2*time.Hour, "e", func(d *api.MachineDeployment) { d.Spec.Replicas = -1 })).To(Equal("adopt b"))
		Expect(adopts(2*time.Hour, "e", func(d *api.MachineDeployment) {
			d.Spec.Selector.MatchLabels["name"], d.Spec.Template.Labels["name"] = "e", "e"
		})).To(Equal("adopt b"))
	})
})

var _ = It("O4: Nothing is decided while a MachineSet has yet to adopt machines", func() {
	d := newDeployment(2, unfinished)
	v := viewOf(d, of("old", 2, "rr"), of("new", 1, "r"))
	v.Orphans = append(v.Orphans, newMachine(v.Sets[1].Object, "m", mcm.MachineRunning, orphan, func(m *mcm.Machine) { m.Labels = v.Sets[1].Object.Labels }))
	Expect(text(New(v))).To(Equal("adopt m"))
	Expect(moves(New(v))).To(BeEmpty())
})

var _ = DescribeTable("A MachineDeployment that is being deleted",
	func(d *api.MachineDeployment, sets []part, want string) {
		Expect(steps(New(viewOf(d, sets...)))).To(Equal(want))
	},
	Entry("O7: deletes its sets", newDeployment(2, ends), parts(of("old", 1, "r"), of("new", 1, "r")), "delete set old, delete set new"),
	Entry("O7: in which no more machine is created, and none deleted that goes anyway", newDeployment(2, ends), parts(of("old", 5, "rf"), of("new", 0, "r")), "delete set old, delete set new"),
	Entry("O7: each once, whose machines go", newDeployment(2, ends), parts(of("old", 1, "r"), of("new", 1, "r", goes)), "delete new-0, delete set old"),
	Entry("O7: waits for them", newDeployment(2, ends), parts(of("new", 1, "t", goes)), ""),
	Entry("O7: loses its finalizer when they are gone", newDeployment(2, ends), parts(), "remove finalizer"),
	Entry("E4: deletes nothing without the finalizer", newDeployment(2, ends, unfinished), parts(of("new", 2, "r")), "new creates 1"),
	Entry("E2: goes if it is invalid", newDeployment(2, ends, func(d *api.MachineDeployment) { d.Spec.Strategy.RollingUpdate = nil }), parts(of("new", 2, "rr")), "delete set new"),
	Entry("E2: also without the block of its strategy", newDeployment(2, ends, func(d *api.MachineDeployment) {
		d.Spec.Strategy = mcm.MachineDeploymentStrategy{Type: mcm.InPlaceUpdateMachineDeploymentStrategyType}
	}), parts(of("new", 2, "rr")), "delete set new"),
	Entry("E3: goes if it selects everything", newDeployment(2, ends, func(d *api.MachineDeployment) { d.Spec.Selector = nil }), parts(of("new", 2, "rr")), "delete set new"),
	Entry("E2: goes if a set is invalid", newDeployment(2, ends), parts(of("new", 2, "rr", nothing)), "delete set new"),
	Entry("E4: takes no step of a rollout", newDeployment(2, ends), parts(of("old", 2, "rr", goes), of("new", 0, "", goes)), "new finalizer, delete old-0, delete old-1"),
)

var _ = It("O7: A MachineDeployment that is being deleted goes on to count its machines", func() {
	s := reportOf(viewOf(newDeployment(3, ends), of("old", 1, "r"), of("new", 2, "rp")))
	Expect([]int32{s.Replicas, s.UpdatedReplicas, s.ReadyReplicas}).To(Equal([]int32{3, 2, 2}))
})

var _ = It("O1: A MachineDeployment gets its finalizer, and goes on in the same plan", func() {
	Expect(steps(New(viewOf(newDeployment(2, unfinished))))).To(Equal("add finalizer, new set of 2"))
	Expect(steps(New(viewOf(newDeployment(2, ends, unfinished))))).To(BeEmpty())
	p := New(viewOf(newDeployment(2, ends, func(d *api.MachineDeployment) { d.Finalizers = []string{"others.dev/hold", Finalizer} })))
	Expect(p.Deployment.After.Finalizers).To(ConsistOf("others.dev/hold"), "O2")
})

var _ = DescribeTable("A MachineDeployment is invalid",
	func(change deploymentChange, reason, message string) {
		d := newDeployment(2, change, completed)
		d.Generation++
		v := viewOf(d, of("new", 1, "f", kind("MachineClass")))
		v.Deployment.Annotations = nil
		p := New(v)
		Expect(steps(p)).To(Equal("delete new-0"), "its sets go on")
		c := p.DeploymentStatus
		Expect(c.After.ObservedGeneration).To(Equal(d.Generation - 1))
		Expect(c.After.Conditions).To(ConsistOf(And(HaveField("Type", mcm.MachineDeploymentReplicaFailure), HaveField("Status", mcm.ConditionTrue),
			HaveField("Reason", reason), HaveField("Message", ContainSubstring(message)))))
		Expect(c.Events).To(ConsistOf(And(HaveField("Reason", reason), HaveField("Set", BeNil()))))
		d.Status = c.After
		Expect(New(v).DeploymentStatus).To(BeNil(), "it is said once")
	},
	Entry("V1: with less than no replicas", func(d *api.MachineDeployment) { d.Spec.Replicas = -1 }, InvalidSpec, "replicas"),
	Entry("V1, E8: with an unknown strategy", func(d *api.MachineDeployment) { d.Spec.Strategy.Type = "Unheard" }, InvalidSpec, "strategy.type"),
	Entry("V1: without a strategy", func(d *api.MachineDeployment) { d.Spec.Strategy = mcm.MachineDeploymentStrategy{} }, InvalidSpec, "strategy.type"),
	Entry("V1: without the block of its strategy", func(d *api.MachineDeployment) { d.Spec.Strategy.RollingUpdate = nil }, InvalidSpec, "maxSurge"),
	Entry("V1: without maxSurge", func(d *api.MachineDeployment) { d.Spec.Strategy.RollingUpdate.MaxSurge = nil }, InvalidSpec, "maxSurge"),
	Entry("V1: without maxUnavailable", func(d *api.MachineDeployment) { d.Spec.Strategy.RollingUpdate.MaxUnavailable = nil }, InvalidSpec, "maxUnavailable"),
	Entry("V1: with a text that is no percentage", rolls("many", "0"), InvalidSpec, "percentage"),
	Entry("V1: with a percentage of which no number of machines is", rolls("999999999999%", "0"), InvalidSpec, "percentage"),
	Entry("V2: with a template that it does not select", func(d *api.MachineDeployment) { d.Spec.Template.Labels["name"] = "e" }, InvalidSpec, "labels"),
	Entry("V2: with a selector that does not select its sets", func(d *api.MachineDeployment) {
		d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: hashLabel, Operator: metav1.LabelSelectorOpDoesNotExist}}
	}, InvalidSpec, "labels"),
	Entry("V2: with a selector that means nothing", func(d *api.MachineDeployment) {
		d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "name", Operator: "Near"}}
	}, InvalidSpec, "spec.selector: "),
	Entry("T9: with a template without labels", func(d *api.MachineDeployment) {
		d.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "part", Operator: metav1.LabelSelectorOpDoesNotExist}}}
		d.Spec.Template.Labels = nil
	}, InvalidSpec, "labels"),
	Entry("V2: without a kind of its class", func(d *api.MachineDeployment) { d.Spec.Template.Spec.Class.Kind = "" }, InvalidSpec, "class"),
	Entry("V2: without a class", func(d *api.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "" }, InvalidSpec, "class"),
	Entry("E3: with an empty selector", func(d *api.MachineDeployment) { d.Spec.Selector = &metav1.LabelSelector{} }, SelectingAll, "matchLabels"),
	Entry("V4: without a selector", func(d *api.MachineDeployment) { d.Spec.Selector = nil }, SelectingAll, "matchLabels"),
)

var _ = It("E2: A MachineDeployment that becomes valid loses the condition, also while it is paused", func() {
	d := newDeployment(-1, paused)
	v := viewOf(d, of("new", 1, "r"))
	d.Status = New(v).DeploymentStatus.After
	d.Spec.Replicas = 1
	Expect(conditionOf(New(v), mcm.MachineDeploymentReplicaFailure)).To(BeEmpty())
	Expect(reportOf(v).ObservedGeneration).To(Equal(d.Generation))
})

var _ = Describe("E2: A MachineDeployment with an invalid set", func() {
	It("goes on, and heals what it decides about", func() {
		v := viewOf(newDeployment(3), of("new", -1, "r"))
		Expect(moves(New(v))).To(Equal("new -1 -> 3"))
		Expect(sketch(rest(v))).To(Equal("new 3 (rnn)"))
	})

	It("leaves that as it is while it is invalid itself", func() {
		Expect(moves(New(viewOf(newDeployment(-1), of("new", -1, "r"))))).To(BeEmpty())
	})

	It("counts its machines, and leaves them alone", func() {
		v := viewOf(newDeployment(2), of("old", 2, "rf", nothing, isMarked), of("new", 1, "r"))
		p := New(v)
		Expect(moves(p)).To(Equal("old 2 -> 1"))
		Expect(p.Statuses).To(ContainElement(HaveField("After.Conditions", ConsistOf(HaveField("Reason", SelectingAll)))))
	})
})

var _ = It("V1, V2: What machine-controller-manager rejects is invalid, and nothing else", func() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{machineinternal.AddToScheme, mcm.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	number := rapid.SampledFrom([]string{"", "0", "2", "-1", "30%", "many", "%", "99999999999%"})
	drawn := func(t *rapid.T, what string) *intstr.IntOrString {
		text := number.Draw(t, what)
		if text == "" {
			return nil
		}
		n := intstr.Parse(text)
		return &n
	}
	rapid.Check(GinkgoTB(), func(t *rapid.T) {
		d := newDeployment(rapid.Int32Range(-1, 3).Draw(t, "replicas"))
		limits := mcm.UpdateConfiguration{MaxSurge: drawn(t, "surge"), MaxUnavailable: drawn(t, "unavailable")}
		d.Spec.Strategy.Type = rapid.SampledFrom([]mcm.MachineDeploymentStrategyType{"RollingUpdate", "Recreate", "InPlaceUpdate", "Other", ""}).Draw(t, "type")
		d.Spec.Strategy.RollingUpdate = nil
		if rapid.Bool().Draw(t, "rolling") {
			d.Spec.Strategy.RollingUpdate = &mcm.RollingUpdateMachineDeployment{UpdateConfiguration: limits}
		}
		if rapid.Bool().Draw(t, "inPlace") {
			how := rapid.SampledFrom([]mcm.OrchestrationType{"Auto", "Manual", ""}).Draw(t, "how")
			d.Spec.Strategy.InPlaceUpdate = &mcm.InPlaceUpdateMachineDeployment{UpdateConfiguration: limits, OrchestrationType: how}
		}
		d.Spec.Template.Labels["name"] = rapid.SampledFrom([]string{"d", "d", "e"}).Draw(t, "label")
		d.Spec.Template.Spec.Class.Name = rapid.SampledFrom([]string{"c", "c", ""}).Draw(t, "class")
		internal := &machineinternal.MachineDeployment{}
		if err := scheme.Convert(stockOf(d), internal, nil); err != nil {
			t.Fatal(err)
		}
		rejected := len(validation.ValidateMachineDeployment(internal)) > 0
		p := New(viewOf(d))
		if invalid := p.DeploymentStatus != nil && len(p.DeploymentStatus.Events) > 0; invalid != rejected {
			t.Fatalf("invalid: %v, rejected: %v", invalid, rejected)
		}
	})
})
