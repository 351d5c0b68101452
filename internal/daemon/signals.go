// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals returns a context that ends with the first SIGTERM or interrupt. A second one ends the
// process at once.
func Signals() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	told := make(chan os.Signal, 1)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-told
		signal.Stop(told) // first, so that no signal is lost after ctx has ended
		cancel()
	}()
	return ctx
}
