// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"sync"
)

// Together runs all functions concurrently. As soon as one of them returns, with or without an
// error, the context of the others ends. Together returns when all have returned, with their errors
// joined. It is no error that a function was told to stop.
func Together(ctx context.Context, functions ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(functions))
	var running sync.WaitGroup
	for i, function := range functions {
		running.Go(func() {
			defer cancel()
			if err := function(ctx); !errors.Is(err, context.Canceled) {
				errs[i] = err
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
