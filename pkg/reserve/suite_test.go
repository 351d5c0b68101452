// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"flag"
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// A flag given on the command line counts more than what stands here: go test ./pkg/reserve -rapid.checks=100000
var rapidDefaults = map[string]string{"rapid.checks": "2000", "rapid.nofailfile": "true"}

// every is the share of the walk's states that are walked: the whole is -every=1.
var every = flag.Int("every", 31, "walk every n-th of the small states")

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

func TestReserve(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Reserve")
}
