// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// simplifyFake takes NewClientset out of the fake clientset. It would track fields, for which the
// generator wants an OpenAPI schema that this project does not have, and would fail at the first
// object. NewSimpleClientset remains.
func simplifyFake(staged string) error {
	file := filepath.Join(staged, "pkg/client/clientset/versioned/fake/clientset_generated.go")
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, part := range []struct{ from, to string }{
		{"\tapplyconfiguration \"", "\tclientset \""},
		{"// NewClientset returns", "var (\n\t_ clientset.Interface"},
	} {
		from, to := bytes.Index(content, []byte(part.from)), bytes.Index(content, []byte(part.to))
		if from < 0 || to < from {
			return fmt.Errorf("%s: nothing between %q and %q", file, part.from, part.to)
		}
		content = append(content[:from:from], content[to:]...)
	}
	return os.WriteFile(file, content, 0o644)
}
