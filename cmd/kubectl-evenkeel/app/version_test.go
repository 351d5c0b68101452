// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/cmd/kubectl-evenkeel/app"
	"github.com/evenkeel/evenkeel/internal/version"
)

var _ = Describe("version", func() {
	It("prints the versions of the plugin and of the managers", func() {
		s := newScene(everything)
		Expect(s.answer("", "version")).To(And(HavePrefix("plugin"), ContainSubstring(version.Short()), ContainSubstring("Note: found no manager that publishes its version: use --namespace for another namespace, or -A for all")))
		s.publish()
		Expect(s.answer("", "version", "-A")).To(MatchRegexp(`manager in namespace \w+ +v0\.1\.0\n`))
	})

	It("prints the versions of managers in any number of namespaces", func() {
		s := newScene(everything)
		for i := range 300 {
			s.publishIn(fmt.Sprint("shoot-", i))
		}
		out, err := s.answer("", "version", "-A")
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Count(out, "manager in namespace shoot-")).To(Equal(300))
	})

	DescribeTable("warns of a manager with another minor version",
		func(plugin, manager string, warns bool) {
			if warns {
				Expect(app.NoteSkew(plugin, manager)).To(And(HavePrefix("Note: the plugin is "+plugin+", and the manager "+manager), ContainSubstring("use the plugin of the manager's release")))
			} else {
				Expect(app.NoteSkew(plugin, manager)).To(BeEmpty())
			}
		},
		Entry("an older one", "v0.2.0", "v0.1.3", true),
		Entry("a newer one", "v0.2.0", "v1.2.0", true),
		Entry("not of another patch release", "v0.2.0", "v0.2.7", false),
		Entry("not of one that does not say", "v0.2.0", "", false),
		Entry("not of a build that is no release", "v0.2.0", "(devel)", false),
		Entry("not of a commit", "v0.2.0", "v0.0.0-20261130063000-10db75a2aaaa", false),
		Entry("not of a commit after a release", "v0.1.1-0.20261130063000-10db75a2aaaa", "v0.2.0", false),
	)
})
