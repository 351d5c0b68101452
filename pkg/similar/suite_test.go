// SPDX-License-Identifier: Apache-2.0

package similar_test

import (
	"flag"
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Rapid's own default of 100 cases per law is too few for chains along several resources. A flag given on the command
// line counts more than what stands here: go test ./pkg/similar -rapid.checks=100000
var rapidDefaults = map[string]string{"rapid.checks": "1000", "rapid.nofailfile": "true"}

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { delete(rapidDefaults, f.Name) })
	for name, value := range rapidDefaults {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func TestSimilar(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Similar")
}
