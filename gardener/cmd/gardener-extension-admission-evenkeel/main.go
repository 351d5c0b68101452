// SPDX-License-Identifier: Apache-2.0

// Command gardener-extension-admission-evenkeel runs in the garden runtime cluster. It checks the
// providerConfig of Shoots with the extension evenkeel.
package main

import (
	"os"

	"github.com/evenkeel/evenkeel/gardener/cmd/gardener-extension-admission-evenkeel/app"
	"github.com/evenkeel/evenkeel/internal/daemon"
)

func main() { os.Exit(daemon.Main(app.Program())) }
