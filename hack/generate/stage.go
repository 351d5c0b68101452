// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// stage lays a copy of the API sources, as a module of its own, into folder.
func stage(folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		if err := takeFile(filepath.Join(folder, name), name); err != nil {
			return err
		}
	}
	if err := takeFile(filepath.Join(folder, "header.txt"), "hack/generate/header.txt"); err != nil {
		return err
	}
	return filepath.WalkDir(apis, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		return takeFile(filepath.Join(folder, path), path)
	})
}

func takeFile(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return writeFile(to, content)
}

// writeFile writes a file, and makes its folder.
func writeFile(to string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// takeFolder makes to equal to from: what is only in to is removed.
func takeFolder(to, from string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return takeFile(filepath.Join(to, relative), path)
	})
}
