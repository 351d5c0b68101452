// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"strconv"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/conformance"
	"github.com/evenkeel/evenkeel/test/sim/policy"
)

func TestConformance(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The simulated API server")
}

var checks = sync.OnceValues(func() (policy.Checks, error) { return policy.Load("../../../kubernetes") })

var _ = Describe("The simulated API server", func() {
	conformance.Specs(func() *rest.Config {
		s := sim.New(sim.Options{Seed: uint64(GinkgoRandomSeed()), ManagedFields: true})
		DeferCleanup(s.Close)
		checks, err := checks()
		Expect(err).NotTo(HaveOccurred())
		checks.Enforce(s)
		return s.ConfigFor("conformance")
	})
	conformance.Ages(func() conformance.Keeper {
		s := sim.New(sim.Options{Seed: uint64(GinkgoRandomSeed())})
		DeferCleanup(s.Close)
		return conformance.Keeper{
			Config: s.ConfigFor("conformance"), Forget: s.Compact,
			Backup: func() func() {
				backup := s.Snapshot()
				return func() { s.Restore(backup) }
			},
		}
	})
	conformance.Answers(func(code int) *rest.Config {
		s := sim.New(sim.Options{Seed: uint64(GinkgoRandomSeed())})
		DeferCleanup(s.Close)
		s.Trouble("", sim.Trouble{Reads: 1, Writes: 1, Only: []sim.Answer{sim.Answer(strconv.Itoa(code))}})
		return s.ConfigFor("conformance")
	})
})
