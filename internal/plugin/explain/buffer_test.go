// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/overview"
	. "github.com/evenkeel/evenkeel/internal/plugin/explain"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
)

var _ = Describe("A CapacityBuffer is explained", func() {
	explained := func(name string, change ...func(*v1beta1.CapacityBuffer)) (Account, error) {
		var all []*v1beta1.CapacityBuffer
		for _, namespace := range []string{"shop", "ci"} {
			b := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-" + namespace}}
			b.Spec = v1beta1.CapacityBufferSpec{ProvisioningStrategy: ptr.To(v1beta1.StrategyReserved), ScalableRef: &v1beta1.ScalableRef{Kind: "Deployment", Name: "web"}, Percentage: ptr.To[int32](20)}
			b.Status.Replicas = ptr.To[int32](2)
			b.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Complete", Message: "all of it"}}
			for _, c := range change {
				c(b)
			}
			all = append(all, b)
		}
		return Buffer(overview.Objects{At: now, Buffers: all}, name)
	}

	It("by what it asks for, and what there is", func() {
		a, err := explained("web-shop")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Title).To(Equal("CapacityBuffer web-shop: Complete"))
		Expect(a.Facts).To(ContainElements(Fact{"Chunks", "2, each room for one pod"}, Fact{"Ready", "True, Complete: all of it"}))
		Expect(a.Why).To(Equal([]string{
			"It asks for 20% of the replicas of Deployment/web, rounded up.", "Any waiting pod that fits can use its machines.", "There is room for all chunks on machines that are ready.",
		}))
		Expect(a.Next).To(HaveExactElements(HavePrefix("It is at rest")))
	})

	It("by what it lacks, and what to do", func() {
		a, err := explained("web-ci", func(b *v1beta1.CapacityBuffer) {
			b.Spec.Replicas, b.Spec.Limits = ptr.To[int32](3), v1beta1.ResourceList{"cpu": {}}
			b.Annotations = map[string]string{v1beta1.DedicatedAnnotation: "workload", v1beta1.PoolAnnotation: "pool-z1", v1beta1.PrepareAnnotation: "true"}
			b.Status.Conditions[0].Status, b.Status.Conditions[0].Reason = metav1.ConditionFalse, "NoRoom"
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Facts).To(ContainElements(Fact{"Pool", "pool-z1"}, Fact{"Dedicated to", "workload"}, Fact{"Prepares", "the images of its pods, on the machines that hold its chunks"}))
		Expect(a.Why).To(ContainElements("It asks for 3 chunks or 20% of the replicas of Deployment/web, rounded up, whichever is more, as far as its limits allow.", HavePrefix("Its machines are dedicated")))
		Expect(a.Next).To(HaveExactElements("To change that: raise max in the bounds of a MachineDeployment, or ask for fewer chunks."))
	})

	It("by how far it has been used, if it fills once", func() {
		a, err := explained("web-ci", func(b *v1beta1.CapacityBuffer) {
			b.Spec.RefillStrategy, b.Spec.Percentage, b.Spec.Replicas = ptr.To(v1beta1.RefillNone), nil, ptr.To[int32](2)
			b.Status.ConsumedReplicas = ptr.To[int32](1)
			b.Annotations = map[string]string{v1beta1.FreeRoomAnnotation: "true"}
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Facts).To(ContainElements(Fact{"Chunks", "1, each room for one pod"}, Fact{"Uses", "free room on machines that serve, before machines in reserve"}, Fact{"Fills once", "pods have used 1 chunk; what they use is not replaced"}))
	})

	It("by whose it is, if it has another strategy", func() {
		a, err := explained("web-ci", func(b *v1beta1.CapacityBuffer) { b.Spec.ProvisioningStrategy = nil })
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Why).To(HaveExactElements(ContainSubstring(v1beta1.StrategyActive)))
	})

	It("by its namespace and name, where names are not enough", func() {
		same := func(b *v1beta1.CapacityBuffer) { b.Name = "web" }
		_, err := explained("web", same)
		Expect(err).To(MatchError(ErrAmbiguous))
		Expect(err).To(MatchError(`capacitybuffer "web" is in namespaces ci, shop: choose one by NAMESPACE/web`))
		a, err := explained("ci/web", same)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Title).To(Equal("CapacityBuffer ci/web: Complete"))
		_, err = explained("gone", same)
		Expect(err).To(MatchError(ErrNotFound))
	})
})
