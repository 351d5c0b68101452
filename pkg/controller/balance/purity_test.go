// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"go/parser"
	"go/token"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = It("decides without looking outside, and without a clock", func() {
	for _, name := range []string{
		"view.go", "read.go", "health.go", "shares.go", "bounds.go", "split.go", "moves.go", "move.go", "places.go", "plan.go", "outcome.go", "status.go", "nodes.go",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		Expect(err).NotTo(HaveOccurred())
		for _, i := range file.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			for _, effect := range []string{"context", "k8s.io/client-go", "k8s.io/klog", "net", "os", "math/rand", "sync", "github.com/evenkeel/evenkeel/pkg/client"} {
				Expect(path == effect || strings.HasPrefix(path, effect+"/")).To(BeFalse(), name+" imports "+path)
			}
		}
		text, err := os.ReadFile(name)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).NotTo(MatchRegexp(`time\.(Now|Since|Until|After|Tick|Sleep|New)\b`), name)
	}
})
