// SPDX-License-Identifier: Apache-2.0

package overview_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
)

func (w *world) reserve(name string, change ...func(*v1alpha1.Reserve)) {
	r := &v1alpha1.Reserve{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: ago(time.Hour)}}
	for _, c := range change {
		c(r)
	}
	w.Reserves = append(w.Reserves, r)
}

func reserveSays(status metav1.ConditionStatus, reason, message string) func(*v1alpha1.Reserve) {
	return func(r *v1alpha1.Reserve) {
		r.Status.Conditions = []metav1.Condition{says(v1alpha1.ConditionReady, status, reason, message)}
	}
}

var _ = Describe("Reserves", func() {
	It("are as their status describes them, by name", func() {
		w := newWorld()
		w.reserve("office", reserveSays(metav1.ConditionFalse, "Growing", "2 of 5"), func(r *v1alpha1.Reserve) {
			r.Status.DesiredReplicas, r.Status.Replicas, r.Status.ReadyReplicas, r.Status.ActiveSchedules = 5, 3, 2, []string{"day"}
			r.Status.NextChange = &v1alpha1.ReserveChange{Time: ago(-time.Hour), DesiredReplicas: 1}
		})
		w.reserve("night", reserveSays(metav1.ConditionTrue, "NotRequested", "none"))
		v := New(w.Objects)
		Expect(v.Reserves).To(Equal([]Reserve{
			{Namespace: "default", Name: "night", Ready: Condition{Status: "True", Reason: "NotRequested", Message: "none"}},
			{
				Namespace: "default", Name: "office", Wanted: 5, Current: 3, ReadyMachines: 2, Active: []string{"day"},
				Next: &Change{At: ago(-time.Hour).Time, Wanted: 1}, Ready: Condition{Status: "False", Reason: "Growing", Message: "2 of 5"},
			},
		}))
		Expect(v.Troubles).To(BeEmpty())
	})

	DescribeTable("have problems",
		func(change func(*v1alpha1.Reserve), want ...any) {
			w := newWorld()
			w.reserve("office", change)
			Expect(New(w.Objects).Troubles).To(HaveExactElements(want...))
		},
		Entry("none while machines boot", reserveSays(metav1.ConditionFalse, "Growing", "1 of 2")),
		Entry("where there is no room", reserveSays(metav1.ConditionFalse, "NoRoom", "no room for 2"),
			Trouble{Object: "reserve/default/office", What: "no room for 2", Do: "raise max in the bounds, select more MachineDeployments, or request less"}),
		Entry("where no controller looks at them", func(*v1alpha1.Reserve) {}, HaveField("What", "no controller has reported on it")),
		Entry("none while they are new", func(r *v1alpha1.Reserve) { r.CreationTimestamp = ago(time.Second) }),
	)
})

func (w *world) buffer(name string, change ...func(*v1beta1.CapacityBuffer)) {
	b := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: ago(time.Hour)}}
	b.Spec.ProvisioningStrategy = ptr.To(v1beta1.StrategyReserved)
	b.Spec.ScalableRef = &v1beta1.ScalableRef{Kind: "Deployment", Name: "web"}
	for _, c := range change {
		c(b)
	}
	w.Buffers = append(w.Buffers, b)
}

func bufferSays(chunks int32, c ...metav1.Condition) func(*v1beta1.CapacityBuffer) {
	return func(b *v1beta1.CapacityBuffer) { b.Status.Replicas, b.Status.Conditions = &chunks, c }
}

var _ = Describe("CapacityBuffers", func() {
	It("are those of Evenkeel's strategy, by name", func() {
		w := newWorld()
		w.buffer("web", bufferSays(2, says(v1beta1.ConditionReady, metav1.ConditionTrue, "Complete", "all of it")), func(b *v1beta1.CapacityBuffer) {
			b.Annotations = map[string]string{v1beta1.DedicatedAnnotation: "workload"}
		})
		w.buffer("other", func(b *v1beta1.CapacityBuffer) { b.Spec.ProvisioningStrategy = nil })
		w.buffer("build", bufferSays(0, says(v1beta1.ConditionReady, metav1.ConditionTrue, "NoChunks", "none")), func(b *v1beta1.CapacityBuffer) {
			b.Spec.ScalableRef, b.Spec.PodTemplateRef = nil, &v1beta1.LocalObjectRef{Name: "build"}
		})
		v := New(w.Objects)
		Expect(v.Buffers).To(Equal([]Buffer{
			{Namespace: "shop", Name: "build", Shape: "PodTemplate/build", Ready: Condition{Status: "True", Reason: "NoChunks", Message: "none"}},
			{Namespace: "shop", Name: "web", Shape: "Deployment/web", Chunks: 2, Dedicated: "workload", Ready: Condition{Status: "True", Reason: "Complete", Message: "all of it"}},
		}))
		Expect(v.Troubles).To(BeEmpty())
	})

	DescribeTable("have problems",
		func(change func(*v1beta1.CapacityBuffer), want ...any) {
			w := newWorld()
			w.buffer("web", change)
			Expect(New(w.Objects).Troubles).To(HaveExactElements(want...))
		},
		Entry("none while machines boot", bufferSays(2, says(v1beta1.ConditionReady, metav1.ConditionFalse, "Growing", "one of two"))),
		Entry("where there is no room", bufferSays(2, says(v1beta1.ConditionReady, metav1.ConditionFalse, "NoRoom", "no room for 2")),
			Trouble{Object: "capacitybuffer/shop/web", What: "no room for 2", Do: "raise max in the bounds of a MachineDeployment, or ask for fewer chunks"}),
		Entry("once, and by their cause", bufferSays(0, says(v1beta1.ConditionReadyForProvisioning, metav1.ConditionFalse, "WorkloadNotFound", "no such Deployment"),
			says(v1beta1.ConditionReady, metav1.ConditionFalse, "NotReadyForProvisioning", "see above")),
			Trouble{Object: "capacitybuffer/shop/web", What: "no such Deployment", Do: "create it, or correct spec.scalableRef"}),
		Entry("where no controller looks at them", func(*v1beta1.CapacityBuffer) {}, HaveField("What", "no controller has reported on it")),
		Entry("none while they are new", func(b *v1beta1.CapacityBuffer) { b.CreationTimestamp = ago(time.Second) }),
	)
})
