// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/evenkeel/evenkeel/"

// source is one Go file, by its path from the repository's root with slashes.
type source struct {
	path    string
	content []byte
	parsed  *ast.File
}

// rule returns the violations in a file, in a few words each.
type rule func(source) []string

var rules = []rule{licensed, pureImports, layered, clockless, neverExits, documented}

// violations checks all Go files of the main module below root.
func violations(root string) ([]string, error) {
	var wrong []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skipped(root, path) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		s, err := readSource(root, path)
		if err != nil {
			return err
		}
		for _, r := range rules {
			for _, what := range r(s) {
				wrong = append(wrong, s.path+": "+what)
			}
		}
		return nil
	})
	return wrong, err
}

// skipped reports whether a folder is hidden, contains test data, or is another module.
func skipped(root, path string) bool {
	if path == root {
		return false
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil || strings.HasPrefix(filepath.Base(path), ".") || filepath.Base(path) == "testdata"
}

func readSource(root, path string) (source, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return source{}, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), path, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	relative, err := filepath.Rel(root, path)
	return source{filepath.ToSlash(relative), content, parsed}, err
}

func (s source) inFolders(folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(s.path, f+"/") })
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// purePackages only decide.
var purePackages = []string{
	"pkg/distribute", "pkg/fit", "pkg/pool", "pkg/reserve", "pkg/schedule", "pkg/similar", "pkg/controller/machinetaint", "internal/overview", "internal/sizing",
}

// decides reports whether a file makes decisions: those of the pure packages, and of the package
// plan of a controller or provider. Such a file must be pure.
func (s source) decides() bool {
	parts := strings.Split(s.path, "/")
	switch {
	case s.isTest():
		return false
	case s.inFolders(purePackages...):
		return true
	case len(parts) != 5 || parts[0] != "pkg":
		return false
	}
	return (parts[1] == "controller" || parts[1] == "provider") && parts[3] == "plan"
}

func (s source) imports() []string {
	var paths []string
	for _, i := range s.parsed.Imports {
		if path, err := strconv.Unquote(i.Path.Value); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// usedFunctions returns the functions of other packages that a file names, as package.Function.
func (s source) usedFunctions() []string {
	var names []string
	ast.Inspect(s.parsed, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := selector.X.(*ast.Ident); ok {
				names = append(names, pkg.Name+"."+selector.Sel.Name)
			}
		}
		return true
	})
	return names
}

func licensed(s source) []string {
	const line = "// SPDX-License-Identifier: Apache-2.0\n"
	if bytes.HasPrefix(s.content, []byte(line)) || bytes.HasPrefix(s.content, []byte("//go:build")) && bytes.Contains(s.content, []byte("\n"+line)) {
		return nil
	}
	return []string{"first line must be " + strings.TrimSpace(line)}
}

// effects are packages that read or change something outside the process, or that depend on chance.
var effects = []string{
	"context", "crypto/rand", "k8s.io/client-go", "k8s.io/klog", "log", "math/rand", "net", "os", "runtime", "sync", "syscall", module + "pkg/client",
}

// clocks are functions whose result depends on when they are called.
var clocks = []string{
	"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc", "time.NewTicker", "time.NewTimer", "time.Tick",
}

func pureImports(s source) []string {
	if !s.decides() {
		return nil
	}
	var wrong []string
	for _, path := range s.imports() {
		for _, effect := range effects {
			if path == effect || strings.HasPrefix(path, effect+"/") {
				wrong = append(wrong, "a decision is pure and must not import "+path)
			}
		}
	}
	return wrong
}

// floors are the layers of the code, lowest first. A package imports only from its own layer and
// from lower ones.
var floors = [][]string{
	{"pkg/apis"},
	{"pkg/client"},
	{"pkg/distribute", "pkg/fit", "pkg/schedule", "pkg/similar", "pkg/reserve", "pkg/pool", "pkg/written"},
	{"pkg/provider", "pkg/controller", "internal"},
	{"cmd"},
	{"hack", "test"},
}

func layerOf(path string) int {
	return slices.IndexFunc(floors, func(folders []string) bool {
		return slices.ContainsFunc(folders, func(f string) bool { return path == f || strings.HasPrefix(path, f+"/") })
	})
}

func layered(s source) []string {
	if s.isTest() {
		return nil
	}
	var wrong []string
	for _, path := range s.imports() {
		inner, ours := strings.CutPrefix(path, module)
		if !ours {
			continue
		}
		if layerOf(inner) > layerOf(s.path) {
			wrong = append(wrong, fmt.Sprintf("imports point down, not up to %s", inner))
		}
		if a, b := controllerOf(s.path), controllerOf(inner); a != "" && b != "" && a != b && b != "internal" && !slices.Contains(purePackages, inner) {
			wrong = append(wrong, fmt.Sprintf("controller %s must not import controller %s", a, b))
		}
	}
	return wrong
}

func controllerOf(path string) string {
	rest, ok := strings.CutPrefix(path, "pkg/controller/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

func clockless(s source) []string {
	if !s.decides() {
		return nil
	}
	var wrong []string
	for _, name := range s.usedFunctions() {
		if slices.Contains(clocks, name) {
			wrong = append(wrong, "a decision has no clock: "+name)
		}
	}
	return wrong
}

func neverExits(s source) []string {
	if s.isTest() || s.parsed.Name.Name == "main" {
		return nil
	}
	var wrong []string
	for _, name := range s.usedFunctions() {
		if name == "os.Exit" || strings.HasPrefix(name, "klog.Fatal") || strings.HasPrefix(name, "log.Fatal") || strings.HasPrefix(name, "klog.Exit") {
			wrong = append(wrong, "only main ends the process: "+name)
		}
	}
	return wrong
}
