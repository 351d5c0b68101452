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

var _ = Describe("Checks", func() {
	names := func(all []check) (names []string) {
		for _, c := range all {
			names = append(names, c.name)
		}
		return names
	}

	It("are all of them, or those that are named in that order", func() {
		Expect(choose(nil)).To(HaveLen(len(checks)))
		chosen, err := choose([]string{"staticcheck", "formatting"})
		Expect(err).NotTo(HaveOccurred())
		Expect(names(chosen)).To(Equal([]string{"staticcheck", "formatting"}))
	})

	It("are none if one of the names is unknown", func() {
		_, err := choose([]string{"formatting", "-h"})
		Expect(err).To(MatchError(`there is no check "-h"`))
	})

	It("report whether nothing is wrong, also after one that was not made", func() {
		made := 0
		found := func(lines ...string) check {
			return check{"planted", "", func() ([]string, error) { made++; return lines, nil }}
		}
		skipped := check{"skipped", "", func() ([]string, error) { made++; return nil, notMade("no network") }}
		Expect(run([]check{found(), skipped, found()})).To(BeTrue())
		Expect(run([]check{found("wrong"), found()})).To(BeFalse())
		Expect(made).To(Equal(5))
	})
})
