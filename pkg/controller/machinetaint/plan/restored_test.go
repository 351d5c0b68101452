// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// restored is a pool of three with two in reserve as Gardener restores it in another seed: replicas, the template, and Machines with
// their annotations are there, and annotations of the MachineDeployment are lost.
func restored() plan.View {
	v := owned(-1, "", "")
	v.Now = v.Deployment.CreationTimestamp.Add(time.Hour)
	v.Deployment.CreationTimestamp = metav1.NewTime(v.Now.Add(-3 * time.Second))
	v.Deployment.UID = "restored"
	v.Deployment.Spec.Replicas = 5
	v.Deployment.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{api.BoundsAnnotation: "3:9:2"}
	v.Accounting = pool.Inclusive
	for i := range 5 {
		m := fixture.Machine(fmt.Sprintf("m%d", i))
		m.Annotations = map[string]string{}
		if i > 2 {
			m.Annotations[api.ReserveAnnotation] = api.Reserve{Since: v.Now.Add(-time.Hour)}.String()
		}
		m.Status.CurrentStatus.Phase = mcmapi.MachineRunning
		v.Machines = append(v.Machines, plan.Machine{Machine: pool.Machine{Object: m}})
	}
	return v
}

var _ = Describe("A MachineDeployment that was made anew", func() {
	It("has nothing of the reserve of the one before, which had its name", func() {
		v := owned(-1, "", "")
		v.Deployment.UID, v.Memory = "two", plan.Memory{UID: "two", Applied: "2"}
		Expect(plan.New(v).Idle).To(BeFalse(), "it is its own, and a client replaced the whole object")
		v.Memory.UID = "one"
		Expect(plan.New(v).Idle).To(BeTrue())
	})
})

var _ = Describe("A MachineDeployment that was restored without annotations", func() {
	It("keeps its reserve until its share of the pool's excess is written, and then has as much", func() {
		v := restored()
		p := plan.New(v)
		Expect(p.Idle).To(BeTrue())
		Expect(p.Again).To(Equal(5*time.Minute - 3*time.Second))
		v.Deployment.Annotations[api.ShareAnnotation] = "2"
		v.Deployment.Annotations[api.BoundsAnnotation] = "3:9:2"
		p = plan.New(v)
		Expect(p.Idle).To(BeFalse())
		Expect(p.Deployment.Replicas).To(BeZero())
		Expect(p.Deployment.Annotations).To(HaveKeyWithValue(api.AppliedExcessAnnotation, "2,max=9,counted=2,replicas=5"))
		for _, m := range p.Machines {
			Expect(m.Mark).NotTo(Equal(plan.Free), m.Name)
		}
	})

	It("does not count machines in reserve as its own during a rollout, which adds machines to those that serve", func() {
		v := restored()
		v.Deployment.Annotations[api.ShareAnnotation] = "2"
		v.Deployment.Annotations[api.BoundsAnnotation] = "3:9:2"
		v.Rollout = true
		Expect(plan.New(v).Deployment.Annotations[api.AppliedExcessAnnotation]).NotTo(ContainSubstring("counted=2"))
	})

	DescribeTable("waits for no share", func(change func(*plan.View)) {
		v := restored()
		change(&v)
		Expect(plan.New(v).Idle).To(BeFalse())
	},
		Entry("that has not come for minutes", func(v *plan.View) { v.Now = v.Now.Add(5 * time.Minute) }),
		Entry("that its pool does not have", func(v *plan.View) {
			v.Deployment.Spec.Template.Spec.NodeTemplateSpec.Annotations = nil
		}),
		Entry("that its pool does not have, whatever the machines are", func(v *plan.View) {
			v.Deployment.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{"other": "1"}
		}),
		Entry("without a machine in reserve", func(v *plan.View) {
			v.Machines = v.Machines[:3]
			note(api.ReturnedAnnotation, "gone")(v)
		}),
		Entry("that is there already, and asks for none", func(v *plan.View) { v.Deployment.Annotations[api.ShareAnnotation] = "0" }),
		Entry("where a Reserve requests one machine", func(v *plan.View) { v.Deployment.Annotations[api.RequestedExcessAnnotation] = "shop=1" }),
		Entry("if its settings cannot be read", func(v *plan.View) { v.Deployment.Annotations[api.DrainReserveAnnotation] = "maybe" }),
		Entry("if the last plan knew its reserve", func(v *plan.View) { v.Memory = plan.Memory{UID: "restored", Applied: twoCounted} }),
		Entry("where its reserve is on record", func(v *plan.View) {
			v.Deployment.Annotations[api.AppliedExcessAnnotation] = "2,max=9,counted=2,replicas=5"
		}),
		Entry("where it asks for a reserve itself", func(v *plan.View) { v.Deployment.Annotations[api.BoundsAnnotation] = "3:9:2" }),
	)

	DescribeTable("waits for its share", func(change func(*plan.View)) {
		v := restored()
		change(&v)
		Expect(plan.New(v)).To(Equal(plan.Plan{Idle: true, Again: 5*time.Minute - 3*time.Second}))
	},
		Entry("also of a pool whose excess is not in bounds", func(v *plan.View) {
			v.Deployment.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{api.PoolExcessAnnotation: "2"}
		}),
		Entry("also after plans that knew of no reserve", func(v *plan.View) { v.Memory = plan.Memory{UID: "restored"} }),
		Entry("whatever was known of another of its name", func(v *plan.View) { v.Memory = plan.Memory{UID: "before", Applied: twoCounted} }),
	)

	It("waits for its share for five minutes to the last instant", func() {
		v := restored()
		v.Now = v.Deployment.CreationTimestamp.Add(5*time.Minute - 1)
		Expect(plan.New(v)).To(Equal(plan.Plan{Idle: true, Again: 1}))
	})

	It("does not count machines that are leaving when it finds its reserve again", func() {
		v := restored()
		v.Deployment.Annotations[api.ShareAnnotation], v.Deployment.Annotations[api.BoundsAnnotation] = "2", "3:9:2"
		found := plan.New(v).Rule.Applied
		Expect(found.Counted).To(Equal(2))
		for i := range 2 {
			m := fixture.Machine(fmt.Sprintf("leaving-%d", i))
			m.DeletionTimestamp = &metav1.Time{Time: v.Now}
			m.Status.CurrentStatus.Phase = mcmapi.MachineTerminating
			v.Machines = append(v.Machines, plan.Machine{Machine: pool.Machine{Object: m}})
		}
		Expect(plan.New(v).Rule.Applied).To(Equal(found))
	})
})
