// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
)

// Folder of kubernetes/deploy: one part of the chart, with the values that show it.
type Folder struct {
	Name string
	// Values are set, as in helm's --set.
	Values []string
	// Templates of the chart that are shown.
	Templates []string
}

// Folders are all of them. No object is in two.
var Folders = []Folder{
	{"manager", nil, []string{"manager/process.yaml", "manager/roles.yaml", "metrics.yaml"}},
	{"gardener", []string{"gardener.enabled=true"}, []string{"manager/gardener.yaml"}},
	{"target", nil, []string{"target/roles.yaml"}},
	{"target-account", alone("targetAccess"), []string{"target/account.yaml"}},
	{"metrics-reader", nil, []string{"metrics-reader.yaml"}},
	{"balancer", alone("balancer"), []string{"balancer/process.yaml", "balancer/roles.yaml", "metrics.yaml"}},
	{"federation-hub", alone("federation.hub"), []string{"federation/hub-process.yaml", "federation/hub-roles.yaml", "metrics.yaml"}},
	{"federation-member", alone("federation.member"), []string{"federation/member.yaml"}},
}

func alone(part string) []string { return []string{"manager.enabled=false", part + ".enabled=true"} }

const heading = `# SPDX-License-Identifier: Apache-2.0
#
# Rendered from charts/evenkeel: make manifests.
`

// File is where the objects of a folder are, from the repository's root.
func (f Folder) File() string { return filepath.Join("kubernetes", "deploy", f.Name, "objects.yaml") }

// Render is what has to be in File.
func (f Folder) Render(ctx context.Context, t Tools) ([]byte, error) {
	var args []string
	for _, value := range f.Values {
		args = append(args, "--set", value)
	}
	for _, template := range f.Templates {
		args = append(args, "--show-only", "templates/"+template)
	}
	text, err := t.Template(ctx, args...)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", f.Name, err)
	}
	return append([]byte(heading), tidy(text)...), nil
}

// tidy drops the lines in which helm says where it has something from, and blank ones.
func tidy(text []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("# Source: ")) && len(bytes.TrimSpace(line)) > 0 {
			kept = append(kept, line...)
		}
	}
	return kept
}
