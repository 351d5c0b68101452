// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

var _ = Describe("Conditions", func() {
	before, now := metav1.NewTime(Born), metav1.NewTime(Noon)
	stored := func(kind mcm.MachineDeploymentConditionType, status mcm.ConditionStatus, reason string) v1alpha1.MachineDeploymentCondition {
		return v1alpha1.MachineDeploymentCondition{Type: kind, Status: status, Reason: reason, Message: "m", LastUpdateTime: before, LastTransitionTime: before}
	}
	wanted := func(status bool, reason string) []Condition {
		return []Condition{{Type: ConditionBalanced, Status: status, Reason: reason, Message: "m"}}
	}
	theirs := stored("Available", mcm.ConditionTrue, "x")

	It("are added beside those of others", func() {
		is, differs := NewConditions([]v1alpha1.MachineDeploymentCondition{theirs}, wanted(true, "Even"), now)
		Expect(differs).To(BeTrue())
		Expect(is).To(Equal([]v1alpha1.MachineDeploymentCondition{theirs, {Type: ConditionBalanced, Status: mcm.ConditionTrue, Reason: "Even", Message: "m", LastUpdateTime: now, LastTransitionTime: now}}))
	})

	It("stay to the letter where nothing changes", func() {
		was := []v1alpha1.MachineDeploymentCondition{stored(ConditionBalanced, mcm.ConditionTrue, "Even"), theirs}
		is, differs := NewConditions(was, wanted(true, "Even"), now)
		Expect(differs).To(BeFalse())
		Expect(is).To(Equal(was))
	})

	It("keep their time where only the reason changes", func() {
		is, differs := NewConditions([]v1alpha1.MachineDeploymentCondition{stored(ConditionBalanced, mcm.ConditionFalse, "Moving")}, wanted(false, "Waiting"), now)
		Expect(differs).To(BeTrue())
		Expect(is[0].LastTransitionTime).To(Equal(before))
		Expect(is[0].LastUpdateTime).To(Equal(now))
	})

	It("have a new time where the status changes", func() {
		is, _ := NewConditions([]v1alpha1.MachineDeploymentCondition{stored(ConditionBalanced, mcm.ConditionFalse, "Moving")}, wanted(true, "Even"), now)
		Expect(is[0].LastTransitionTime).To(Equal(now))
	})

	It("go when there is nothing to say", func() {
		is, differs := NewConditions([]v1alpha1.MachineDeploymentCondition{theirs, stored(ConditionShare, mcm.ConditionTrue, "Spread")}, nil, now)
		Expect(differs).To(BeTrue())
		Expect(is).To(Equal([]v1alpha1.MachineDeploymentCondition{theirs}))
	})

	DescribeTable("of this controller go when there is nothing to say, whichever", func(kind mcm.MachineDeploymentConditionType) {
		is, differs := NewConditions([]v1alpha1.MachineDeploymentCondition{stored(kind, mcm.ConditionTrue, "x")}, nil, now)
		Expect(differs).To(BeTrue())
		Expect(is).To(BeEmpty())
	},
		Entry("that of replicas", ConditionBalanced),
		Entry("that of the pool's excess", ConditionShare),
		Entry("that of rights", ConditionRights),
	)

	It("are written where only the message changes", func() {
		was := stored(ConditionBalanced, mcm.ConditionTrue, "Even")
		was.Message = "old"
		is, differs := NewConditions([]v1alpha1.MachineDeploymentCondition{was}, wanted(true, "Even"), now)
		Expect(differs).To(BeTrue())
		Expect(is[0].Message).To(Equal("m"))
		Expect(is[0].LastTransitionTime).To(Equal(before))
	})

	It("are written where one changes and a later one does not", func() {
		was := []v1alpha1.MachineDeploymentCondition{stored(ConditionBalanced, mcm.ConditionFalse, "Moving"), stored(ConditionShare, mcm.ConditionTrue, "Spread")}
		want := append(wanted(true, "Even"), Condition{Type: ConditionShare, Status: true, Reason: "Spread", Message: "m"})
		is, differs := NewConditions(was, want, now)
		Expect(differs).To(BeTrue())
		Expect(is[0].Reason).To(Equal("Even"))
		Expect(is[1]).To(Equal(was[1]))
	})

	It("are written where one goes and a later one does not change", func() {
		was := []v1alpha1.MachineDeploymentCondition{stored(ConditionRights, mcm.ConditionFalse, "Forbidden"), stored(ConditionBalanced, mcm.ConditionTrue, "Even")}
		is, differs := NewConditions(was, wanted(true, "Even"), now)
		Expect(differs).To(BeTrue())
		Expect(is).To(Equal(was[1:]))
	})

	DescribeTable("name missing rights", func(want string, m Member) {
		v := view(m)
		v.Missing = []string{"It may not read the Worker", "It may not read the Cluster"}
		Expect(message(New(v), "a", ConditionRights)).To(Equal(want))
		v.Missing = nil
		Expect(condition(New(v), "a", ConditionRights)).To(BeEmpty())
	},
		Entry("to a pool with an excess", "It may not read the Worker. It may not read the Cluster", NewMember("a", 1, Excess("1"))),
		Entry("to one with an excess of its own", "It may not read the Worker. It may not read the Cluster", NewMember("a", 1, ExcessField(1))),
		Entry("to one that still has a share", "It may not read the Worker. It may not read the Cluster", NewMember("a", 1, share(0))),
		Entry("not where no reserve is requested", "", NewMember("a", 1, ScaleUp, ExcessField(0))),
	)

	It("name each mistake in a member's bounds and its pool's excess", func() {
		p := New(view(NewMember("a", 1, bounds("many"), Excess("some"))))
		Expect(condition(p, "a", ConditionShare)).To(Equal("False Invalid"))
		Expect(message(p, "a", ConditionShare)).To(MatchRegexp(`"many".*; .*"some"`))
	})

	It("say that replicas are balanced", func() {
		Expect(message(New(view(zones(ScaleUp, 2, 2)...)), "a", ConditionBalanced)).To(Equal("replicas are balanced across similar MachineDeployments"))
	})

	It("do not flap: the same view says the same", func() {
		v := view(zones(Continuous, 4, 1)...)
		Expect(New(v).Outcomes).To(Equal(New(v).Outcomes))
	})
})

