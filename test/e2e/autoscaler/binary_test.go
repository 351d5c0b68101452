// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = DescribeTable("Without a binary of cluster-autoscaler, specs that need one fail and say what to set",
	func(binary, filter, problem string) {
		if problem == "" {
			Expect(missing(binary, filter)).To(BeEmpty())
			return
		}
		Expect(missing(binary, filter)).To(And(ContainSubstring(problem), ContainSubstring("Set CLUSTER_AUTOSCALER to the path"), ContainSubstring("make e2e-nodegroup")))
	},
	Entry("all specs", "", "", "no cluster-autoscaler was given"),
	Entry("all that record nothing", "", "!record", "no cluster-autoscaler was given"),
	Entry("those that record", "", "record", "no cluster-autoscaler was given"),
	Entry("a path of nothing", "/nonexistent/cluster-autoscaler", "", "/nonexistent/cluster-autoscaler: no such file"),
	Entry("those that need none", "", "!autoscaler", ""),
	Entry("a program", "/bin/sh", "", ""),
)
