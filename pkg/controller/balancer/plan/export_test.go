// SPDX-License-Identifier: Apache-2.0

package plan

// What tests look at apart from the whole.
var (
	Invalid = invalid
	Limits  = transitionLimits
)
