// SPDX-License-Identifier: Apache-2.0

package overview

import "maps"

// Remedied are the reasons that something can be done about.
func Remedied() []string {
	var all []string
	for reason := range maps.Keys(remedies) {
		all = append(all, reason)
	}
	return all
}
