// SPDX-License-Identifier: Apache-2.0

package machinedeployment_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// keeps asks for an excess in bounds.
func keeps(excess string) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1alpha1.BoundsAnnotation, "0:10:"+excess)
	}
}

// class creates a DeviceClass of all devices of the driver.
func (c *reserved) class(name string) {
	GinkgoHelper()
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}}}
	world.Create(c.core.ResourceV1().DeviceClasses(), class)
}

// equip has the driver publish so many devices of a Node.
func (c *reserved) equip(node string, devices int) {
	GinkgoHelper()
	slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourceapi.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: ptr.To(node), Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
	}}
	for i := range devices {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: fmt.Sprint("gpu-", i)})
	}
	world.Create(c.core.ResourceV1().ResourceSlices(), slice)
}

// shows returns the numbers of machines, and the condition of the reserve.
func (c *reserved) shows() string {
	GinkgoHelper()
	d := world.Stored[v1alpha1.MachineDeployment](c, deploymentGVR, fixture.Namespace, "pool")
	text := fmt.Sprintf("%d+%d", len(c.serving()), len(c.spare()))
	if condition := machinetaint.Condition(d); condition != nil {
		text += " " + condition.Reason
	}
	return text
}

// says returns the message of the condition of the reserve.
func (c *reserved) says() string {
	GinkgoHelper()
	return machinetaint.Condition(world.Stored[v1alpha1.MachineDeployment](c, deploymentGVR, fixture.Namespace, "pool")).Message
}

