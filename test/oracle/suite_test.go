// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// suite is what virtual time needs.
var suite *testing.T

func TestOracle(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Oracle")
}
