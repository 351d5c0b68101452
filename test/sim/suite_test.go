// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// suite is what virtual time needs; specs run while TestSim does.
var suite *testing.T

func TestSim(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Sim")
}
