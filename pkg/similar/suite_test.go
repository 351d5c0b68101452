// SPDX-License-Identifier: Apache-2.0

package similar_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/laws"
)

func TestMain(m *testing.M) { laws.Main(m, 1000) }

func TestSimilar(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Similar")
}
