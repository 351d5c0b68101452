// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"go/parser"
	"go/token"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
)

var suite *testing.T

func TestVirtual(t *testing.T) {
	suite = t
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	RegisterFailHandler(Fail)
	RunSpecs(t, "virtual provider")
}

// bubble runs a spec in virtual time; it fails when a goroutine outlives it.
func bubble(spec func()) func() {
	return func() {
		synctest.Test(suite, func(*testing.T) {
			defer GinkgoRecover()
			spec()
		})
	}
}

var _ = DescribeTable("decides apart from effects: no client, context, log or clock in", func(file string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	Expect(err).NotTo(HaveOccurred())
	Expect(parsed.Imports).NotTo(BeEmpty())
	for _, i := range parsed.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		for _, effect := range []string{"context", "k8s.io/client-go", "k8s.io/klog", "k8s.io/utils/clock", "sync", "math/rand"} {
			Expect(path).NotTo(HavePrefix(effect))
		}
	}
}, Entry(nil, "plan.go"), Entry(nil, "node.go"), Entry(nil, "spec.go"), Entry(nil, "faults.go"), Entry(nil, "delay.go"))
