// SPDX-License-Identifier: Apache-2.0

package devices_test

import (
	"fmt"
	"math"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/fit"
	. "github.com/evenkeel/evenkeel/pkg/fit/devices"
)

// gpus are the names of devices of node n.
func gpus(numbers ...int) []fit.Device {
	var all []fit.Device
	for _, i := range numbers {
		all = append(all, fit.Device(fmt.Sprintf("%s/n/gpu-%d", driver, i)))
	}
	return all
}

const ofModelA = `device.attributes["gpu.example.com"].model == "a"`

func counters(amount string) map[string]resourceapi.Counter {
	return map[string]resourceapi.Counter{"memory": {Value: resource.MustParse(amount)}}
}

// parts is a pool of parts of one device, each of half of it.
func parts(n int) []func(*cluster) {
	var devices []resourceapi.Device
	for i := range n {
		devices = append(devices, device(fmt.Sprintf("part-%d", i), func(d *resourceapi.Device) {
			d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "card", Counters: counters("40Gi")}}
		}))
	}
	two := func(s *resourceapi.ResourceSliceSpec) { s.Pool.ResourceSliceCount = 2 }
	return []func(*cluster){slice("n", devices, two), slice("n", nil, two, func(s *resourceapi.ResourceSliceSpec) {
		s.SharedCounters = []resourceapi.CounterSet{{Name: "card", Counters: counters("80Gi")}}
	})}
}

