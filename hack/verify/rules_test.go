// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestVerify(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Rules of the house")
}

const spdx = "// SPDX-License-Identifier: Apache-2.0\n\n"

var _ = Describe("The rules of the house", func() {
	DescribeTable("catch a planted violation",
		func(path, content, want string) {
			Expect(violations(planted(path, content))).To(ConsistOf(path + ": " + want))
		},
		Entry("no licence", "pkg/a/a.go", "package a\n", "first line must be // SPDX-License-Identifier: Apache-2.0"),
		Entry("a plan with a client", "pkg/controller/x/plan.go", spdx+"package x\nimport _ \"k8s.io/client-go/rest\"\n", "a decision is pure and must not import k8s.io/client-go/rest"),
		Entry("a status with a logger", "pkg/controller/x/status.go", spdx+"package x\nimport _ \"k8s.io/klog/v2\"\n", "a decision is pure and must not import k8s.io/klog/v2"),
		Entry("a kernel with a context", "pkg/distribute/d.go", spdx+"package d\nimport _ \"context\"\n", "a decision is pure and must not import context"),
		Entry("a rule with a clock", "pkg/reserve/r.go", spdx+"package r\nimport \"time\"\nvar now = time.Now()\n", "a decision has no clock: time.Now"),
		Entry("a file that is listed as pure", "pkg/controller/balance/shares.go", spdx+"package balance\nimport _ \"sync\"\n", "a decision is pure and must not import sync"),
		Entry("a rule with a timer", "pkg/fit/f.go", spdx+"package f\nimport \"time\"\nvar later = time.NewTimer(1)\n", "a decision has no clock: time.NewTimer"),
		Entry("an api that looks up", "pkg/apis/m/m.go", spdx+"package m\nimport _ \"github.com/evenkeel/evenkeel/pkg/reserve\"\n", "imports point down, not up to pkg/reserve"),
		Entry("a library that looks at cmd", "pkg/lens/l.go", spdx+"package l\nimport _ \"github.com/evenkeel/evenkeel/cmd/x\"\n", "imports point down, not up to cmd/x"),
		Entry("controllers that know each other", "pkg/controller/a/a.go", spdx+"package a\nimport _ \"github.com/evenkeel/evenkeel/pkg/controller/b\"\n", "controller a must not import controller b"),
		Entry("a library that exits", "pkg/lens/l.go", spdx+"package l\nimport \"os\"\nfunc f() { os.Exit(1) }\n", "only main ends the process: os.Exit"),
		Entry("a library that is fatal", "pkg/lens/l.go", spdx+"package l\nimport \"k8s.io/klog/v2\"\nfunc f() { klog.Fatalf(\"\") }\n", "only main ends the process: klog.Fatalf"),
	)

	DescribeTable("let pass what is right",
		func(path, content string) {
			Expect(violations(planted(path, content))).To(BeEmpty())
		},
		Entry("a pure plan", "pkg/controller/x/plan.go", spdx+"package x\nimport _ \"slices\"\n"),
		Entry("a controller's own helper", "pkg/controller/x/x.go", spdx+"package x\nimport _ \"github.com/evenkeel/evenkeel/pkg/controller/internal/loop\"\n"),
		Entry("a test of a plan", "pkg/controller/x/plan_test.go", spdx+"package x\nimport _ \"context\"\n"),
		Entry("main that exits", "cmd/x/main.go", spdx+"package main\nimport \"os\"\nfunc main() { os.Exit(1) }\n"),
	)

	It("name pure files that exist", func() {
		for folder, names := range pureFiles {
			for _, name := range names {
				Expect(filepath.Join("..", "..", folder, name)).To(BeARegularFile())
			}
		}
		for _, folder := range purePackages {
			Expect(filepath.Join("..", "..", folder)).To(BeADirectory())
		}
	})

	It("hold for this repository", func() {
		Expect(violations(filepath.Join("..", ".."))).To(BeEmpty())
	})
})

func planted(path, content string) (root string) {
	GinkgoHelper()
	root = GinkgoT().TempDir()
	file := filepath.Join(root, path)
	Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
	Expect(os.WriteFile(file, []byte(content), 0o644)).To(Succeed())
	return root
}