var _ = Describe("Again", func() {
	It("is when a zone that fails may be tried, a try is over, or a machine should be ready", func() {
		v := view(NewMember("a", 1), NewMember("b", 1))
		Expect(New(v).Again).To(BeZero())
		v.Memory.Paused = map[string]time.Time{"a": Noon.Add(3 * time.Minute)}
		Expect(New(v).Again).To(Equal(3 * time.Minute))
		v.Memory.Failing = map[string]Failure{"b": {Failures: 1, Since: Born, Until: Noon.Add(2 * time.Minute)}}
		Expect(New(v).Again).To(Equal(2 * time.Minute))
		machines(NewMachine("x", phase(mcm.MachinePending), bornAt(Noon.Add(-9*time.Minute))))(&v.Members[0])
		Expect(New(v).Again).To(Equal(time.Minute))
	})

	It("is not because of what is over", func() {
		v := view(NewMember("a", 1), NewMember("b", 0, machines(failing("ResourceExhausted", time.Minute))))
		v.Memory.Paused = map[string]time.Time{"a": Noon}
		v.Memory.Failing = map[string]Failure{"b": {Failures: 1, Since: Born, Until: Noon.Add(-time.Minute)}}
		Expect(New(v).Again).To(BeZero())
		v.Members[1].Machines = nil
		v.Memory.Failing = map[string]Failure{"b": {Failures: 1, Since: Born, Until: Noon.Add(time.Minute), Probing: true}}
		Expect(New(v).Again).To(BeZero(), "it is tried already")
		v.Memory.Paused = map[string]time.Time{"a": Noon.Add(time.Nanosecond)}
		Expect(New(v).Again).To(Equal(time.Nanosecond))
	})

	It("is not lost where something else is due just now", func() {
		v := view(NewMember("a", 1), NewMember("b", 0, machines(failing("ResourceExhausted", time.Minute))))
		v.Memory.Paused = map[string]time.Time{"a": Noon.Add(2 * time.Minute)}
		v.Memory.Failing = map[string]Failure{"b": {Failures: 1, Since: Born, Until: Noon}}
		Expect(New(v).Again).To(Equal(2 * time.Minute))
	})

	It("is not because of a new member whose bounds are not split", func() {
		Expect(New(view(NewMember("a", 1, young))).Again).To(BeZero())
	})

	It("is the soonest of all, wherever it is in the order", func() {
		v := view(NewMember("a", 1), NewMember("b", 1), NewMember("c", 1))
		v.Memory.Paused = map[string]time.Time{"a": Noon.Add(2 * time.Minute), "b": Noon.Add(time.Minute), "c": Noon.Add(3 * time.Minute)}
		Expect(New(v).Again).To(Equal(time.Minute))
	})
})

var _ = DescribeTable("A write is empty", func(want bool, w Write) { Expect(w.IsEmpty()).To(Equal(want)) },
	Entry("if it changes nothing", true, Write{Annotations: map[string]string{}, Why: "split growth"}),
	Entry("not if it changes replicas", false, Write{Replicas: new(int32)}),
	Entry("not if it changes the field for excess", false, Write{Excess: new(int32)}),
	Entry("not if it removes an annotation", false, Write{Annotations: map[string]string{v1alpha1.ShareAnnotation: ""}}),
)

var _ = DescribeTable("The skew in the metric is", func(want map[string]int, members ...Member) {
	Expect(New(view(members...)).Skews).To(Equal(want))
},
	Entry("how far members are from even, by the first of their names", map[string]int{"a": 4},
		NewMember("a", 3, ScaleUp), NewMember("b", 1, ScaleUp), NewMember("c", 5, Continuous)),
	Entry("0 if they are even", map[string]int{"a": 0}, NewMember("a", 3, ScaleUp), NewMember("b", 3, ScaleUp)),
	Entry("none of one alone", map[string]int{}, NewMember("a", 3, ScaleUp), NewMember("b", 1)),
	Entry("one for each group", map[string]int{"a": 2, "c": 1},
		NewMember("a", 3, ScaleUp, Labelled("p")), NewMember("b", 1, ScaleUp, Labelled("p")),
		NewMember("c", 3, ScaleUp, Labelled("q")), NewMember("d", 2, ScaleUp, Labelled("q"))),
)
