// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"flag"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/laws"
)

// every is the share of the walk's states that are walked: the whole is -every=1.
var every = flag.Int("every", 31, "walk every n-th of the small states")

func TestMain(m *testing.M) { laws.Main(m, 2000) }

func TestReserve(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Reserve")
}
