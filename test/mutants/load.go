// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Package is a package with its types.
type Package struct {
	Path   string
	Name   string
	Dir    string
	Ginkgo bool
	// Rapid reports whether the tests draw their inputs. They then note what failed, and look for the
	// smallest input that does: both is of no use here.
	Rapid bool

	fset    *token.FileSet
	files   []*ast.File
	sources map[string][]byte // by file name, as in fset
	types   *types.Package
	info    *types.Info
}

type listed struct {
	ImportPath, Name, Dir, Export string
	GoFiles                       []string
	TestImports, XTestImports     []string
	DepOnly                       bool
	Error                         *struct{ Err string }
}

// Load reads the package that pattern names, as the go command in dir understands it.
func Load(dir, pattern string) (*Package, error) {
	all, err := list(dir, pattern)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	var root *listed
	for i := range all {
		exports[all[i].ImportPath] = all[i].Export
		if !all[i].DepOnly {
			root = &all[i]
		}
	}
	if root == nil || len(root.GoFiles) == 0 {
		return nil, fmt.Errorf("no Go files match %s", pattern)
	}
	p := &Package{Path: root.ImportPath, Name: root.Name, Dir: root.Dir, fset: token.NewFileSet(), sources: map[string][]byte{}}
	for _, path := range append(root.TestImports, root.XTestImports...) {
		p.Ginkgo = p.Ginkgo || strings.HasPrefix(path, "github.com/onsi/ginkgo")
		p.Rapid = p.Rapid || path == "pgregory.net/rapid"
	}
	if err := p.parse(root.GoFiles); err != nil {
		return nil, err
	}
	return p, p.check(exports)
}

func list(dir, pattern string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Name,Dir,Export,GoFiles,TestImports,XTestImports,DepOnly,Error", pattern)
	cmd.Dir = dir
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w\n%s", pattern, err, problems.String())
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var one listed
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("list %s: %w", pattern, err)
		}
		all = append(all, one)
	}
}

// parse leaves generated files alone.
func (p *Package) parse(names []string) error {
	for _, name := range names {
		path := filepath.Join(p.Dir, name)
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(p.fset, path, source, parser.ParseComments)
		if err != nil {
			return err
		}
		p.files = append(p.files, file)
		p.sources[path] = source
	}
	return nil
}

func (p *Package) check(exports map[string]string) error {
	p.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	open := func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(exports[path])
	}
	config := types.Config{Importer: importer.ForCompiler(p.fset, "gc", open)}
	var err error
	p.types, err = config.Check(p.Path, p.fset, p.files, p.info)
	return err
}
