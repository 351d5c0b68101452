// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
)

// Part of the chart: a file in a folder of kubernetes/deploy, and the values that render it.
type Part struct {
	Folder, Name string
	// Values are set, as by helm's --set.
	Values []string
	// Templates of the chart to render.
	Templates []string
}

// Parts lists all of them. Access contains accounts and their rights; a process contains what runs
// and what protects it. No object is in two parts.
var Parts = []Part{
	{"manager", "access", nil, []string{"manager/account.yaml", "manager/roles.yaml", "manager/metrics.yaml"}},
	{"manager", "process", nil, []string{"manager/process.yaml"}},
	{"gardener", "access", []string{"gardener.enabled=true"}, []string{"manager/gardener.yaml"}},
	{"preparation", "access", []string{"manager.controllers={preparation}"}, []string{"manager/preparation.yaml", "target/preparation.yaml"}},
	{"booking", "access", []string{"manager.controllers={booking}"}, []string{"manager/booking.yaml", "target/booking.yaml"}},
	{"target", "access", nil, []string{"target/roles.yaml"}},
	{"target-account", "access", onlyPart("targetAccess"), []string{"target/account.yaml"}},
	{"metrics-reader", "access", nil, []string{"metrics-reader.yaml"}},
	{"balancer", "access", onlyPart("balancer"), []string{"balancer/account.yaml", "balancer/roles.yaml", "balancer/metrics.yaml"}},
	{"balancer", "process", onlyPart("balancer"), []string{"balancer/process.yaml"}},
	{"federation-hub", "access", onlyPart("federation.hub"), []string{"federation/hub-account.yaml", "federation/hub-roles.yaml", "federation/hub-metrics.yaml"}},
	{"federation-hub", "process", onlyPart("federation.hub"), []string{"federation/hub-process.yaml"}},
	{"federation-hub", "policy", onlyPart("federation.hub"), []string{"federation/hub-policy.yaml"}},
	{"federation-member", "access", onlyPart("federation.member"), []string{"federation/member.yaml"}},
	{"federation-placement", "access", append(onlyPart("federation.member"), "federation.member.placement=true", "federation.member.namespaces={default}"), []string{"federation/member-placement.yaml"}},
}

func onlyPart(part string) []string { return []string{"manager.enabled=false", part + ".enabled=true"} }

const heading = `# SPDX-License-Identifier: Apache-2.0
#
# Rendered from charts/evenkeel: make manifests.
`

// File is the path of the part's objects, from the root of the repository.
func (p Part) File() string { return filepath.Join("kubernetes", "deploy", p.Folder, p.Name+".yaml") }

// Render returns the required content of File.
func (p Part) Render(ctx context.Context, t Tools) ([]byte, error) {
	var args []string
	for _, value := range p.Values {
		args = append(args, "--set", value)
	}
	for _, template := range p.Templates {
		args = append(args, "--show-only", "templates/"+template)
	}
	text, err := t.Template(ctx, args...)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", p.File(), err)
	}
	return append([]byte(heading), removeNoise(text)...), nil
}

// removeNoise removes blank lines, and helm's lines with the source of an object.
func removeNoise(text []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("# Source: ")) && len(bytes.TrimSpace(line)) > 0 {
			kept = append(kept, line...)
		}
	}
	return kept
}
