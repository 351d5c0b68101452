// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
)

// builtTogether are the modules that a first start builds. What they share is compiled once if its
// versions are the same, and otherwise once for each version, which takes minutes.
var builtTogether = []string{".", "hack/localcluster", "hack/localcluster/kwok"}

// goMod is what go mod edit -json prints, as far as it is used.
type goMod struct {
	Require []struct{ Path, Version string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

// differingVersions returns the modules that a first start would build in more than one version.
func differingVersions() ([]string, error) {
	all := map[string]goMod{}
	for _, folder := range builtTogether {
		command := exec.Command("go", "mod", "edit", "-json")
		command.Dir = folder
		text, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("read go.mod of %s: %w", folder, err)
		}
		var m goMod
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, fmt.Errorf("parse go.mod of %s: %w", folder, err)
		}
		all[folder] = m
	}
	return compareVersions(all), nil
}

// compareVersions compares every module with the one of the first folder that has it.
func compareVersions(all map[string]goMod) (wrong []string) {
	type used struct{ folder, version string }
	first := map[string]used{}
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		for path, version := range all[folder].versions() {
			switch known := first[path]; known.version {
			case "":
				first[path] = used{folder, version}
			case version:
			default:
				wrong = append(wrong, fmt.Sprintf("%s: %s in %s, %s in %s", path, known.version, known.folder, version, folder))
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

// versions returns the version of each module that is required, as it is built.
func (m goMod) versions() map[string]string {
	all := map[string]string{}
	for _, r := range m.Require {
		all[r.Path] = r.Version
	}
	for _, r := range m.Replace {
		if _, required := all[r.Old.Path]; required {
			all[r.Old.Path] = cmp.Or(r.New.Version, r.New.Path)
		}
	}
	return all
}
