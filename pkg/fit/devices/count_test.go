// SPDX-License-Identifier: Apache-2.0

package devices_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/fit/devices"
)

// lookups finds what is listed.
func (c *cluster) lookups() Lookups {
	return Lookups{
		OnNode: func(node string) (all []*resourceapi.ResourceSlice) {
			for _, s := range c.Slices {
				if s.Spec.NodeName != nil && *s.Spec.NodeName == node {
					all = append(all, s)
				}
			}
			return all
		},
		OfPool: func(driver, pool string) (all []*resourceapi.ResourceSlice) {
			for _, s := range c.Slices {
				if s.Spec.Driver == driver && s.Spec.Pool.Name == pool {
					all = append(all, s)
				}
			}
			return all
		},
		Class: func(name string) *resourceapi.DeviceClass {
			for _, class := range c.Classes {
				if class.Name == name {
					return class
				}
			}
			return nil
		},
	}
}

// count counts the devices of class gpu on node n.
func (c *cluster) count() (int, string) { return NewSelectors().Count(c.lookups(), "n", "gpu") }

// class changes the selectors of class gpu.
func class(expressions ...string) func(*cluster) {
	return func(c *cluster) { c.Classes[0].Spec.Selectors = cel(expressions...) }
}

// in changes the pool of a slice.
func in(pool string, generation, slices int64) func(*resourceapi.ResourceSliceSpec) {
	return func(s *resourceapi.ResourceSliceSpec) {
		s.Pool = resourceapi.ResourcePool{Name: pool, Generation: generation, ResourceSliceCount: slices}
	}
}

func ofDriver(name string) func(*resourceapi.ResourceSliceSpec) {
	return func(s *resourceapi.ResourceSliceSpec) { s.Driver = name }
}

func gpu(names ...string) (all []resourceapi.Device) {
	for _, name := range names {
		all = append(all, device(name))
	}
	return all
}

func tainted(effect resourceapi.DeviceTaintEffect) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) { d.Taints = []resourceapi.DeviceTaint{{Key: "k", Effect: effect}} }
}

func consuming(d *resourceapi.Device) {
	d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "card", Counters: counters("40Gi")}}
}

var _ = DescribeTable("Devices of a class on node n are counted",
	func(c *cluster, want int) {
		n, unknown := c.count()
		Expect(unknown).To(BeEmpty())
		Expect(n).To(Equal(want))
	},
	Entry("all that match", of(has("n", 3)), 3),
	Entry("of a class without selectors", of(class(), slice("n", gpu("a"), ofDriver("other"))), 1),
	Entry("only those that all selectors match", of(class(`device.driver == "gpu.example.com"`, ofModelA), slice("n", []resourceapi.Device{device("a"), device("b", ofModel("b"))})), 1),
	Entry("not those of other nodes", of(has("n", 2), has("m", 4)), 2),
	Entry("not those of other drivers, whose attributes no selector reads", of(class(`device.driver == "gpu.example.com" && `+ofModelA), has("n", 2), slice("n", gpu("nic"), ofDriver("nic"), in("nics", 1, 1))), 2),
	Entry("of several drivers and pools", of(class(), has("n", 2), slice("n", gpu("x"), ofDriver("x")), slice("n", gpu("y", "z"), in("second", 1, 1))), 5),
	Entry("of a pool of several nodes", of(slice("n", gpu("a", "b"), in("all", 1, 2)), slice("m", gpu("c"), in("all", 1, 2))), 2),
	Entry("of all slices of a pool", of(slice("n", gpu("a"), in("n", 1, 2)), slice("n", gpu("b"), in("n", 1, 2))), 2),
	Entry("of the newest generation", of(has("n", 3), slice("n", gpu("a"), in("n", 2, 1))), 1),
	Entry("of the newest generation, which comes first", of(slice("n", gpu("a"), in("n", 2, 1)), has("n", 3)), 1),
	Entry("of the newest generation that is complete", of(has("n", 3), slice("n", gpu("a"), in("n", 2, 2))), 3),
	Entry("those that claims have", of(has("n", 2), claim("c", wants(1), allocated("n", "gpu-0"))), 2),
	Entry("not those with taints", of(slice("n", []resourceapi.Device{device("a"), device("b", tainted(resourceapi.DeviceTaintEffectNoSchedule)), device("c", tainted(resourceapi.DeviceTaintEffectNoExecute))})), 1),
	Entry("those whose taints have no effect", of(has("n", 2, tainted(resourceapi.DeviceTaintEffectNone))), 2),
	Entry("not those that all nodes can use", of(has("n", 1), everywhere("network")), 1),
	Entry("not parts of others, nor those that can be shared", of(slice("n", []resourceapi.Device{device("a"), device("b", consuming), device("c", func(d *resourceapi.Device) { d.AllowMultipleAllocations = ptr.To(true) })})), 1),
	Entry("as many as may be", of(has("n", MaxDevices)), MaxDevices),
)

var _ = DescribeTable("Why the devices of a class on node n are not known",
	func(c *cluster, want string) {
		n, unknown := c.count()
		Expect(n).To(BeZero())
		Expect(unknown).To(ContainSubstring(want))
		Expect(unknown).NotTo(ContainSubstring("gpu-0"), "the text is the same, whichever device decides")
	},
	Entry("no class", of(has("n", 1), func(c *cluster) { c.Classes[0].Name = "GPU" }), "DeviceClass gpu does not exist"),
	Entry("no slices", of(has("m", 1)), "its Nodes have no devices of DeviceClass gpu in ResourceSlices"),
	Entry("none that matches", of(slice("n", gpu("a"), ofDriver("other"))), "its Nodes have no devices of DeviceClass gpu"),
	Entry("a selector that cannot be compiled", of(class("device.driver =="), has("n", 1)), "DeviceClass gpu: a selector cannot be compiled"),
	Entry("a selector of an unknown kind", of(func(c *cluster) { c.Classes[0].Spec.Selectors = []resourceapi.DeviceSelector{{}} }, has("n", 1)), "DeviceClass gpu has a selector that is not known here"),
	Entry("a selector that is too long", of(class(strings.Repeat(" ", MaxSelectorBytes)+"true"), has("n", 1)), "DeviceClass gpu: a selector is too long"),
	Entry("selectors that cost too much", of(class("true", "1 < 2", "2 < 3", "3 < 4"), has("n", 256)), "DeviceClass gpu: its selectors cost too much for so many devices"),
	Entry("a selector that reads what a device lacks", of(class(`device.attributes["gpu.example.com"].missing == "a"`), has("n", 1)), "a selector of DeviceClass gpu fails for a device of driver gpu.example.com: "),
	Entry("a slice is missing", of(slice("n", gpu("a"), in("n", 1, 2))), "a driver is replacing the devices of the node"),
	Entry("a slice is missing of one of the pools", of(has("n", 1), slice("n", gpu("a"), in("second", 1, 2))), "a driver is replacing the devices of the node"),
	Entry("slices disagree about their number", of(slice("n", gpu("a"), in("n", 1, 2)), slice("n", gpu("b"), in("n", 1, 1))), "a driver is replacing the devices of the node"),
	Entry("all are parts", of(parts(2)...), "cannot be counted"),
	Entry("all can be shared", of(has("n", 1, func(d *resourceapi.Device) { d.AllowMultipleAllocations = ptr.To(true) })), "cannot be counted"),
	Entry("all have taints", of(has("n", 1, tainted(resourceapi.DeviceTaintEffectNoSchedule))), "all devices of DeviceClass gpu have taints"),
	Entry("too many", of(has("n", MaxDevices+1)), "a Node has more than 512 devices"),
)
