// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/evenkeel/evenkeel/pkg/apis/reason"
)

// generateReasons writes the tables of reasons into the pages that explain conditions.
func generateReasons(out string) error {
	for path := range reason.Pages {
		old, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read page: %w", err)
		}
		page, err := reason.Render(path, string(old))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		to := filepath.Join(out, path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		if err := os.WriteFile(to, []byte(page), 0o644); err != nil {
			return fmt.Errorf("write page: %w", err)
		}
	}
	return nil
}
