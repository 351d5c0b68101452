// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"errors"
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/evenkeel/evenkeel/pkg/fit"
)

// features are the scheduler's default features.
var features = structured.Features{
	AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true, PartitionableDevices: true, PrioritizedList: true,
}

// Possible considers a node as if none of its own devices were allocated.
func (c *claims) Possible(node *corev1.Node) fit.Obstacle {
	node, _ = deviceNode(node)
	return c.choose(node, true, nil, math.MaxInt).Obstacle
}

// Allocate chooses devices on the node, as the scheduler would if those of it that are taken were
// allocated. It gives up before a part that costs more than a limit.
func (c *claims) Allocate(node *corev1.Node, taken []fit.Device, limit int) fit.Allocation {
	node, free := deviceNode(node)
	return c.choose(node, free, taken, limit)
}

func undecided(why string, work int) fit.Allocation {
	return fit.Allocation{Obstacle: fit.Undecided, Why: why, Work: work}
}

// unfinished gives up because of the caller's limit.
func unfinished(work int) fit.Allocation {
	return fit.Allocation{Obstacle: fit.Undecided, Why: errExhausted.Error(), Work: work, Unfinished: true}
}

// choose asks the allocator, unless the answer is known without it.
func (c *claims) choose(node *corev1.Node, free bool, taken []fit.Device, limit int) fit.Allocation {
	o := c.inventory.offerOf(node.Name)
	switch {
	case len(c.open) == 0:
		return fit.Allocation{Work: 1}
	case o.doubt != "":
		return undecided(o.doubt, 1)
	case c.least > o.devices-len(o.allocatedDevices(free))-len(taken) && !o.boundless:
		return o.tooFew(1)
	}
	evaluation, work, err := c.inventory.selectors.price(c.selectors, limit)
	if err != nil {
		return err.allocation(work)
	}
	work += perCall + perDevice*o.devices
	total := work + evaluation*len(c.selectors)*o.devices
	switch {
	case total > MaxWork:
		return undecided("its selectors cost too much for so many devices", work)
	case total > limit:
		return unfinished(work)
	}
	a := &allowance{left: min(MaxWork, limit) - work, step: perStep * (1 + o.devices), evaluation: evaluation}
	given := a.left
	results, failed := c.ask(a, node, o, o.allocatedDevices(free), taken)
	work += given - a.left
	if errors.Is(failed, errExhausted) && limit < MaxWork {
		return unfinished(work)
	}
	return c.judge(o, results, failed, work)
}

// ask calls the allocator.
func (c *claims) ask(a *allowance, node *corev1.Node, o *offer, allocated sets.Set[structured.DeviceID], taken []fit.Device) ([]resourceapi.AllocationResult, error) {
	state := c.inventory.allocated
	state.AllocatedDevices = allocated.Clone()
	for _, d := range taken {
		state.AllocatedDevices.Insert(idOf(d))
	}
	allocator, err := structured.NewAllocator(a, features, state, c.inventory.classes, o.slices, c.inventory.selectors.compiled)
	if err != nil {
		return nil, err
	}
	return allocator.Allocate(a, node, c.open)
}

// judge returns what the allocator's answer means.
func (c *claims) judge(o *offer, results []resourceapi.AllocationResult, err error, work int) fit.Allocation {
	switch {
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return o.tooFew(work)
	case err != nil:
		return undecided(err.Error(), work)
	case len(results) != len(c.open):
		return o.tooFew(work)
	}
	var devices []fit.Device
	for i := range results {
		for _, r := range results[i].Devices.Results {
			if c.inventory.odd.Has(structured.MakeDeviceID(r.Driver, r.Pool, r.Device)) {
				return undecided(fmt.Sprintf("device %s of pool %s is of a kind that is not decided here", r.Device, r.Pool), work)
			}
			devices = append(devices, fit.Device(r.Driver+"/"+r.Pool+"/"+r.Device))
		}
	}
	return fit.Allocation{Devices: devices, Work: work}
}

// idOf returns the identity of a device. Of the three names, only that of the pool may contain
// slashes.
func idOf(d fit.Device) structured.DeviceID {
	driver, rest, _ := strings.Cut(string(d), "/")
	i := strings.LastIndexByte(rest, '/')
	return structured.MakeDeviceID(driver, rest[:i], rest[i+1:])
}

// unpriced is why selectors are not evaluated.
type unpriced struct {
	why string
	// unfinished reports whether it is because of the caller's limit.
	unfinished bool
}

func (u *unpriced) allocation(work int) fit.Allocation {
	if u.unfinished {
		return unfinished(work)
	}
	return undecided(u.why, work)
}

// price compiles the selectors that are not known, and returns the most that one costs, and the work.
func (s *Selectors) price(expressions []string, limit int) (most, work int, _ *unpriced) {
	for _, expression := range expressions {
		e, known := s.known(expression)
		if !known {
			cost := perCompilation + perByte*len(expression)
			switch {
			case len(expression) > MaxSelectorBytes:
				return 0, work, &unpriced{why: "a selector is too long"}
			case work+cost > limit:
				return 0, work, &unpriced{unfinished: true}
			}
			e, work = s.compile(expression), work+cost
		}
		if e.err != nil {
			return 0, work, &unpriced{why: e.err.Error()}
		}
		most = max(most, e.cost)
	}
	return perEvaluation + most, work, nil
}

func (v *Inventory) offerOf(node string) *offer {
	if o, ok := v.offers[node]; ok {
		return o
	}
	return v.common
}

// allocatedDevices returns the devices that are allocated, or only those that are not of the node
// alone.
func (o *offer) allocatedDevices(free bool) sets.Set[structured.DeviceID] {
	if free {
		return o.shared
	}
	return o.allocated
}

// tooFew returns what it means that there are too few devices.
func (o *offer) tooFew(work int) fit.Allocation {
	if o.incomplete {
		return undecided(replacing, work)
	}
	return fit.Allocation{Obstacle: fit.NoDevices, Work: work}
}
