// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"slices"
)

// sortGeneric sorts the kinds of the generic informers. informer-gen leaves those of groups with the same
// name in no order.
func sortGeneric(staged string) error {
	file := filepath.Join(staged, "pkg/client/informers/externalversions/generic.go")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const group = "// Group="
	before, rest, begins := bytes.Cut(text, []byte(group))
	cases, after, ends := bytes.Cut(rest, []byte("\n\n\t}\n"))
	if !begins || !ends {
		return fmt.Errorf("%s has no kinds", file)
	}
	blocks := bytes.Split(cases, []byte(group))
	for i := range blocks {
		blocks[i] = bytes.TrimSpace(blocks[i])
	}
	slices.SortFunc(blocks, bytes.Compare)
	sorted := slices.Concat(before, []byte(group), bytes.Join(blocks, []byte("\n\n"+group)), []byte("\n\n\t}\n"), after)
	if sorted, err = format.Source(sorted); err != nil {
		return fmt.Errorf("format %s: %w", file, err)
	}
	return os.WriteFile(file, sorted, 0o644)
}
