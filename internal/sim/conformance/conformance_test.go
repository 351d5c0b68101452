// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/internal/sim/conformance"
)

func TestConformance(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The simulated API server")
}

var _ = Describe("The simulated API server", func() {
	conformance.Specs(func() *rest.Config {
		s := sim.New(sim.Options{Seed: uint64(GinkgoRandomSeed())})
		DeferCleanup(s.Close)
		return s.ConfigFor("conformance")
	})
})
