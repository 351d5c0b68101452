// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
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
				`"cmp"`, `"crypto/sha256"`, `"encoding/json"`, `"errors"`, `"fmt"`, `"maps"`, `"math"`, `"slices"`, `"strings"`,
				`"k8s.io/api/core/v1"`, `"k8s.io/api/storage/v1"`, `"k8s.io/apimachinery/pkg/api/resource"`,
				`"k8s.io/apimachinery/pkg/apis/meta/v1"`, `"k8s.io/apimachinery/pkg/labels"`,
				`"k8s.io/component-helpers/resource"`, `"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"`,
			), name)
		}
	}
	Expect(read).To(BeNumerically(">", 5))
})

var _ = It("has a test for every law that its page names", func() {
	page, err := os.ReadFile("doc.go")
	Expect(err).NotTo(HaveOccurred())
	var tests []byte
	for _, name := range []string{"laws_test.go", "bounds_test.go"} {
		text, err := os.ReadFile(name)
		Expect(err).NotTo(HaveOccurred())
		tests = append(tests, text...)
	}
	laws := regexp.MustCompile(`(?m)^//\t([a-z-]+)  +\S`).FindAllStringSubmatch(string(page), -1)
	Expect(len(laws)).To(BeNumerically(">=", 9))
	for _, law := range laws {
		Expect(string(tests)).To(MatchRegexp(`(law|It)\("[^"]*\b`+law[1]+`\b`), law[1])
	}
})
