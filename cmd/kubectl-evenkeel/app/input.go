// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"io"
)

// interruptibleInput returns the standard input. Reading from it ends when ctx does. The goroutine that
// reads the original continues until its end or that of the process, because a read from a terminal
// cannot be canceled.
func (o *options) interruptibleInput(ctx context.Context) io.Reader {
	reader, writer := io.Pipe()
	context.AfterFunc(ctx, func() { _ = writer.CloseWithError(context.Cause(ctx)) })
	go func() {
		_, err := io.Copy(writer, o.In)
		_ = writer.CloseWithError(err)
	}()
	return reader
}
