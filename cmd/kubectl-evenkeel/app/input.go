// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"io"
)

// input returns the standard input. Reading from it ends when ctx does. What reads the original goes
// on until that ends or the process does, because a read from a terminal cannot be canceled.
func (o *options) input(ctx context.Context) io.Reader {
	reader, writer := io.Pipe()
	context.AfterFunc(ctx, func() { _ = writer.CloseWithError(context.Cause(ctx)) })
	go func() {
		_, err := io.Copy(writer, o.In)
		_ = writer.CloseWithError(err)
	}()
	return reader
}
