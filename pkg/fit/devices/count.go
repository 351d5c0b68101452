// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"math"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// Lookups find what decides how many devices a node has.
type Lookups struct {
	// OnNode returns the slices of a node, and OfPool all slices of a driver's pool.
	OnNode func(node string) []*resourceapi.ResourceSlice
	OfPool func(driver, pool string) []*resourceapi.ResourceSlice
	// Class returns a class, nil if it does not exist.
	Class func(name string) *resourceapi.DeviceClass
}

// Count returns how many devices of a class a node has of its own, whoever uses them: those in the
// newest complete generation of each pool that the selectors of the class match, and that each go to a
// claim as a whole. unknown is why there are none, or why their number is not known; it does not name
// the node.
func (s *Selectors) Count(l Lookups, node, class string) (n int, unknown string) {
	c := l.Class(class)
	if c == nil {
		return 0, fmt.Sprintf("DeviceClass %s does not exist", class)
	}
	own, complete := l.devicesOf(node)
	switch {
	case !complete:
		return 0, replacing
	case len(own) > MaxDevices:
		return 0, fmt.Sprintf("a Node has more than %d devices", MaxDevices)
	}
	expressions, known := expressionsOf(c)
	if !known {
		return 0, fmt.Sprintf("DeviceClass %s has a selector that is not known here", class)
	}
	cost, _, err := s.price(expressions, math.MaxInt)
	switch {
	case err != nil:
		return 0, fmt.Sprintf("DeviceClass %s: %s", class, err.why)
	case cost*len(expressions)*len(own) > MaxWork:
		return 0, fmt.Sprintf("DeviceClass %s: its selectors cost too much for so many devices", class)
	}
	return s.countOf(own, c, expressions)
}

// owned is a device of a node.
type owned struct {
	*resourceapi.Device
	driver string
}

// devicesOf returns the devices that a node has of its own. complete reports whether all slices of each
// of its pools are there.
func (l Lookups) devicesOf(node string) (own []owned, complete bool) {
	seen := map[poolID]bool{}
	for _, s := range l.OnNode(node) {
		id := poolID{s.Spec.Driver, s.Spec.Pool.Name}
		if seen[id] {
			continue
		}
		seen[id] = true
		newest := newestComplete(l.OfPool(id.driver, id.name))
		if newest == nil {
			return nil, false
		}
		for _, s := range newest {
			if s.Spec.NodeName == nil || *s.Spec.NodeName != node {
				continue
			}
			for i := range s.Spec.Devices {
				own = append(own, owned{&s.Spec.Devices[i], id.driver})
			}
		}
	}
	return own, true
}

// newestComplete returns the slices of the highest generation of a pool of which none is missing; nil if
// there is none.
func newestComplete(all []*resourceapi.ResourceSlice) []*resourceapi.ResourceSlice {
	generations := map[int64][]*resourceapi.ResourceSlice{}
	for _, s := range all {
		generations[s.Spec.Pool.Generation] = append(generations[s.Spec.Pool.Generation], s)
	}
	var newest []*resourceapi.ResourceSlice
	for generation, of := range generations {
		missing := slices.ContainsFunc(of, func(s *resourceapi.ResourceSlice) bool { return s.Spec.Pool.ResourceSliceCount != int64(len(of)) })
		if !missing && (newest == nil || newest[0].Spec.Pool.Generation < generation) {
			newest = of
		}
	}
	return newest
}

// expressionsOf returns the selectors of a class, and whether they are all known.
func expressionsOf(c *resourceapi.DeviceClass) (all []string, known bool) {
	for _, s := range c.Spec.Selectors {
		if s.CEL == nil {
			return nil, false
		}
		all = append(all, s.CEL.Expression)
	}
	return all, true
}

func (s *Selectors) countOf(own []owned, c *resourceapi.DeviceClass, expressions []string) (n int, unknown string) {
	tainted, parts := 0, 0
	for _, d := range own {
		matches, err := s.match(d, expressions)
		switch {
		case err != nil:
			return 0, fmt.Sprintf("a selector of DeviceClass %s fails for a device of driver %s: %v", c.Name, d.driver, err)
		case !matches:
		case isTainted(d.Device):
			tainted++
		case isOdd(d.Device) || len(d.ConsumesCounters) > 0 || listsValues(d.Device):
			parts++
		default:
			n++
		}
	}
	switch {
	case n > 0:
		return n, ""
	case parts > 0:
		return 0, fmt.Sprintf("the devices of DeviceClass %s cannot be counted: several claims can share one, or it is a part of another one, or has conditions or lists of values", c.Name)
	case tainted > 0:
		return 0, fmt.Sprintf("all devices of DeviceClass %s have taints", c.Name)
	}
	return 0, fmt.Sprintf("its Nodes have no devices of DeviceClass %s in ResourceSlices", c.Name)
}

// match reports whether all selectors match a device. They have compiled already.
func (s *Selectors) match(d owned, expressions []string) (bool, error) {
	input := cel.Device{Driver: d.driver, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity}
	for _, expression := range expressions {
		compiled := s.compiled.GetOrCompile(expression)
		if matches, _, err := compiled.DeviceMatches(&allowance{left: math.MaxInt}, input); err != nil || !matches {
			return false, err
		}
	}
	return true, nil
}

// isTainted reports whether a device goes only to claims that tolerate a taint.
func isTainted(d *resourceapi.Device) bool {
	return slices.ContainsFunc(d.Taints, func(t resourceapi.DeviceTaint) bool {
		return t.Effect == resourceapi.DeviceTaintEffectNoSchedule || t.Effect == resourceapi.DeviceTaintEffectNoExecute
	})
}
