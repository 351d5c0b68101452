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
		if err := writeFile(filepath.Join(out, path), []byte(page)); err != nil {
			return err
		}
	}
	return nil
}
