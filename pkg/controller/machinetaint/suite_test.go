// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// suite is what synctest wants to know; specs run while TestMachineTaint does.
var suite *testing.T

func TestMachineTaint(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Machine taint")
}
