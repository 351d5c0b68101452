// SPDX-License-Identifier: Apache-2.0

package devices

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// pool is a driver's pool of devices, as its newest slices describe it.
type pool struct {
	slices []*resourceapi.ResourceSlice
	// nodes have devices of their own in it.
	nodes sets.Set[string]
	// wide reports whether a part of it is not of one node alone.
	wide bool
	// incomplete reports whether a slice is missing, and torn whether slices disagree about their
	// number: then it depends on their order in the scheduler's cache.
	incomplete, torn bool
}

type poolID struct{ driver, name string }

// poolsOf returns the pools, each with the slices of its highest generation.
func poolsOf(all []*resourceapi.ResourceSlice) map[poolID]*pool {
	pools := map[poolID]*pool{}
	for _, s := range all {
		id := poolID{s.Spec.Driver, s.Spec.Pool.Name}
		p := pools[id]
		if p == nil || p.slices[0].Spec.Pool.Generation < s.Spec.Pool.Generation {
			p = &pool{}
			pools[id] = p
		}
		if len(p.slices) == 0 || p.slices[0].Spec.Pool.Generation == s.Spec.Pool.Generation {
			p.slices = append(p.slices, s)
		}
	}
	for _, p := range pools {
		p.survey()
	}
	return pools
}

// survey finds out whose devices a pool has.
func (p *pool) survey() {
	p.nodes = sets.New[string]()
	for _, s := range p.slices {
		if s.Spec.NodeName != nil && *s.Spec.NodeName != "" {
			p.nodes.Insert(*s.Spec.NodeName)
		} else {
			p.wide = true
		}
		p.incomplete = p.incomplete || s.Spec.Pool.ResourceSliceCount != int64(len(p.slices))
		p.torn = p.torn || s.Spec.Pool.ResourceSliceCount != p.slices[0].Spec.Pool.ResourceSliceCount
	}
}

// sharesCounters reports whether devices of several nodes use the same counters.
func (p *pool) sharesCounters() bool {
	if !p.wide && len(p.nodes) <= 1 {
		return false
	}
	for _, s := range p.slices {
		if len(s.Spec.SharedCounters) > 0 {
			return true
		}
	}
	return false
}

// isOdd reports whether nothing is decided about the use of a device.
func isOdd(d *resourceapi.Device) bool {
	return isShared(d) || len(d.BindingConditions)+len(d.BindingFailureConditions) > 0 || d.BindsToNode != nil && *d.BindsToNode ||
		len(d.NodeAllocatableResourceMappings) > 0
}

// isShared reports whether several claims can have a part of a device.
func isShared(d *resourceapi.Device) bool {
	return d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
}

// listsValues reports whether a device has a list as an attribute, which depends on a feature of the
// scheduler.
func listsValues(d *resourceapi.Device) bool {
	for _, a := range d.Attributes {
		if len(a.IntValues)+len(a.BoolValues)+len(a.StringValues)+len(a.VersionValues) > 0 {
			return true
		}
	}
	return false
}

// replacing is why nothing is decided while a driver replaces slices.
const replacing = "a driver is replacing the devices of the node"

// offer is what one node can use.
type offer struct {
	// slices are those of all pools that have a device for the node.
	slices []*resourceapi.ResourceSlice
	// allocated are the devices of them that claims have; shared are those of them that are not of
	// this node alone.
	allocated, shared sets.Set[structured.DeviceID]
	// devices is how many there are.
	devices int
	// boundless reports whether one of them can be allocated any number of times.
	boundless bool
	// incomplete reports whether a slice is missing.
	incomplete bool
	// doubt is why nothing is decided about the node; empty if it is.
	doubt string
}

// addPools makes the offers. What every node may use is part of each.
func (v *Inventory) addPools(pools map[poolID]*pool) {
	v.common, v.offers = newOffer(), map[string]*offer{}
	for id, p := range pools {
		if p.wide {
			v.common.add(v, id, p, "")
			v.common.shared = v.common.allocated
		}
	}
	for id, p := range pools {
		for node := range p.nodes {
			if v.offers[node] == nil {
				v.offers[node] = v.common.clone()
			}
			if !p.wide {
				v.offers[node].add(v, id, p, node)
			}
		}
	}
	for _, o := range v.offers {
		o.limit()
	}
	v.common.limit()
}

func newOffer() *offer {
	none := sets.New[structured.DeviceID]()
	return &offer{allocated: none, shared: none}
}

func (o *offer) clone() *offer {
	c := *o
	c.slices, c.allocated = append(c.slices[:0:0], c.slices...), c.allocated.Clone()
	return &c
}

// add adds a pool to what a node can use; the node is empty for a pool that is not of some nodes
// alone.
func (o *offer) add(v *Inventory, id poolID, p *pool, node string) {
	o.incomplete = o.incomplete || p.incomplete
	if p.torn {
		o.doubt = replacing
	}
	odd := p.sharesCounters()
	for _, s := range p.slices {
		o.slices = append(o.slices, s)
		if node != "" && *s.Spec.NodeName != node {
			continue
		}
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			device := structured.MakeDeviceID(id.driver, id.name, d.Name)
			o.devices++
			o.boundless = o.boundless || isShared(d)
			if listsValues(d) {
				o.doubt = "a device of the node lists values"
			}
			if odd || node == "" || isOdd(d) {
				v.odd.Insert(device)
			}
			if v.allocated.AllocatedDevices.Has(device) {
				o.allocated.Insert(device)
			}
		}
	}
}

func (o *offer) limit() {
	if o.devices > MaxDevices {
		o.doubt = "the node can use too many devices"
	}
}
