// SPDX-License-Identifier: Apache-2.0

package devices_test

import (
	"fmt"
	"math"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/fit"
	. "github.com/evenkeel/evenkeel/pkg/fit/devices"
)

func TestDevices(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Devices")
}

const driver = "gpu.example.com"

// cluster is what is listed.
type cluster struct{ Listing }

// of is a cluster with a class for all GPUs, and what else is added.
func of(add ...func(*cluster)) *cluster {
	c := &cluster{}
	c.Classes = []*resourceapi.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourceapi.DeviceClassSpec{Selectors: cel(`device.driver == "gpu.example.com"`)}}}
	for _, f := range add {
		f(c)
	}
	return c
}

func (c *cluster) inventory() *Inventory { return New(c.Listing, NewSelectors()) }

func cel(expressions ...string) (all []resourceapi.DeviceSelector) {
	for _, e := range expressions {
		all = append(all, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: e}})
	}
	return all
}

// device has the attributes and the memory that many GPUs have.
func device(name string, change ...func(*resourceapi.Device)) resourceapi.Device {
	text := func(s string) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{StringValue: &s} }
	d := resourceapi.Device{Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"model": text("a"), "uuid": text("uuid-of-" + name), "type": text("gpu"), "architecture": text("x"), "brand": text("y"), "index": {IntValue: ptr.To[int64](1)},
		"driverVersion": {VersionValue: ptr.To("1.2.3")}, "resource.kubernetes.io/pcieRoot": text("pci0"),
	}, Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("40Gi")}}}
	for _, f := range change {
		f(&d)
	}
	return d
}

func ofModel(model string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) { d.Attributes["model"] = resourceapi.DeviceAttribute{StringValue: &model} }
}

// slice is one of a node, with a pool of its own, unless changed.
func slice(node string, devices []resourceapi.Device, change ...func(*resourceapi.ResourceSliceSpec)) func(*cluster) {
	return func(c *cluster) {
		s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", node, len(c.Slices))}}
		s.Spec = resourceapi.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}, Devices: devices}
		for _, f := range change {
			f(&s.Spec)
		}
		c.Slices = append(c.Slices, s)
	}
}

// has publishes so many equal devices of a node.
func has(node string, n int, change ...func(*resourceapi.Device)) func(*cluster) {
	var all []resourceapi.Device
	for i := range n {
		all = append(all, device(fmt.Sprintf("gpu-%d", i), change...))
	}
	return slice(node, all)
}

// wants is a spec that requests so many devices of the class gpu.
func wants(n int64, change ...func(*resourceapi.ExactDeviceRequest)) resourceapi.ResourceClaimSpec {
	e := &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: n}
	for _, f := range change {
		f(e)
	}
	spec := resourceapi.ResourceClaimSpec{}
	spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "r", Exactly: e}}
	return spec
}

func selecting(expressions ...string) func(*resourceapi.ExactDeviceRequest) {
	return func(e *resourceapi.ExactDeviceRequest) { e.Selectors = cel(expressions...) }
}

// template is a template of the name.
func template(name string, spec resourceapi.ResourceClaimSpec) func(*cluster) {
	return func(c *cluster) {
		t := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		t.Spec.Spec = spec
		c.Templates = append(c.Templates, t)
	}
}

// claim is one that exists.
func claim(name string, spec resourceapi.ResourceClaimSpec, change ...func(*resourceapi.ResourceClaim)) func(*cluster) {
	return func(c *cluster) {
		made := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: spec}
		for _, f := range change {
			f(made)
		}
		c.Claims = append(c.Claims, made)
	}
}

// allocated gives a claim devices of a node.
func allocated(node string, devices ...string) func(*resourceapi.ResourceClaim) {
	return func(c *resourceapi.ResourceClaim) {
		a := &resourceapi.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}}}
		for _, d := range devices {
			a.Devices.Results = append(a.Devices.Results, resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: node, Device: d})
		}
		c.Status.Allocation = a
	}
}

func ownedBy(pod string) func(*resourceapi.ResourceClaim) {
	return func(c *resourceapi.ResourceClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: pod, UID: types.UID(pod), Controller: ptr.To(true)}}
	}
}

// pod has claims: "template" or "=name".
func pod(name string, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	for i, c := range claims {
		entry := corev1.PodResourceClaim{Name: fmt.Sprint("c", i)}
		if c[0] == '=' {
			entry.ResourceClaimName = ptr.To(c[1:])
		} else {
			entry.ResourceClaimTemplateName = &c
		}
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, entry)
	}
	return p
}

// made tells that a claim was made for an entry of a pod.
func made(p *corev1.Pod, entry int, claim *string) *corev1.Pod {
	p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: fmt.Sprint("c", entry), ResourceClaimName: claim})
	return p
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: "a"}}}
}

// ask is what is allocated for a pod on node n.
func ask(c *cluster, p *corev1.Pod, taken ...fit.Device) fit.Allocation {
	GinkgoHelper()
	claims, err := c.inventory().Claimed(p)
	Expect(err).NotTo(HaveOccurred())
	return claims.Allocate(node("n"), taken, math.MaxInt)
}
