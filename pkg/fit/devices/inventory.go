// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Listing is what the API server lists.
type Listing struct {
	Slices    []*resourceapi.ResourceSlice
	Classes   []*resourceapi.DeviceClass
	Claims    []*resourceapi.ResourceClaim
	Templates []*resourceapi.ResourceClaimTemplate
	// Waiting are all pods that wait for a node. They show which claims are shared.
	Waiting []*corev1.Pod
}

// Inventory is what is known about devices at one time. It does not change, and can be used
// concurrently.
type Inventory struct {
	classes   classes
	claims    map[types.NamespacedName]*resourceapi.ResourceClaim
	templates map[types.NamespacedName]*resourceapi.ResourceClaimTemplate
	// users is how many waiting pods name a claim.
	users map[types.NamespacedName]int
	// resources are the extended resources that devices of a class provide.
	resources map[corev1.ResourceName]string
	// offers are the devices that nodes can use, by node; common are those of all other nodes.
	offers map[string]*offer
	common *offer
	// allocated are the devices of all claims.
	allocated structured.AllocatedState
	// odd are devices about whose use nothing is decided.
	odd       sets.Set[structured.DeviceID]
	selectors *Selectors
}

// classes are device classes by name, as the allocator looks them up.
type classes map[string]*resourceapi.DeviceClass

// Get returns a class.
func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, ok := c[name]; ok {
		return class, nil
	}
	return nil, fmt.Errorf("class %s does not exist", name)
}

// List returns all classes.
func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	return slices.Collect(maps.Values(c)), nil
}

// New returns an inventory.
func New(l Listing, s *Selectors) *Inventory {
	v := &Inventory{
		classes:   make(classes, len(l.Classes)),
		claims:    make(map[types.NamespacedName]*resourceapi.ResourceClaim, len(l.Claims)),
		templates: make(map[types.NamespacedName]*resourceapi.ResourceClaimTemplate, len(l.Templates)),
		users:     map[types.NamespacedName]int{}, resources: map[corev1.ResourceName]string{},
		allocated: noneAllocated(), odd: sets.New[structured.DeviceID](), selectors: s,
	}
	for _, c := range l.Classes {
		v.addClass(c)
	}
	for _, c := range l.Claims {
		v.claims[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] = c
		addAllocated(&v.allocated, c)
	}
	for _, t := range l.Templates {
		v.templates[types.NamespacedName{Namespace: t.Namespace, Name: t.Name}] = t
	}
	for _, pod := range l.Waiting {
		for name := range namedBy(pod) {
			v.users[types.NamespacedName{Namespace: pod.Namespace, Name: name}]++
		}
	}
	v.addPools(poolsOf(l.Slices))
	return v
}

func (v *Inventory) addClass(c *resourceapi.DeviceClass) {
	v.classes[c.Name] = c
	v.resources[corev1.ResourceName(resourceapi.ResourceDeviceClassPrefix+c.Name)] = c.Name
	if name := c.Spec.ExtendedResourceName; name != nil {
		v.resources[corev1.ResourceName(*name)] = c.Name
	}
}

// namedBy returns the claims that a pod refers to by name.
func namedBy(pod *corev1.Pod) sets.Set[string] {
	names := sets.New[string]()
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			names.Insert(*c.ResourceClaimName)
		}
	}
	return names
}

func noneAllocated() structured.AllocatedState {
	return structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
}

// addAllocated adds the devices of a claim. A device that is used with admin access is not taken.
func addAllocated(all *structured.AllocatedState, claim *resourceapi.ResourceClaim) {
	if claim.Status.Allocation == nil {
		return
	}
	for i := range claim.Status.Allocation.Devices.Results {
		r := &claim.Status.Allocation.Devices.Results[i]
		id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
		switch {
		case r.AdminAccess != nil && *r.AdminAccess:
		case r.ShareID == nil:
			all.AllocatedDevices.Insert(id)
		default:
			all.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
			if r.ConsumedCapacity != nil {
				all.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
			}
		}
	}
}