var _ = DescribeTable("Devices of node n for a claim",
	func(c *cluster, spec resourceapi.ResourceClaimSpec, want []fit.Device) {
		template("t", spec)(c)
		a := ask(c, pod("p", "t"))
		if want == nil {
			Expect(a.Obstacle).To(Equal(fit.NoDevices))
		} else {
			Expect(a.Obstacle).To(Equal(fit.Fits), a.Why)
		}
		Expect(a.Devices).To(Equal(want))
		Expect(a.Work).To(BeNumerically(">", 0))
	},
	Entry("the first ones", of(has("n", 3)), wants(2), gpus(0, 1)),
	Entry("all of them", of(has("n", 3)), wants(3), gpus(0, 1, 2)),
	Entry("one too many", of(has("n", 3)), wants(4), nil),
	Entry("there are none", of(has("m", 3)), wants(1), nil),
	Entry("some are of other claims", of(has("n", 3), claim("c", wants(1), allocated("n", "gpu-0"))), wants(2), gpus(1, 2)),
	Entry("too many are of other claims", of(has("n", 3), claim("c", wants(1), allocated("n", "gpu-0", "gpu-1"))), wants(2), nil),
	Entry("those of other nodes do not count", of(has("n", 1), has("m", 2), claim("c", wants(1), allocated("m", "gpu-0"))), wants(1), gpus(0)),
	Entry("those that are used with admin access are free", of(has("n", 1), claim("c", wants(1), allocated("n", "gpu-0"), func(c *resourceapi.ResourceClaim) {
		c.Status.Allocation.Devices.Results[0].AdminAccess = ptr.To(true)
	})), wants(1), gpus(0)),
	Entry("by a selector", of(slice("n", []resourceapi.Device{device("gpu-0", ofModel("b")), device("gpu-1")})), wants(1, selecting(ofModelA)), gpus(1)),
	Entry("by a selector, too few", of(slice("n", []resourceapi.Device{device("gpu-0", ofModel("b")), device("gpu-1")})), wants(2, selecting(ofModelA)), nil),
	Entry("of another driver", of(slice("n", []resourceapi.Device{device("gpu-0")}, func(s *resourceapi.ResourceSliceSpec) { s.Driver = "other" })), wants(1), nil),
	Entry("of the newest generation", of(has("n", 2), slice("n", []resourceapi.Device{device("gpu-7")}, func(s *resourceapi.ResourceSliceSpec) { s.Pool.Generation = 2 })), wants(1), gpus(7)),
	Entry("of the newest generation, which comes first", of(slice("n", []resourceapi.Device{device("gpu-7")}, func(s *resourceapi.ResourceSliceSpec) { s.Pool.Generation = 2 }), has("n", 2)), wants(1), gpus(7)),
	Entry("no taint keeps it away that has no effect", of(has("n", 1, func(d *resourceapi.Device) {
		d.Taints = []resourceapi.DeviceTaint{{Key: "k", Effect: resourceapi.DeviceTaintEffectNone}}
	})), wants(1), gpus(0)),
	Entry("a taint keeps it away", of(has("n", 1, func(d *resourceapi.Device) {
		d.Taints = []resourceapi.DeviceTaint{{Key: "k", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	})), wants(1), nil),
	Entry("parts of one", of(parts(3)...), wants(2), []fit.Device{"gpu.example.com/n/part-0", "gpu.example.com/n/part-1"}),
	Entry("too many parts of one", of(parts(3)...), wants(3), nil),
	Entry("parts of one of which another claim shares a part", of(append(parts(3), func(c *cluster) {
		part := &c.Slices[0].Spec.Devices[0]
		part.AllowMultipleAllocations = ptr.To(true)
		ofModel("shared")(part)
	}, claim("c", wants(1), allocated("n", "part-0"), func(c *resourceapi.ResourceClaim) {
		c.Status.Allocation.Devices.Results[0].ShareID = ptr.To[types.UID]("share")
	}))...), wants(2, selecting(ofModelA)), nil),
	Entry("parts of one that another claim has a part of", of(append(parts(3), claim("c", wants(1), allocated("n", "part-0")))...), wants(2), nil),
	Entry("two of the same name are of no use", of(slice("n", []resourceapi.Device{device("gpu-0"), device("gpu-0")})), wants(1), nil),
	Entry("not one that all nodes can use, if there is one of the node alone", of(has("n", 1), everywhere("zzz")), wants(1), gpus(0)),
	Entry("the alternative that needs fewer", of(has("n", 1)), alternatives(2, 1), gpus(0)),
	Entry("the alternative that needs more, as it comes first", of(has("n", 2)), alternatives(2, 1), gpus(0, 1)),
	Entry("no alternative", of(has("n", 1)), alternatives(2, 3), nil),
	Entry("one that can be shared, twice", odd(func(d *resourceapi.Device) { d.AllowMultipleAllocations = ptr.To(true) }), wants(2), nil),
	Entry("none that all nodes can use is free", of(everywhere("all"), claim("c", wants(1), allocatedFrom("all"))), wants(1), nil),
)

// alternatives is a spec that requests as many devices as the first of these numbers that there are.
func alternatives(numbers ...int64) resourceapi.ResourceClaimSpec {
	return spec(func(s *resourceapi.ResourceClaimSpec) {
		r := resourceapi.DeviceRequest{Name: "r"}
		for i, n := range numbers {
			r.FirstAvailable = append(r.FirstAvailable, resourceapi.DeviceSubRequest{
				Name: fmt.Sprint("s", i), DeviceClassName: "gpu", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: n,
			})
		}
		s.Devices.Requests = []resourceapi.DeviceRequest{r}
	})
}

// everywhere is a device that all nodes can use.
func everywhere(pool string, change ...func(*resourceapi.ResourceSliceSpec)) func(*cluster) {
	return slice("", []resourceapi.Device{device("gpu-0")}, append([]func(*resourceapi.ResourceSliceSpec){func(s *resourceapi.ResourceSliceSpec) {
		s.NodeName, s.AllNodes, s.Pool.Name = nil, ptr.To(true), pool
	}}, change...)...)
}

func allocatedFrom(pool string) func(*resourceapi.ResourceClaim) {
	return func(c *resourceapi.ResourceClaim) {
		allocated("n", "gpu-0")(c)
		c.Status.Allocation.Devices.Results[0].Pool = pool
		c.Status.Allocation.NodeSelector = nil
	}
}

// odd is a device that is odd in one way.
func odd(change func(*resourceapi.Device)) *cluster { return of(has("n", 1, change)) }

var _ = DescribeTable("Nothing is decided about node n",
	func(c *cluster, spec resourceapi.ResourceClaimSpec, why string) {
		template("t", spec)(c)
		a := ask(c, pod("p", "t"))
		Expect(a).To(And(HaveField("Obstacle", fit.Undecided), HaveField("Devices", BeEmpty()), HaveField("Unfinished", false)))
		Expect(a.Why).To(ContainSubstring(why))
	},
	Entry("with a device that can be shared", odd(func(d *resourceapi.Device) { d.AllowMultipleAllocations = ptr.To(true) }), wants(1), "kind that is not decided"),
	Entry("with a device with conditions", odd(func(d *resourceapi.Device) { d.BindingConditions = []string{"Ready"} }), wants(1), "kind that is not decided"),
	Entry("with a device that binds to the node", odd(func(d *resourceapi.Device) { d.BindsToNode = ptr.To(true) }), wants(1), "kind that is not decided"),
	Entry("with a device that takes CPU", odd(func(d *resourceapi.Device) {
		d.NodeAllocatableResourceMappings = map[corev1.ResourceName]resourceapi.NodeAllocatableResourceMapping{"cpu": {}}
	}), wants(1), "kind that is not decided"),
	Entry("with a device that lists values", odd(func(d *resourceapi.Device) {
		d.Attributes["list"] = resourceapi.DeviceAttribute{StringValues: []string{"a"}}
	}), wants(1), "lists values"),
	Entry("where only a device of all nodes is left", of(everywhere("all")), wants(1), "kind that is not decided"),
	Entry("where a device of all nodes comes first", of(has("n", 1), everywhere("all")), wants(1), "kind that is not decided"),
	Entry("with counters of several nodes", of(append(parts(2), slice("m", nil, func(s *resourceapi.ResourceSliceSpec) { s.Pool.Name = "n"; s.Pool.ResourceSliceCount = 3 }), func(c *cluster) {
		c.Slices[0].Spec.Pool.ResourceSliceCount, c.Slices[1].Spec.Pool.ResourceSliceCount = 3, 3
	})...), wants(1), "kind that is not decided"),
	Entry("while a slice is missing", of(slice("n", nil, func(s *resourceapi.ResourceSliceSpec) { s.Pool.ResourceSliceCount = 2 })), wants(1), "replacing"),
	Entry("while slices disagree, and the first one says that all are there", of(slice("n", []resourceapi.Device{device("gpu-7")}, func(s *resourceapi.ResourceSliceSpec) { s.Pool.ResourceSliceCount = 2 }), has("n", 2)), wants(1), "replacing"),
	Entry("with a device of a pool that is not of the node alone", of(slice("n", []resourceapi.Device{device("gpu-7")}, func(s *resourceapi.ResourceSliceSpec) {
		s.Pool.ResourceSliceCount = 2
	}), everywhere("n", func(s *resourceapi.ResourceSliceSpec) { s.Pool.ResourceSliceCount = 2 })), wants(1), "kind that is not decided"),
	Entry("while slices disagree", of(has("n", 2), slice("n", nil, func(s *resourceapi.ResourceSliceSpec) { s.Pool.ResourceSliceCount = 2 })), wants(1), "replacing"),
	Entry("where a selector fails", of(has("n", 1)), wants(1, selecting(`device.attributes["gpu.example.com"].none == "a"`)), "no such key"),
	Entry("where a selector is malformed", of(has("n", 1)), wants(1, selecting(`device.`)), "cannot be compiled"),
	Entry("where a selector is long", of(has("n", 1)), wants(1, selecting(`"`+strings.Repeat("x", MaxSelectorBytes)+`" == ""`)), "too long"),
	Entry("where a selector is expensive", of(has("n", 1)), wants(1, selecting(`device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, a == b)))`)), "may cost more than 10000"),
	Entry("where selectors are expensive together", of(has("n", 64)), wants(1, selecting(`device.attributes.exists(k, device.attributes[k].exists(l, l == "x"))`)), "too much for so many devices"),
	Entry("where the search is long", of(has("n", 64)), endless(), "too much work"),
	Entry("with too many devices", of(slice("n", make([]resourceapi.Device, MaxDevices+1))), wants(1), "too many devices"),
	Entry("where more devices are asked for than a claim can have", of(has("n", 64)), wants(40), "exceeds the claim limit"),
)

var _ = Describe("A choice of devices", func() {
	It("leaves those alone that are taken", func() {
		c := of(has("n", 3), template("t", wants(1)))
		Expect(ask(c, pod("p", "t"), gpus(0, 2)...).Devices).To(Equal(gpus(1)))
		Expect(ask(c, pod("p", "t"), gpus(0, 1, 2)...)).To(Equal(fit.Allocation{Obstacle: fit.NoDevices, Work: 1}), "without the allocator")
	})

	It("leaves parts alone that share a counter with those that are taken", func() {
		c := of(append(parts(4), template("t", wants(1)))...)
		Expect(ask(c, pod("p", "t"), "gpu.example.com/n/part-0").Devices).To(Equal([]fit.Device{"gpu.example.com/n/part-1"}))
		Expect(ask(c, pod("p", "t"), "gpu.example.com/n/part-0", "gpu.example.com/n/part-1").Obstacle).To(Equal(fit.NoDevices))
	})

	It("does not ask the allocator where only other nodes of a pool have enough", func() {
		pool := func(s *resourceapi.ResourceSliceSpec) { s.Pool.Name, s.Pool.ResourceSliceCount = "pool", 2 }
		c := of(slice("n", []resourceapi.Device{device("gpu-0")}, pool), slice("m", []resourceapi.Device{device("gpu-1"), device("gpu-2")}, pool), template("t", wants(2)), template("u", wants(1)))
		Expect(ask(c, pod("p", "t"))).To(Equal(fit.Allocation{Obstacle: fit.NoDevices, Work: 1}))
		Expect(ask(c, pod("p", "u")).Devices).To(Equal([]fit.Device{"gpu.example.com/pool/gpu-0"}))
	})

	It("knows pools with slashes in their names", func() {
		c := of(slice("n", []resourceapi.Device{device("gpu-0"), device("gpu-1")}, func(s *resourceapi.ResourceSliceSpec) { s.Pool.Name = "a/b/c" }), template("t", wants(1)))
		Expect(ask(c, pod("p", "t"), "gpu.example.com/a/b/c/gpu-0").Devices).To(Equal([]fit.Device{"gpu.example.com/a/b/c/gpu-1"}))
	})

	It("is of all claims together", func() {
		c := of(has("n", 3), template("t", wants(2)), template("u", wants(1)))
		Expect(ask(c, pod("p", "t", "u")).Devices).To(Equal(gpus(0, 1, 2)))
		Expect(ask(c, pod("p", "t", "t")).Obstacle).To(Equal(fit.NoDevices))
	})

	It("is not decided where two requests can share a device", func() {
		c := odd(func(d *resourceapi.Device) { d.AllowMultipleAllocations, d.Capacity = ptr.To(true), nil })
		template("t", requests(2))(c)
		Expect(ask(c, pod("p", "t")).Obstacle).To(Equal(fit.Undecided))
	})

	It("is none for a claim that is allocated", func() {
		c := of(has("n", 1), claim("c", wants(1), allocated("n", "gpu-0")))
		Expect(ask(c, pod("p", "=c"))).To(Equal(fit.Allocation{Work: 1}))
		claims, err := c.inventory().Claimed(pod("p", "=c"))
		Expect(err).NotTo(HaveOccurred())
		Expect([]bool{claims.Reaches(node("n")), claims.Reaches(node("m"))}).To(Equal([]bool{true, false}))
	})

	It("is nowhere for claims that are allocated on different nodes", func() {
		c := of(has("n", 1), has("m", 1), claim("c", wants(1), allocated("n", "gpu-0")), claim("d", wants(1), allocated("m", "gpu-0")))
		claims, err := c.inventory().Claimed(pod("p", "=c", "=d"))
		Expect(err).NotTo(HaveOccurred())
		Expect([]bool{claims.Reaches(node("n")), claims.Reaches(node("m"))}).To(Equal([]bool{false, false}))
	})

	It("is of the devices of each node, however many all nodes can use", func() {
		c := of(has("n", 1), has("m", 1), everywhere("x"), everywhere("y"), everywhere("z"), template("t", wants(1)))
		claims, err := c.inventory().Claimed(pod("p", "t"))
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"n", "m"} {
			Expect(claims.Allocate(node(name), nil, math.MaxInt).Devices).To(Equal([]fit.Device{fit.Device("gpu.example.com/" + name + "/gpu-0")}))
		}
	})

	It("is possible on a node whose devices are all of other claims", func() {
		c := of(has("n", 1), everywhere("all"), claim("c", wants(1), allocated("n", "gpu-0")), claim("d", wants(1), allocatedFrom("all")), template("t", wants(1)), template("u", wants(2)))
		possible := func(name string) fit.Obstacle {
			claims, err := c.inventory().Claimed(pod("p", name))
			Expect(err).NotTo(HaveOccurred())
			return claims.Possible(node("n"))
		}
		Expect(possible("t")).To(Equal(fit.Fits))
		Expect(possible("u")).To(Equal(fit.NoDevices), "that of all nodes stays taken")
	})

	DescribeTable("gives up at a limit, before it compiles, evaluates or searches",
		func(spec resourceapi.ResourceClaimSpec, limit int, unfinished bool) {
			claims, err := of(has("n", 16), template("t", spec)).inventory().Claimed(pod("p", "t"))
			Expect(err).NotTo(HaveOccurred())
			a := claims.Allocate(node("n"), nil, limit)
			Expect(a.Unfinished).To(Equal(unfinished))
			if unfinished {
				Expect(a.Obstacle).To(Equal(fit.Undecided))
			}
			Expect(float64(a.Work)).To(BeNumerically("<=", float64(limit)+1000), "and a step that it does not stop in")
		},
		Entry("no limit", wants(1), math.MaxInt, false),
		Entry("too little to compile", wants(1), 10_000, true),
		Entry("too little to evaluate", wants(1, selecting(ofModelA)), 40_000, true),
		Entry("too little to evaluate for all devices", wants(0, selecting(ofModelA), func(e *resourceapi.ExactDeviceRequest) {
			e.AllocationMode = resourceapi.DeviceAllocationModeAll
		}), 42_000, true),
		Entry("too little to search", spec(func(s *resourceapi.ResourceClaimSpec) { *s = endless() }), 100_000, true),
		Entry("enough for all", wants(1), 60_000, false),
	)

	It("compiles a selector once, whatever inventory it is in", func() {
		c, selectors := of(has("n", 1), template("t", wants(1))), NewSelectors()
		work := func() int {
			claims, err := New(c.Listing, selectors).Claimed(pod("p", "t"))
			Expect(err).NotTo(HaveOccurred())
			return claims.Allocate(node("n"), nil, math.MaxInt).Work
		}
		Expect(work()).To(BeNumerically(">", 15_000))
		Expect(work()).To(BeNumerically("<", 2_000))
	})

	It("counts each evaluation of a selector, and each step of a search", func() {
		work := func(spec resourceapi.ResourceClaimSpec) int {
			c, selectors := of(has("n", 4), template("t", spec)), NewSelectors()
			claims, err := New(c.Listing, selectors).Claimed(pod("p", "t"))
			Expect(err).NotTo(HaveOccurred())
			claims.Allocate(node("n"), nil, math.MaxInt)
			return claims.Allocate(node("n"), nil, math.MaxInt).Work
		}
		one := work(wants(1))
		Expect(work(wants(1, selecting(ofModelA))) - one).To(BeNumerically("~", 300, 20))
		Expect(work(wants(2))-one).To(BeNumerically("~", 300+12*5, 20), "one more device, and one more step")
	})

	It("has no more work than its bound, whatever is asked for", func() {
		a := ask(of(has("n", 64), template("t", endless())), pod("p", "t"))
		Expect(a.Work).To(BeNumerically("<", MaxWork+50_000))
	})
})

var _ = Describe("A machine that boots", func() {
	boots := func() *corev1.Node {
		n := node("boots")
		Like(n, "n")
		return n
	}

	It("offers the devices of its sample, also those that are taken there", func() {
		c := of(has("n", 2), claim("c", wants(1), allocated("n", "gpu-0")), template("t", wants(1)), template("u", wants(3)))
		for name, want := range map[string]fit.Allocation{"t": {Devices: gpus(0)}, "u": {Obstacle: fit.NoDevices}} {
			claims, err := c.inventory().Claimed(pod("p", name))
			Expect(err).NotTo(HaveOccurred())
			a := claims.Allocate(boots(), nil, math.MaxInt)
			Expect(a.Obstacle).To(Equal(want.Obstacle))
			Expect(a.Devices).To(Equal(want.Devices))
			Expect(claims.Possible(boots())).To(Equal(want.Obstacle))
		}
	})

	It("offers a device that all nodes can use only if it is free", func() {
		c := of(everywhere("all"), claim("c", wants(1), allocatedFrom("all")), template("t", wants(1)))
		claims, err := c.inventory().Claimed(pod("p", "t"))
		Expect(err).NotTo(HaveOccurred())
		Expect(claims.Allocate(boots(), nil, math.MaxInt).Obstacle).To(Equal(fit.NoDevices))
	})

	It("is not where devices of its sample are allocated", func() {
		claims, err := of(has("n", 1), claim("c", wants(1), allocated("n", "gpu-0"))).inventory().Claimed(pod("p", "=c"))
		Expect(err).NotTo(HaveOccurred())
		Expect(claims.Reaches(boots())).To(BeFalse())
	})
})
