// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// fastAtLeast is how long the fast specs of a package may take together, whatever all take.
const fastAtLeast = 3 * time.Second

// spec is one spec of a report of Ginkgo.
type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	RunTime                 time.Duration
}

// slowSpecs returns a pattern of those specs without which a run takes an eighth of its time, or ""
// if a run is short anyhow.
func slowSpecs(report string) string {
	var suites []struct{ SpecReports []spec }
	text, err := os.ReadFile(report)
	if err != nil || json.Unmarshal(text, &suites) != nil {
		return ""
	}
	var specs []spec
	var all time.Duration
	for _, suite := range suites {
		for _, s := range suite.SpecReports {
			if s.LeafNodeType == "It" {
				specs, all = append(specs, s), all+s.RunTime
			}
		}
	}
	slices.SortFunc(specs, func(a, b spec) int { return cmp.Compare(a.RunTime, b.RunTime) })
	var fast time.Duration
	var slow []string
	for _, s := range specs {
		if fast += s.RunTime; fast > max(fastAtLeast, all/8) {
			slow = append(slow, regexp.QuoteMeta(strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")))
		}
	}
	return strings.Join(slow, "|")
}
