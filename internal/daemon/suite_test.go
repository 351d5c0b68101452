// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"testing"
	"testing/synctest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var suite *testing.T

func TestDaemon(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "daemon")
}

// bubble runs a spec in virtual time; it fails when a goroutine outlives it.
func bubble(spec func()) func() {
	return func() {
		synctest.Test(suite, func(*testing.T) {
			defer GinkgoRecover()
			spec()
		})
	}
}
