// SPDX-License-Identifier: Apache-2.0

package overview_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestOverview(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Overview")
}
