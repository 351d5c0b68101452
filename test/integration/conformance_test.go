// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/sim/conformance"
)

// What the simulated API server is held to, the real one does: the same specs run on both.
var _ = Describe("The real API server", func() { conformance.Specs(func() *rest.Config { return cluster.Config() }) })
