// SPDX-License-Identifier: Apache-2.0

package devices

// Limits on what is read of the claims of one pod, whatever their author wrote, and of the classes
// that they name. Common claims stay far below them.
const (
	// MaxRequests is a number of requests, over all claims of a pod. Each alternative counts.
	MaxRequests = 32
	// MaxSelectors is a number of selectors, with those of classes.
	MaxSelectors = 64
	// MaxConstraints is a number of constraints.
	MaxConstraints = 16
	// MaxBytes is the size of all claims of a pod that are not allocated, in protobuf.
	MaxBytes = 8 << 10
	// MaxSelectorBytes is the size of one selector.
	MaxSelectorBytes = 1 << 10
	// MaxSelectorCost is the largest cost of a selector, in the units in which the API server
	// estimates it. It allows itself a hundred times as much.
	MaxSelectorCost = 10_000
	// MaxDevices is a number of devices that one node can use.
	MaxDevices = 512
	// MaxReserved is how many pods a claim can be reserved for.
	MaxReserved = 256
)

// MaxWork limits the work to choose devices on one node, in units of package fit. The choice is a
// search, and can be exponential.
const MaxWork = 256 << 10

// Costs of what the allocator does, in the same units, as the benchmark measures them.
const (
	// perCall is for each call, and perDevice for each device that a node can use.
	perCall   = 500
	perDevice = 12
	// perStep is for each device that a step of the search may look at.
	perStep = 12
	// perEvaluation is for each time that a selector is evaluated, beside its own cost.
	perEvaluation = 300
	// perCompilation is for each selector that is new, and perByte for each of its bytes.
	perCompilation = 15_000
	perByte        = 100
)
