// SPDX-License-Identifier: Apache-2.0

package target_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// equipped is a cluster whose nodes have devices.
type equipped struct {
	*fake.Clientset
	informers *target.Informers
	// refused and unserved are what the API server says.
	refused, unserved atomic.Bool
	lists             atomic.Int32

	mu      sync.Mutex
	changed []string
}

// served are the kinds of the API.
func served() []*metav1.APIResourceList {
	return []*metav1.APIResourceList{{GroupVersion: "resource.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "resourceslices"}, {Name: "deviceclasses"}}}}
}

// playDevices runs body in virtual time on a cluster with one class and one device of node a.
func playDevices(body func(c *equipped)) {
	storm.Bubble(suite, func() {
		c := &equipped{Clientset: fake.NewClientset(deviceClass("gpu", `device.driver == "gpu.example.com"`), deviceSlice("a", 1))}
		c.Resources = served()
		c.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) { // discovery
			if c.unserved.Load() {
				return true, nil, apierrors.NewNotFound(resourceapi.Resource("resourceslices"), "")
			}
			return false, nil, nil
		})
		for _, verb := range []string{"list", "watch"} {
			c.PrependReactor(verb, "resourceslices", func(clienttesting.Action) (bool, runtime.Object, error) {
				c.lists.Add(1)
				if c.refused.Load() {
					return true, nil, apierrors.NewForbidden(resourceapi.Resource("resourceslices"), "", errors.New("no rule"))
				}
				return false, nil, nil
			})
		}
		c.informers = target.New(c, access.New(clock.RealClock{}))
		ctx, stop := context.WithCancel(context.Background())
		defer c.informers.Shutdown()
		defer stop()
		c.informers.DeviceCounts().Subscribe(func(node string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.changed = append(c.changed, node)
		})
		c.informers.Start(ctx)
		body(c)
	})
}

func deviceClass(name, expression string) *resourceapi.DeviceClass {
	c := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
	return c
}

// deviceSlice has the devices of a node, in a pool of its own unless changed.
func deviceSlice(node string, devices int, change ...func(*resourceapi.ResourceSlice)) *resourceapi.ResourceSlice {
	s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourceapi.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: ptr.To(node), Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
	}}
	for i := range devices {
		s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: fmt.Sprint("gpu-", i)})
	}
	for _, f := range change {
		f(s)
	}
	return s
}

// count counts the devices of a node once everything has been read.
func (c *equipped) count(node, class string) (int, string) {
	c.informers.DeviceCounts().Count(node, class)
	synctest.Wait()
	return c.informers.DeviceCounts().Count(node, class)
}

// seen returns what has changed since it was called last, sorted.
func (c *equipped) seen() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.changed
	c.changed = nil
	slices.Sort(all)
	return slices.Compact(all)
}

