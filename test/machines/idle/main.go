// SPDX-License-Identifier: Apache-2.0

// Command idle does nothing until it is told to stop. The images of real machines run it.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
}
