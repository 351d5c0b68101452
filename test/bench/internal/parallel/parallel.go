// SPDX-License-Identifier: Apache-2.0

// Package parallel has benchmarks do many things at the same time.
package parallel

import (
	"errors"
	"sync"
)

// Each does something for 0 to n-1, for width of them at the same time, and joins what went wrong.
func Each(n, width int, do func(i int) error) error {
	numbers, errs := make(chan int), make([]error, n)
	var working sync.WaitGroup
	for range min(n, width) {
		working.Go(func() {
			for i := range numbers {
				errs[i] = do(i)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	working.Wait()
	return errors.Join(errs...)
}
