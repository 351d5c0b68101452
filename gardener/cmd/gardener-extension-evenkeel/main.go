// SPDX-License-Identifier: Apache-2.0

// Command gardener-extension-evenkeel runs in a seed. It replaces machine-controller-manager with
// Evenkeel in Shoots with the extension evenkeel.
package main

import (
	"os"

	"github.com/evenkeel/evenkeel/gardener/cmd/gardener-extension-evenkeel/app"
	"github.com/evenkeel/evenkeel/internal/daemon"
)

func main() { os.Exit(daemon.Main(app.Program())) }