var _ = Describe("A reserve in devices", func() {
	usual := sim.Options{Seed: 1, Resources: slices.Concat(sim.Core, sim.Machine, sim.Devices)}

	It("stays as it is where the cluster does not serve the kinds, and all else goes on", func() {
		playReserved(sim.Options{Seed: 1}, 2, keeps("max(1,devices.gpu=8)"), keeping(everything), func(c *reserved) {
			Expect(c.shows()).To(Equal("2+0 CapacityUnknown"))
			Expect(c.says()).To(ContainSubstring("devices.gpu: the target cluster does not serve ResourceSlices (resource.k8s.io/v1)"))
			c.edit(`{"spec":{"replicas":3},"metadata":{"annotations":{%q:"0:10:1"}}}`, v1alpha1.BoundsAnnotation)
			c.settle()
			Expect(c.shows()).To(Equal("3+1 Complete"))
		})
	})

	It("has as many machines as have the devices, follows what drivers publish, and then nothing is written", func() {
		playReserved(usual, 1, keeps("devices.gpu=8"), keeping(everything), func(c *reserved) {
			Expect(c.shows()).To(Equal("1+0 CapacityUnknown"))
			Expect(c.says()).To(ContainSubstring("devices.gpu: DeviceClass gpu does not exist"))
			c.class("gpu")
			time.Sleep(time.Second)
			Expect(c.says()).To(ContainSubstring("devices.gpu: its Nodes have no devices of DeviceClass gpu in ResourceSlices"))
			first := c.serving()[0]
			c.equip(first, 4)
			time.Sleep(2 * time.Minute)
			Expect(c.shows()).To(Equal("1+2 Complete"))

			since := len(c.Writes())
			world.Change(c.core.ResourceV1().ResourceSlices(), first, func(s *resourceapi.ResourceSlice) { s.Labels = map[string]string{"any": "thing"} })
			world.Change(c.core.ResourceV1().ResourceSlices(), first, func(s *resourceapi.ResourceSlice) { s.Spec.Devices[0].Name, s.Spec.Pool.Generation = "renamed", 2 })
			for _, node := range c.spare() { // booted meanwhile
				c.equip(node, 4)
			}
			time.Sleep(24 * time.Hour)
			Expect(c.wrote(since)).To(BeEmpty())

			world.Change(c.core.ResourceV1().ResourceSlices(), first, func(s *resourceapi.ResourceSlice) { s.Spec.Devices = s.Spec.Devices[:3] })
			time.Sleep(2 * time.Minute)
			Expect(c.shows()).To(Equal("1+3 Complete"))
		})
	})

	It("stays as it is while the devices of all machines go away", func() {
		playReserved(usual, 1, keeps("devices.gpu=2"), keeping(everything), func(c *reserved) {
			c.class("gpu")
			c.equip(c.serving()[0], 1)
			c.settle()
			Expect(c.shows()).To(Equal("1+2 Complete"))
			Expect(c.core.ResourceV1().ResourceSlices().Delete(context.Background(), c.serving()[0], metav1.DeleteOptions{})).To(Succeed())
			c.settle()
			Expect(c.shows()).To(Equal("1+2 CapacityUnknown"))
			c.equip(c.spare()[0], 2)
			c.settle()
			Expect(c.shows()).To(Equal("1+1 Complete"))
		})
	})

	It("counts what the MachineClass declares until a Node is ready, and then what that has", func() {
		playReserved(usual, 0, keeps("devices.gpu=4,devices.nic=1"), keeping(everything), func(c *reserved) {
			Expect(c.shows()).To(Equal("0+0 CapacityUnknown"))
			Expect(c.says()).To(ContainSubstring("add devices.gpu to virtualCapacity in the nodeTemplate of the MachineClass"))
			c.class("gpu")
			time.Sleep(time.Second)
			world.Create(c.ours.MachineV1alpha1().MachineClasses(fixture.Namespace), fixture.MachineClass(fixture.Class, func(class *mcm.MachineClass) {
				class.NodeTemplate = &mcm.NodeTemplate{VirtualCapacity: corev1.ResourceList{"devices.gpu": resource.MustParse("2"), "devices.nic": resource.MustParse("1")}}
			}))
			time.Sleep(time.Second)
			Expect(c.spare()).To(HaveLen(2), "as soon as the class comes")
			c.settle()
			Expect(c.shows()).To(Equal("0+2 Complete"))
			c.equip(c.spare()[0], 1)
			c.settle()
			Expect(c.shows()).To(Equal("0+4 Complete"))
		})
	})

	It("is a percentage of what machines have for workload", func() {
		playReserved(usual, 5, keeps("devices.gpu=25%"), keeping(everything), func(c *reserved) {
			c.class("gpu")
			c.equip(c.serving()[0], 1)
			c.settle()
			Expect(c.shows()).To(Equal("5+2 Complete"))
		})
	})

	It("is not looked for again by a process that starts, which writes nothing", func() {
		storm.Bubble(suite, func() {
			c := adoptReserved(storm.NewApart(usual))
			defer c.End()
			p := c.Start(name, keeping(everything))
			world.Create(c.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), world.MachineDeployment("pool", 1, keeps("devices.gpu=2")))
			c.class("gpu")
			c.settle()
			c.equip(c.serving()[0], 1)
			c.settle()
			Expect(c.shows()).To(Equal("1+2 Complete"))
			c.Target.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) {
				if r.Resource == "resourceslices" && r.Verb == "list" {
					return time.Second, time.Second
				}
				return 2 * time.Millisecond, 2 * time.Millisecond
			})
			since := len(c.Writes())
			p.Restart()
			time.Sleep(time.Hour)
			Expect(c.wrote(since)).To(BeEmpty())
		})
	})

	It("waits where the right to read slices is missing, and says so; the rest of the plan does not", func() {
		playReserved(usual, 0, func(*v1alpha1.MachineDeployment) {}, keeping(everything), func(c *reserved) {
			c.class("gpu")
			c.Target.Trouble("resourceslices", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, name)
			c.edit(`{"metadata":{"annotations":{%q:"0:10:devices.gpu=2"}},"spec":{"replicas":2}}`, v1alpha1.BoundsAnnotation)
			time.Sleep(5 * time.Minute)
			Expect(c.shows()).To(Equal("2+0 CapacityUnknown"))
			Expect(c.says()).To(ContainSubstring("add the rule {apiGroups: [resource.k8s.io], resources: [resourceslices], verbs: [list, watch]} in the target cluster"))
			c.Target.Trouble("resourceslices", sim.Trouble{}, name)
			c.equip(c.serving()[0], 1)
			time.Sleep(15 * time.Minute)
			Expect(c.shows()).To(Equal("2+2 Complete"))
		})
	})
})
