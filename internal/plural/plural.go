// SPDX-License-Identifier: Apache-2.0

// Package plural formats a number with its noun.
package plural

import "fmt"

// Of returns a number with its noun: 1 machine, 2 machines. The plural of the noun must end in s.
func Of(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
