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
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan/plantest"
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
})
