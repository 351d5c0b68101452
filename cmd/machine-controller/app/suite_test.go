// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestMachineController(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "machine-controller")
}
