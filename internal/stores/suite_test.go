// SPDX-License-Identifier: Apache-2.0

package stores_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// suite is for tests in virtual time.
var suite *testing.T

func TestStores(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Stores")
}
