// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"maps"
	"slices"
)

// Reasons are those that have a meaning.
func Reasons() []string { return slices.Sorted(maps.Keys(meanings)) }

// Place is a rank for people.
var Place = place
