// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"os"
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

var _ = Describe("The binary as it is built for users", func() {
	It("links no package that calls methods by name, which would have the linker keep all of them", func(ctx SpecContext) {
		packages, err := exec.CommandContext(ctx, "go", "list", "-deps", "-tags="+localcluster.Tags, ".").Output()
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Fields(string(packages))).To(And(ContainElement("google.golang.org/grpc"), Not(ContainElement("html/template"))))
	})

	DescribeTable("has the same tags as that of", func(path, line string) {
		text, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(ContainSubstring(line))
	},
		Entry("the image", "../../Dockerfile", " -tags="+localcluster.Tags+" "),
		Entry("a release", "../../.ko.yaml", "main: ./cmd/machine-controller-manager\n  env: [CGO_ENABLED=0]\n  flags: [-trimpath, -tags="+localcluster.Tags+"]\n"),
		Entry("make build", "../../Makefile", "TAGS := "+localcluster.Tags+"\n"),
	)
})
