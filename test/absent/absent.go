// SPDX-License-Identifier: Apache-2.0

// Package absent keeps track of tools that specs can do without. If a tool is missing, its specs
// pass without a verdict, and `make test` says so.
package absent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Folder is the path, from the root of the repository, of the folder with one file for each tool
// that was missing when its specs last ran.
const Folder = ".local/absent"

// Tool finds a tool by one of its names, and records under the first name whether it exists. The
// root is that of the repository.
func Tool(root string, names ...string) (path string, found bool, err error) {
	note := filepath.Join(root, Folder, names[0])
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			if err := os.Remove(note); err != nil && !os.IsNotExist(err) {
				return "", false, fmt.Errorf("forget that %s was missing: %w", names[0], err)
			}
			return path, true, nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(note), 0o755); err != nil {
		return "", false, fmt.Errorf("note that %s is missing: %w", names[0], err)
	}
	if err := os.WriteFile(note, nil, 0o600); err != nil {
		return "", false, fmt.Errorf("note that %s is missing: %w", names[0], err)
	}
	return "", false, nil
}

// Noted returns the tools that were missing.
func Noted(root string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(root, Folder))
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("read which tools were missing: %w", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}
