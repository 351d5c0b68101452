// SPDX-License-Identifier: Apache-2.0

package storm_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var suite *testing.T

func TestStorm(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Storm")
}
