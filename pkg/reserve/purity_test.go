// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// pure are packages of plain values: the standard library's without clock or state, and API types.
var pure = []string{`"cmp"`, `"errors"`, `"fmt"`, `"math"`, `"math/big"`, `"slices"`, `"time"`,
	`"k8s.io/api/core/v1"`, `"k8s.io/apimachinery/pkg/api/resource"`,
	`"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"`,
	`"github.com/evenkeel/evenkeel/pkg/apis/reason"`, `"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"`, `"github.com/evenkeel/evenkeel/pkg/pool"`, `"github.com/evenkeel/evenkeel/pkg/signs"`,
}

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
		text, err := os.ReadFile(name)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).NotTo(MatchRegexp(`time\.(Now|Since|Until|After|Sleep)\b`), name)
		for _, i := range file.Imports {
			Expect(i.Path.Value).To(BeElementOf(pure), name)
		}
	}
	Expect(read).To(BeNumerically(">", 5))
})
