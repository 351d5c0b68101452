// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/running"
)

// suite is for tests in virtual time.
var suite *testing.T

func TestApp(t *testing.T) {
	suite = t
	running.Silence()
	RegisterFailHandler(Fail)
	RunSpecs(t, "machine-controller-manager")
}
