// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
)

// laboratory are the folders of what proves the product or builds it. No binary of the product contains them.
var laboratory = []string{"hack", "test"}

// strays finds what stands in the wrong room: what a binary contains of the laboratory, and what is in the product's
// folders although neither a binary nor a package for others needs it.
func strays() ([]string, error) {
	packages, err := output("go", "list", "./cmd/...", "./internal/...", "./pkg/...")
	if err != nil {
		return nil, err
	}
	shipped, err := output("go", append([]string{"list", "-deps"}, roots(packages)...)...)
	if err != nil {
		return nil, err
	}
	workloads, err := output("go", "list", "-deps", "./cmd/evenkeel-workloads")
	if err != nil {
		return nil, err
	}
	return append(misplaced(packages, shipped), strangers(workloads)...), nil
}

// strangers finds what the binary for workloads contains of machines.
func strangers(shipped []string) (wrong []string) {
	for _, p := range shipped {
		if strings.HasPrefix(p, "github.com/gardener/") || strings.HasPrefix(p, module+"pkg/apis/machine/") {
			wrong = append(wrong, p+" must not be in evenkeel-workloads, which knows nothing of machines")
		}
	}
	return wrong
}

// roots returns the packages that decide what ships: those of the binaries, and those that other modules may import.
func roots(packages []string) []string {
	return slices.DeleteFunc(slices.Clone(packages), func(p string) bool {
		inner := strings.TrimPrefix(p, module)
		return strings.Count(inner, "/") != 1 && strings.HasPrefix(inner, "cmd/") || slices.Contains(strings.Split(inner, "/"), "internal")
	})
}

// misplaced compares the packages in the product's folders with those that ship.
func misplaced(packages, shipped []string) []string {
	var wrong []string
	for _, p := range shipped {
		folder, _, _ := strings.Cut(strings.TrimPrefix(p, module), "/")
		if strings.HasPrefix(p, module) && slices.Contains(laboratory, folder) {
			wrong = append(wrong, p+" ships, but is for tests and developers")
		}
	}
	for _, p := range packages {
		if !slices.Contains(shipped, p) {
			wrong = append(wrong, p+" does not ship: what only tests use belongs in test")
		}
	}
	return wrong
}
