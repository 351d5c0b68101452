// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// equip plays the driver of a device plugin on the machines of the pool: each Node offers this many devices.
func (p pool) equip(ctx context.Context, devices int) {
	GinkgoHelper()
	for _, node := range must(p.nodes(ctx)) {
		slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: map[string]string{"pool": p.name}}}
		slice.Spec = resourceapi.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: ptr.To(node.Name),
			Pool: resourceapi.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
		}
		for i := range devices {
			slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: fmt.Sprintf("gpu-%d", i)})
		}
		Expect(kube.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{})).NotTo(BeNil())
	}
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "pool=" + p.name})).To(Succeed())
	})
}

// claims makes a class of all devices, and a template of claims to a number of them.
func claims(ctx context.Context, name string, devices int64) {
	GinkgoHelper()
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}}}
	Expect(kube.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{})).NotTo(BeNil())
	template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
	template.Spec.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: name, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: devices}}}
	Expect(kube.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, template, metav1.CreateOptions{})).NotTo(BeNil())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.ResourceV1().DeviceClasses().Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		Expect(kube.ResourceV1().ResourceClaimTemplates(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
}

// claiming has the pods of a template claim devices, and request nothing else.
func claiming(template string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources = corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}
		t.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
	}
}

var _ = Describe("Pods that claim devices", Label("ours", "devices"), func() {
	It("get as many machines as have the devices, and no machine too many", func(ctx context.Context) {
		p := newPool(ctx, "devices", 1, withBounds("1:4:3"))
		p.rests(ctx, 1, 3, "Complete")
		p.equip(ctx, 4)
		claims(ctx, "two-gpus", 2)
		p.work(ctx, 2, claiming("two-gpus"))
		Expect(p.replicas(ctx)).To(Equal(1), "two pods have the devices of the machine that serves")
		p.moreWork(ctx, 5)
		Eventually(func() int { return len(p.busy(ctx)) }).WithContext(ctx).Should(Equal(5))
		Expect(p.replicas(ctx)).To(Equal(3), "two pods to a machine")
	})

	It("get no machine that has too few of them", func(ctx context.Context) {
		p := newPool(ctx, "few-devices", 1, withBounds("1:4:3"))
		p.rests(ctx, 1, 3, "Complete")
		p.equip(ctx, 1)
		claims(ctx, "more-gpus", 2)
		p.work(ctx, 0, claiming("more-gpus"))
		p.moreWork(ctx, 2)
		Consistently(func() int { return p.replicas(ctx) }, "3s").Should(Equal(1))
	})
})

var _ = Describe("A reserve in devices", Label("ours", "devices"), func() {
	It("has as many machines as have the devices of a class, and follows what drivers publish", func(ctx context.Context) {
		p := newPool(ctx, "reserve-devices", 1, withBounds("0:6:devices.reserved-gpus=7"))
		claims(ctx, "reserved-gpus", 1)
		p.rests(ctx, 1, 0, "CapacityUnknown")
		p.equip(ctx, 4)
		p.rests(ctx, 1, 2, "Complete")
		slice := must(kube.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{LabelSelector: "pool=" + p.name})).Items[0]
		slice.Spec.Devices, slice.Spec.Pool.Generation = slice.Spec.Devices[:3], 2
		Expect(kube.ResourceV1().ResourceSlices().Update(ctx, &slice, metav1.UpdateOptions{})).NotTo(BeNil())
		p.rests(ctx, 1, 3, "Complete")
	})
})
