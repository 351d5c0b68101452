// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinedeployment_test

import (
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/oracle"
)

// killed are stories in which the controller is killed before and after each of its writes, with whether
// that takes minutes.
var killed = map[string]bool{
	"a named machine without a stamp":                 false,
	"several named at once, with more replicas to go": true,
	"back to the last revision":                       true,
	"back from a template that has no set yet":        true,
}

var _ = Describe("Killed before and after each of its writes,", Label("oracle"), func() {
	for name, long := range killed {
		if long && os.Getenv("ORACLE") == "" {
			continue
		}
		It("6: the controller ends as if it had not been: "+name, func() {
			Expect(oracle.Killed(suite, oracle.ByHand(name), ours)).To(Succeed())
		})
	}
})
