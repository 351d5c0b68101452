// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// rarities are things that few clusters have, by name. Each returns whether it found a place.
var rarities = []struct {
	name string
	add  func(d *drawer) bool
}{
	{"a device that all nodes can use", func(d *drawer) bool {
		return d.network(func(s *resourceapi.ResourceSliceSpec) { s.AllNodes = ptr.To(true) })
	}},
	{"a device that the nodes of a zone can use", func(d *drawer) bool {
		return d.network(func(s *resourceapi.ResourceSliceSpec) {
			s.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
			}}}
		})
	}},
	{"a device that can be shared", func(d *drawer) bool {
		return d.device(func(g *resourceapi.Device) { g.AllowMultipleAllocations = ptr.To(true) })
	}},
	{"a device with binding conditions", func(d *drawer) bool {
		return d.device(func(g *resourceapi.Device) { g.BindingConditions = []string{"Ready"} })
	}},
	{"a device without an attribute", func(d *drawer) bool { return d.device(func(g *resourceapi.Device) { delete(g.Attributes, "model") }) }},
	{"two devices of the same name", func(d *drawer) bool {
		s := d.anySlice()
		if s != nil {
			s.Spec.Devices = append(s.Spec.Devices, s.Spec.Devices[0])
		}
		return s != nil
	}},
	{"a slice that is missing", func(d *drawer) bool {
		return d.slicePart(func(s *resourceapi.ResourceSliceSpec) { s.Pool.ResourceSliceCount++ })
	}},
	{"a slice of a newer generation", func(d *drawer) bool {
		return d.slicePart(func(s *resourceapi.ResourceSliceSpec) { s.Pool.Generation++ })
	}},
	{"a slice of a newer generation that is complete", func(d *drawer) bool {
		return d.slicePart(func(s *resourceapi.ResourceSliceSpec) { s.Pool.Generation++; s.Pool.ResourceSliceCount = 1 })
	}},
	{"a pool of two nodes", func(d *drawer) bool {
		var moved int
		for _, s := range d.Slices {
			if s.Spec.Driver == nic {
				s.Spec.Pool.Name = "nics"
				moved++
				for i := range s.Spec.Devices {
					s.Spec.Devices[i].Name = d.next("nic")
				}
			}
		}
		for _, s := range d.Slices {
			if s.Spec.Driver == nic {
				s.Spec.Pool.ResourceSliceCount = int64(moved)
			}
		}
		return moved > 0
	}},
	{"admin access", func(d *drawer) bool {
		return d.request(func(e *resourceapi.ExactDeviceRequest) { e.AdminAccess = ptr.To(true) })
	}},
	{"a part of a device", func(d *drawer) bool {
		return d.request(func(e *resourceapi.ExactDeviceRequest) {
			e.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("10Gi")}}
		})
	}},
	{"a class that does not exist", func(d *drawer) bool {
		return d.request(func(e *resourceapi.ExactDeviceRequest) { e.DeviceClassName = "none" })
	}},
	{"a selector that fails", func(d *drawer) bool {
		return d.request(func(e *resourceapi.ExactDeviceRequest) {
			e.Selectors = append(e.Selectors, cel(`device.attributes["gpu.example.com"].nothing == "x"`)...)
		})
	}},
	{"more devices than a claim can have", func(d *drawer) bool { return d.request(func(e *resourceapi.ExactDeviceRequest) { e.Count = 40 }) }},
	{"a claim that is shared", func(d *drawer) bool {
		a, b := pick(d, d.Pods...), pick(d, d.Pods...)
		named := d.claim(d.next("shared"), d.spec())
		for _, p := range []*corev1.Pod{a, b} {
			if len(p.Spec.ResourceClaims) < 3 {
				p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: d.next("s"), ResourceClaimName: &named.Name})
			}
		}
		return true
	}},
	{"a claim that does not exist", func(d *drawer) bool {
		p := pick(d, d.Pods...)
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "gone", ResourceClaimName: ptr.To("gone")})
		return true
	}},
	{"a claim of another pod", func(d *drawer) bool {
		for _, c := range d.Claims {
			if len(c.OwnerReferences) > 0 {
				c.OwnerReferences[0].UID = "another"
				return true
			}
		}
		return false
	}},
	{"a claim that is being deleted", func(d *drawer) bool {
		pick(d, d.Claims...).DeletionTimestamp = ptr.To(metav1.Now())
		return true
	}},
}

func (d *drawer) rarity() {
	r := pick(d, rarities...)
	if len(d.Claims) > 0 && r.add(d) {
		d.odd = append(d.odd, r.name)
	}
}

func (d *drawer) network(reach func(*resourceapi.ResourceSliceSpec)) bool {
	s := d.slice(pick(d, gpu, "aaa.example.com"), d.next("network"), "network", 1)
	s.Spec.NodeName = nil
	reach(&s.Spec)
	for i := range 1 + d.IntN(2) {
		s.Spec.Devices = append(s.Spec.Devices, d.gpu(i))
	}
	return true
}

func (d *drawer) device(change func(*resourceapi.Device)) bool {
	s := d.anySlice()
	if s != nil {
		change(&s.Spec.Devices[d.IntN(len(s.Spec.Devices))])
	}
	return s != nil
}

func (d *drawer) slicePart(change func(*resourceapi.ResourceSliceSpec)) bool {
	s := d.anySlice()
	if s != nil {
		change(&s.Spec)
	}
	return s != nil
}

// request changes a request of a claim that was made by hand or for a pod, and of its template.
func (d *drawer) request(change func(*resourceapi.ExactDeviceRequest)) bool {
	for _, i := range d.Perm(len(d.Claims)) {
		c := d.Claims[i]
		if strings.HasPrefix(c.Name, "running") || c.Status.Allocation != nil {
			continue
		}
		for i := range c.Spec.Devices.Requests {
			if e := c.Spec.Devices.Requests[i].Exactly; e != nil {
				change(e)
				return true
			}
		}
	}
	return false
}
