// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// library whose controllers our daemons run.
const library = "github.com/gardener/machine-controller-manager"

// Version of one of our binaries, on one line, for people.
func Version(binary string) string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "evenkeel " + binary + ", unknown build"
	}
	return fmt.Sprintf("evenkeel %s %s%s, with machine-controller-manager %s, %s %s/%s",
		binary, build.Main.Version, revision(build), dependency(build, library), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func revision(build *debug.BuildInfo) string {
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) > 12 {
			return " (" + setting.Value[:12] + ")"
		}
	}
	return ""
}

func dependency(build *debug.BuildInfo, path string) string {
	for _, module := range build.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return "of unknown version"
}
