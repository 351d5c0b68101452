// SPDX-License-Identifier: Apache-2.0

// Command sbom writes a bill of materials (CycloneDX, JSON) with all modules of each binary,
// without licenses. The same binary has the same bill, byte by byte.
//
//	go run ./hack/sbom -out .local/sbom -version v1.2.3 .local/bin/machine-controller-manager
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

func main() {
	version := flag.String("version", "", "version of the binaries, where they were built without their history")
	out := flag.String("out", ".local/sbom", "folder to write to")
	flag.Parse()
	if err := run(flag.Args(), *version, *out); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(binaries []string, version, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	for _, binary := range binaries {
		build, err := buildinfo.ReadFile(binary)
		if err != nil {
			return fmt.Errorf("read modules: %w", err)
		}
		name := filepath.Base(binary)
		text, err := json.MarshalIndent(billOf(name, version, build), "", "  ")
		if err != nil {
			return fmt.Errorf("encode bill of %s: %w", name, err)
		}
		path := filepath.Join(out, name+".cdx.json")
		if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
			return fmt.Errorf("write bill of %s: %w", name, err)
		}
		fmt.Println(path)
	}
	return nil
}

// bill is the part of CycloneDX that is used here.
type bill struct {
	BOMFormat    string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"` // of the bill
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// billOf a binary. A version that is given beats the one that the compiler knows.
func billOf(name, version string, build *debug.BuildInfo) bill {
	self := library(build.Main.Path, cmp.Or(version, build.Main.Version))
	self.Type, self.Name = "application", name
	self.PURL += "#" + strings.TrimPrefix(build.Path, build.Main.Path+"/")
	self.Ref = self.PURL
	self.Properties = settings(build)
	b := bill{BOMFormat: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{self}}
	b.Components = []component{library("stdlib", strings.TrimPrefix(build.GoVersion, "go"))}
	for _, module := range build.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		c := library(module.Path, module.Version)
		if module.Sum != "" {
			c.Properties = []property{{"go.sum", module.Sum}}
		}
		b.Components = append(b.Components, c)
	}
	all := dependency{Ref: self.Ref}
	for _, c := range b.Components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{all}
	return b
}

// library is a module by its package URL, by which those who know about faults find it.
func library(path, version string) component {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
}

// settings are what the compiler was told of the platform and the history.
func settings(build *debug.BuildInfo) []property {
	var all []property
	for _, s := range build.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "vcs.revision", "vcs.modified":
			all = append(all, property{s.Key, s.Value})
		}
	}
	return all
}
