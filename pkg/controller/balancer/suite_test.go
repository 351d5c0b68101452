// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var suite *testing.T

func TestBalancer(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Balancer")
}

// play runs body on a cluster in virtual time.
func play(body func(c *cluster)) {
	storm.Bubble(suite, func() {
		c := newCluster(sim.Options{Seed: 1})
		defer c.End()
		body(c)
	})
}
