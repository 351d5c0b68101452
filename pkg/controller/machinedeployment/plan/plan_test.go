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

// writes make plans with one thing to write each.
func writes() []func(*Plan) {
	set := &mcm.MachineSet{}
	return []func(*Plan){
		func(p *Plan) { p.SetClaims = append(p.SetClaims, SetClaim{}) },
		func(p *Plan) { p.Claims = append(p.Claims, Claim{}) },
		func(p *Plan) { p.Deployment = &DeploymentChange{} },
		func(p *Plan) { p.Sets = append(p.Sets, SetChange{set, set, nil}) },
		func(p *Plan) { p.NewSets = append(p.NewSets, set) },
		func(p *Plan) { p.Machines = append(p.Machines, MachineChange{}) },
		func(p *Plan) { p.Creations = append(p.Creations, Creation{}) },
		func(p *Plan) { p.Deletions = append(p.Deletions, Deletion{}) },
		func(p *Plan) { p.SetDeletions = append(p.SetDeletions, set) },
		func(p *Plan) { p.Nodes = append(p.Nodes, NodeChange{}) },
	}
}

var _ = Describe("A plan", func() {
	It("is empty, and steady, only without anything to write", func() {
		Expect(Plan{}.IsEmpty()).To(BeTrue())
		Expect(Plan{}.IsSteady()).To(BeTrue())
		Expect(Plan{Again: time.Second}.IsEmpty()).To(BeTrue())
		for i, first := range writes() {
			for _, second := range writes()[i:] { // one of them does not make up for the other
				var p Plan
				first(&p)
				second(&p)
				Expect(p.IsEmpty()).To(BeFalse(), "%+v", p)
				Expect(p.IsSteady()).To(BeFalse(), "%+v", p)
			}
		}
	})

	It("is steady, and not empty, with statuses alone", func() {
		for _, p := range []Plan{{Statuses: []StatusChange{{}}}, {DeploymentStatus: &DeploymentStatusChange{}}} {
			Expect(p.IsEmpty()).To(BeFalse())
			Expect(p.IsSteady()).To(BeTrue())
			Expect(p.IsEmpty()).To(BeFalse(), "it stays as it is")
		}
	})

	It("knows whether a MachineSet shrinks", func() {
		sized := func(n int32) *mcm.MachineSet { return &mcm.MachineSet{Spec: mcm.MachineSetSpec{Replicas: n}} }
		for after, shrinks := range map[int32]bool{1: true, 2: false, 3: false} {
			Expect(SetChange{Before: sized(2), After: sized(after)}.Shrinks()).To(Equal(shrinks))
		}
	})
})

var _ = DescribeTable("The status of a MachineSet is written later", func(later bool, change func(*mcm.MachineSetStatus), events ...Event) {
	set := &mcm.MachineSet{Status: mcm.MachineSetStatus{ObservedGeneration: 1, Conditions: []mcm.MachineSetCondition{{Type: "T", Status: "True", Reason: "R", Message: "M", LastTransitionTime: metav1.NewTime(noon)}}}}
	after := set.DeepCopy().Status
	change(&after)
	p := Plan{Statuses: []StatusChange{{set, after, events}}, Again: time.Minute}
	p.DeferNumbers(View{}, time.Second)
	Expect(p.Statuses).To(HaveLen(map[bool]int{false: 1}[later]))
	Expect(p.Again).To(Equal(map[bool]time.Duration{false: time.Minute, true: time.Second}[later]))
},
	Entry("if only numbers change", true, func(s *mcm.MachineSetStatus) { s.ReadyReplicas = 5 }),
	Entry("if a message changes", true, func(s *mcm.MachineSetStatus) { s.Conditions[0].Message = "other" }),
	Entry("not with an event", false, func(s *mcm.MachineSetStatus) { s.ReadyReplicas = 5 }, Event{}),
	Entry("not if it has seen another generation", false, func(s *mcm.MachineSetStatus) { s.ObservedGeneration = 2 }),
	Entry("not if a condition has another type", false, func(s *mcm.MachineSetStatus) { s.Conditions[0].Type = "other" }),
	Entry("not if a condition is met or no longer is", false, func(s *mcm.MachineSetStatus) { s.Conditions[0].Status = "False" }),
	Entry("not if a condition has another reason", false, func(s *mcm.MachineSetStatus) { s.Conditions[0].Reason = "other" }),
	Entry("not if a condition has another time", false, func(s *mcm.MachineSetStatus) {
		s.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(time.Second))
	}),
	Entry("not if a condition comes", false, func(s *mcm.MachineSetStatus) { s.Conditions = append(s.Conditions, mcm.MachineSetCondition{}) }),
)

var _ = DescribeTable("The status of a MachineDeployment is written later", func(later bool, change func(*api.MachineDeploymentStatus), events ...Event) {
	d := &api.MachineDeployment{}
	d.Status.ObservedGeneration = 1
	d.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: "T", Status: "True", Reason: "R", Message: "M", LastTransitionTime: metav1.NewTime(noon)}}
	after := d.DeepCopy().Status
	change(&after)
	p := Plan{DeploymentStatus: &DeploymentStatusChange{after, events}, Again: time.Minute}
	p.DeferNumbers(View{Deployment: d}, time.Second)
	Expect(p.DeploymentStatus == nil).To(Equal(later))
	Expect(p.Again).To(Equal(map[bool]time.Duration{false: time.Minute, true: time.Second}[later]))
},
	Entry("if only numbers change", true, func(s *api.MachineDeploymentStatus) { s.ReadyReplicas = 5 }),
	Entry("if a message changes", true, func(s *api.MachineDeploymentStatus) { s.Conditions[0].Message = "other" }),
	Entry("not with an event", false, func(s *api.MachineDeploymentStatus) { s.ReadyReplicas = 5 }, Event{}),
	Entry("not if it has seen another generation", false, func(s *api.MachineDeploymentStatus) { s.ObservedGeneration = 2 }),
	Entry("not if a condition has another type", false, func(s *api.MachineDeploymentStatus) { s.Conditions[0].Type = "other" }),
	Entry("not if a condition is met or no longer is", false, func(s *api.MachineDeploymentStatus) { s.Conditions[0].Status = "False" }),
	Entry("not if a condition has another reason", false, func(s *api.MachineDeploymentStatus) { s.Conditions[0].Reason = "other" }),
	Entry("not if a condition has another time", false, func(s *api.MachineDeploymentStatus) {
		s.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(time.Second))
	}),
)

var _ = It("Nothing is written later if nothing is written, and then nothing is decided again", func() {
	p := Plan{}
	p.DeferNumbers(View{}, time.Second)
	Expect(p).To(Equal(Plan{}))
})
