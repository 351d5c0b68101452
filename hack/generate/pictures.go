// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/evenkeel/evenkeel/hack/pictures"
)

// generatePictures draws the pictures of the documents from their texts.
func generatePictures(out string) error {
	texts, err := filepath.Glob("docs/pictures/*.txt")
	if err != nil {
		return err
	}
	for _, name := range texts {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		svg, err := pictures.Render(string(text))
		if err != nil {
			return fmt.Errorf("draw %s: %w", name, err)
		}
		if err := writeFile(filepath.Join(out, strings.TrimSuffix(name, ".txt")+".svg"), svg); err != nil {
			return err
		}
	}
	return nil
}
