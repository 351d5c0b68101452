// SPDX-License-Identifier: Apache-2.0

package similar_test

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
			Expect(i.Path.Value).To(BeElementOf(
				`"cmp"`, `"encoding/binary"`, `"errors"`, `"fmt"`, `"maps"`, `"math"`, `"slices"`, `"strings"`, `"time"`,
				`"k8s.io/api/core/v1"`, `"k8s.io/apimachinery/pkg/api/resource"`,
				`"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"`,
			), name)
		}
	}
	Expect(read).To(BeNumerically(">", 5))
})

// Of package time only what computes: the moment is always given.
var _ = It("reads no clock", func() {
	files, err := filepath.Glob("*.go")
	Expect(err).NotTo(HaveOccurred())
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
			Expect(source(name)).NotTo(MatchRegexp(`time\.(Now|Since|Until|After|Tick|Sleep|New)`), name)
		}
	}
})
