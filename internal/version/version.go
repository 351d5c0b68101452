// SPDX-License-Identifier: Apache-2.0

// Package version reports what a binary was built from.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// stamp is the version of a release. The linker sets it if the sources have no history, as in an
// image:
//
//	go build -ldflags="-X github.com/evenkeel/evenkeel/internal/version.stamp=v0.1.0"
//
// Otherwise, the compiler records it from the history.
var stamp string

// library is the module whose controllers our daemons run.
const library = "github.com/gardener/machine-controller-manager"

// Line returns the version of one of our binaries on one line.
func Line(binary string) string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "evenkeel " + binary + " " + cmp.Or(stamp, "of unknown version")
	}
	with := ""
	if version := dependency(build, library); version != "" {
		with = ", with machine-controller-manager " + version
	}
	return fmt.Sprintf("evenkeel %s %s%s%s, %s %s/%s",
		binary, Short(), revision(build), with, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Short returns only the version.
func Short() string {
	if build, ok := debug.ReadBuildInfo(); ok {
		return cmp.Or(stamp, build.Main.Version, "unknown")
	}
	return cmp.Or(stamp, "unknown")
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
	return ""
}
