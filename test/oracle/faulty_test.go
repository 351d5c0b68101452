// SPDX-License-Identifier: Apache-2.0

//go:build !race

package oracle_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/oracle"
)

var _ = Describe("A planted fault", func() {
	for _, fault := range oracle.Faults {
		It("is seen: "+fault.Name, func() {
			v := oracle.Judge(suite, oracle.ByHand(fault.Story), oracle.Faulty(fault))
			AddReportEntry("what is seen", v.String())
			Expect(v.Same()).To(BeFalse())
		})
	}
})
