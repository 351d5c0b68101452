// SPDX-License-Identifier: Apache-2.0

// Command gardener-extension-evenkeel runs in a seed. It has Shoots with the extension evenkeel run
// Evenkeel in place of machine-controller-manager, with the reserves that their providerConfig
// requests.
package main

import (
	"os"

	"github.com/evenkeel/evenkeel/gardener/cmd/gardener-extension-evenkeel/app"
	"github.com/evenkeel/evenkeel/internal/daemon"
)

func main() { os.Exit(daemon.Main(app.Program())) }
