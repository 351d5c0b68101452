// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = It("imports nothing that could look outside", func() {
	files, err := filepath.Glob("*.go")
	Expect(err).NotTo(HaveOccurred())
	var read int
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		read++
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		Expect(err).NotTo(HaveOccurred())
		for _, i := range file.Imports {
			Expect(i.Path.Value).To(BeElementOf(`"cmp"`, `"errors"`, `"fmt"`, `"math"`, `"math/bits"`, `"slices"`), name)
		}
	}
	Expect(read).To(BeNumerically(">", 5))
})
