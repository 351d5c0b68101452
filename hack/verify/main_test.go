// SPDX-License-Identifier: Apache-2.0

package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = DescribeTable("What a command prints is wrong",
	func(script string, want []string, fails bool) {
		lines, err := output("sh", "-c", script)
		Expect(lines).To(Equal(want))
		Expect(err != nil).To(Equal(fails))
	},
	Entry("unless it is nothing", "true", nil, false),
	Entry("except for what go downloads, as it does on a new computer", "echo go: downloading example.com/a v1.0.0 >&2", nil, false),
	Entry("line by line, without empty ones", "echo go: downloading example.com/a v1.0.0 >&2; echo; echo '  wrong'; false", []string{"  wrong"}, false),
	Entry("and so is a failure that says nothing", "false", nil, true),
)
