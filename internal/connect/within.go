// SPDX-License-Identifier: Apache-2.0

package connect

import "context"

// Within calls a function that takes no context, such as client-go's discovery, and returns when
// ctx ends: client-go repeats a request for as long as the server tells it to. The abandoned
// call goes on in the background until it ends.
func Within[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	type reply struct {
		value T
		err   error
	}
	replies := make(chan reply, 1)
	go func() {
		value, err := ask()
		replies <- reply{value, err}
	}()
	select {
	case r := <-replies:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