var _ = Describe("Counts of devices", func() {
	gpu := []string{"gpu"}

	It("read nothing before somebody asks", func() {
		playDevices(func(c *equipped) {
			time.Sleep(24 * time.Hour)
			Expect(c.informers.DeviceCounts().Awaited(nil)).To(BeFalse())
			Expect(c.lists.Load()).To(BeZero())
			Expect(c.seen()).To(BeEmpty())
			c.informers.DeviceCounts().Awaited(gpu)
			synctest.Wait()
			Expect(c.informers.DeviceCounts().Awaited(gpu)).To(BeFalse())
			Expect(c.lists.Load()).NotTo(BeZero())
			Expect(c.seen()).To(ContainElement(""))
			n, unknown := c.informers.DeviceCounts().Count("a", "gpu")
			Expect(n).To(Equal(1), unknown)
		})
	})

	It("follow slices and classes, and report only what may change a number", func() {
		playDevices(func(c *equipped) {
			c.count("a", "gpu")
			c.seen()
			api := c.ResourceV1()
			world.Create(api.ResourceSlices(), deviceSlice("b", 4))
			Expect(c.seen()).To(Equal([]string{"b"}))
			Expect(c.count("b", "gpu")).To(Equal(4))

			world.Change(api.ResourceSlices(), "b", func(s *resourceapi.ResourceSlice) { s.Labels = map[string]string{"any": "thing"} })
			Expect(c.seen()).To(BeEmpty())
			world.Change(api.ResourceSlices(), "b", func(s *resourceapi.ResourceSlice) { s.Spec.Devices = s.Spec.Devices[1:] })
			Expect(c.seen()).To(Equal([]string{"b"}))
			Expect(c.count("b", "gpu")).To(Equal(3))
			Expect(api.ResourceSlices().Delete(context.Background(), "b", metav1.DeleteOptions{})).To(Succeed())
			Expect(c.seen()).To(Equal([]string{"b"}))
			_, unknown := c.count("b", "gpu")
			Expect(unknown).To(ContainSubstring("no devices"))

			world.Change(api.DeviceClasses(), "gpu", func(d *resourceapi.DeviceClass) { d.Labels = map[string]string{"any": "thing"} })
			Expect(c.seen()).To(BeEmpty())
			world.Change(api.DeviceClasses(), "gpu", func(d *resourceapi.DeviceClass) { d.Spec.Selectors[0].CEL.Expression = "false" })
			Expect(c.seen()).To(Equal([]string{""}))
			_, unknown = c.count("a", "gpu")
			Expect(unknown).To(ContainSubstring("no devices"))
		})
	})

	It("report all nodes of a pool, whose slices are complete together", func() {
		playDevices(func(c *equipped) {
			c.count("a", "gpu")
			both := func(s *resourceapi.ResourceSlice) { s.Spec.Pool.Name, s.Spec.Pool.ResourceSliceCount = "both", 2 }
			world.Create(c.ResourceV1().ResourceSlices(), deviceSlice("c", 2, both))
			_, unknown := c.count("c", "gpu")
			Expect(unknown).To(ContainSubstring("replacing"))
			c.seen()
			world.Create(c.ResourceV1().ResourceSlices(), deviceSlice("d", 3, both))
			Expect(c.seen()).To(Equal([]string{"c", "d"}))
			Expect(c.count("c", "gpu")).To(Equal(2))
		})
	})

	It("say that the cluster does not serve the kinds, until it does", func() {
		playDevices(func(c *equipped) {
			c.unserved.Store(true)
			_, unknown := c.count("a", "gpu")
			Expect(unknown).To(Equal("the target cluster does not serve ResourceSlices (resource.k8s.io/v1)"))
			Expect(c.informers.DeviceCounts().Awaited(gpu)).To(BeFalse())
			Expect(c.lists.Load()).To(BeZero())
			c.seen()
			c.unserved.Store(false)
			time.Sleep(11 * time.Minute)
			Expect(c.seen()).To(ContainElement(""))
			Expect(c.count("a", "gpu")).To(Equal(1))
		})
	})

	It("say which right is missing, until it is granted", func() {
		playDevices(func(c *equipped) {
			c.refused.Store(true)
			c.count("a", "gpu")
			time.Sleep(9 * time.Second)
			Expect(c.informers.DeviceCounts().Awaited(gpu)).To(BeFalse())
			Expect(c.seen()).To(Equal([]string{""}))
			_, unknown := c.count("a", "gpu")
			Expect(unknown).To(ContainSubstring("add the rule {apiGroups: [resource.k8s.io], resources: [resourceslices], verbs: [list, watch]} in the target cluster"))
			c.refused.Store(false)
			time.Sleep(11 * time.Minute)
			Expect(c.seen()).To(ContainElement(""))
			Expect(c.count("a", "gpu")).To(Equal(1))
		})
	})

	It("say that the right to DeviceClasses is missing", func() {
		playDevices(func(c *equipped) {
			c.PrependReactor("list", "deviceclasses", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(resourceapi.Resource("deviceclasses"), "", errors.New("no rule"))
			})
			c.count("a", "gpu")
			time.Sleep(9 * time.Second)
			_, unknown := c.count("a", "gpu")
			Expect(unknown).To(ContainSubstring("resources: [deviceclasses], verbs: [list, watch]"))
		})
	})

	It("let decisions wait for some seconds only", func() {
		playDevices(func(c *equipped) {
			c.PrependReactor("list", "deviceclasses", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewInternalError(errors.New("down"))
			})
			c.count("a", "gpu")
			time.Sleep(9 * time.Second)
			Expect(c.informers.DeviceCounts().Awaited(gpu)).To(BeTrue())
			Expect(c.seen()).NotTo(ContainElement(""))
			time.Sleep(2 * time.Second)
			Expect(c.informers.DeviceCounts().Awaited(gpu)).To(BeFalse())
			Expect(c.seen()).To(Equal([]string{""}))
			_, unknown := c.count("a", "gpu")
			Expect(unknown).To(Equal("ResourceSlices and DeviceClasses have not been read yet"))
		})
	})

	It("are none without a target cluster, and those of given objects", func() {
		var none *target.Informers
		n, unknown := none.DeviceCounts().Count("a", "gpu")
		Expect(n).To(BeZero())
		Expect(unknown).To(Equal("there is no target cluster"))
		Expect(none.DeviceCounts().Awaited(gpu)).To(BeFalse())
		none.DeviceCounts().Subscribe(nil)

		given := target.CountsOf([]*resourceapi.ResourceSlice{deviceSlice("a", 2)}, []*resourceapi.DeviceClass{deviceClass("gpu", "true")}, "")
		n, unknown = given.Count("a", "gpu")
		Expect(n).To(Equal(2), unknown)
		n, unknown = target.CountsOf(nil, nil, "nobody may").Count("a", "gpu")
		Expect(n).To(BeZero())
		Expect(unknown).To(Equal("nobody may"))
	})
})
