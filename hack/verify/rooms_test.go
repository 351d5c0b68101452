// SPDX-License-Identifier: Apache-2.0

package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Rooms", func() {
	It("begin with binaries and with what other modules may import", func() {
		Expect(roots([]string{module + "cmd/x", module + "cmd/x/app", module + "internal/y", module + "pkg/z", module + "pkg/z/internal/w"})).
			To(Equal([]string{module + "cmd/x", module + "pkg/z"}))
	})

	DescribeTable("are kept apart", func(packages, shipped []string, wrong ...string) {
		Expect(misplaced(packages, shipped)).To(ConsistOf(wrong))
	},
		Entry("where all is in its place", []string{module + "pkg/a"}, []string{module + "pkg/a", "example.com/test"}),
		Entry("where a binary contains what is for tests", nil, []string{module + "test/sim"}, module+"test/sim ships, but is for tests and developers"),
		Entry("where a binary contains a tool", nil, []string{module + "hack/up"}, module+"hack/up ships, but is for tests and developers"),
		Entry("where nothing needs a package", []string{module + "internal/a"}, nil, module+"internal/a does not ship: what only tests use belongs in test"),
	)

	It("keep machines out of the binary for workloads", func() {
		mcm, ours := "github.com/gardener/machine-controller-manager/pkg/options", module+"pkg/apis/machine/v1alpha1"
		Expect(strangers([]string{"fmt", mcm, module + "pkg/apis/balancer/v1alpha1", ours})).To(HaveExactElements(HavePrefix(mcm), HavePrefix(ours)))
	})
})
