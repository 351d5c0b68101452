// SPDX-License-Identifier: Apache-2.0

// Package endless has a loop that does not end without its break.
package endless

func Count(limit int) int {
	n := 0
	for {
		if n == limit {
			break
		}
		n++
	}
	return n
}
