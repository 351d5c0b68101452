// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// equip has each Node offer so many devices.
func (c *cluster) equip(devices int) {
	GinkgoHelper()
	for _, n := range c.nodes() {
		slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: resourceapi.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: ptr.To(n.Name), Pool: resourceapi.ResourcePool{Name: n.Name, Generation: 1, ResourceSliceCount: 1},
		}}
		for i := range devices {
			slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: fmt.Sprint("gpu-", i)})
		}
		world.Create(c.core.ResourceV1().ResourceSlices(), slice)
	}
}

// claims creates a template of claims to so many devices.
func (c *cluster) claims(name string, devices int64) {
	GinkgoHelper()
	_, _ = c.core.ResourceV1().DeviceClasses().Create(context.Background(), &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}, metav1.CreateOptions{}) // the first time
	t := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
	t.Spec.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: devices}}}
	world.Create(c.core.ResourceV1().ResourceClaimTemplates(ns), t)
}

func claimingFrom(template string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
	}
}

var _ = Describe("Pods that claim devices", func() {
	It("get machines that have these, and none that has too few", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.grow("b", 1, 3, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.equip(2)
			c.claims("two", 2)
			c.claims("three", 3)
			c.create(fresh(2, "p", 4000, claimingFrom("three"), InZone("b"))...)
			c.create(fresh(2, "q", 4000, claimingFrom("two"), InZone("a"))...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=3 b=1"))
		})
	})

	DescribeTable("get machines once it is known what they claim, and who has it",
		func(early, late func(c *cluster)) {
			play(func(c *cluster) {
				c.grow("a", 1, 3, "1:10")
				c.Start("release", controller(usual))
				c.settle()
				early(c)
				c.create(fresh(1, "q", 4000, claimingFrom("two"))...)
				c.settle()
				Expect(c.replicas()).To(Equal("a=1"))
				late(c)
				c.settle()
				Expect(c.replicas()).To(Equal("a=2"))
			})
		},
		Entry("by the template of their claims", func(c *cluster) { c.equip(2) }, func(c *cluster) { c.claims("two", 2) }),
		Entry("by the slices of drivers", func(c *cluster) { c.claims("two", 2) }, func(c *cluster) { c.equip(2) }),
		Entry("by the class of the devices", func(c *cluster) {
			c.equip(2)
			c.claims("two", 2)
			world.Delete(c.core.ResourceV1().DeviceClasses(), "gpu")
		}, func(c *cluster) {
			world.Create(c.core.ResourceV1().DeviceClasses(), &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
		}),
	)

	It("get machines once another claim leaves the devices of these", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.equip(1)
			c.claims("one", 1)
			held := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "held"}}
			held.Status.Allocation = &resourceapi.AllocationResult{}
			held.Status.Allocation.Devices.Results = []resourceapi.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.example.com", Pool: "a-002", Device: "gpu-0"}}
			world.CreateWithStatus(c.core.ResourceV1().ResourceClaims(ns), held)
			c.create(fresh(1, "q", 4000, claimingFrom("one"))...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			Expect(c.core.ResourceV1().ResourceClaims(ns).Delete(context.Background(), "held", metav1.DeleteOptions{})).To(Succeed())
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	It("are left to the autoscaler where the cluster serves none of the kinds", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			o, asked := usual, make(chan struct{})
			o.DevicesServed = func(ctx context.Context) bool {
				close(asked)
				<-ctx.Done()
				return false
			}
			c.Start("release", controller(o))
			c.settle()
			Expect(asked).NotTo(BeClosed(), "no pod has claimed any")
			c.equip(2)
			c.claims("two", 2)
			c.create(fresh(1, "q", 4000, claimingFrom("two"))...)
			c.settle()
			Expect(asked).To(BeClosed())
			Expect(c.replicas()).To(Equal("a=1"))
		})
	})

	It("count the devices of a machine that boots as those of its MachineDeployment", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:10")
			c.grow("b", 1, 2, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.equip(1)
			c.claims("one", 1)
			c.patch("a", `{"spec":{"replicas":2}}`) // its machine in reserve is released, and the next one boots
			c.settle()
			c.create(Pod("filler", 4000, InZone("a")))
			c.settle()
			c.patch("a", `{"spec":{"replicas":3,"excessReplicas":0}}`)
			c.create(fresh(1, "q", 4000, claimingFrom("one"))...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=3 b=1"))
		})
	})
})
