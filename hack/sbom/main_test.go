// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestSBOM(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "SBOM")
}

// built is what a compiler may record: a module with a metadata suffix, and one that another one stands in for.
func built() *debug.BuildInfo {
	return &debug.BuildInfo{
		GoVersion: "go1.26.8", Path: "example.org/ship/cmd/keel", Main: debug.Module{Path: "example.org/ship", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.org/mast", Version: "v1.0.0+incompatible", Sum: "h1:a="},
			{Path: "example.org/sail", Version: "v1.1.0", Replace: &debug.Module{Path: "example.org/canvas", Version: "v2.0.0", Sum: "h1:b="}},
		},
		Settings: []debug.BuildSetting{{Key: "-trimpath", Value: "true"}, {Key: "GOOS", Value: "linux"}},
	}
}

var _ = Describe("A bill of materials", func() {
	It("names the binary by what was given, and all that is in it", func() {
		b := billOf("keel", "v0.1.0", built())
		self := component{"application", "pkg:golang/example.org/ship@v0.1.0#cmd/keel", "keel", "v0.1.0", "pkg:golang/example.org/ship@v0.1.0#cmd/keel", []property{{"GOOS", "linux"}}}
		Expect(b.Metadata.Component).To(Equal(self))
		Expect(b.Components).To(Equal([]component{
			{"library", "pkg:golang/stdlib@1.26.8", "stdlib", "1.26.8", "pkg:golang/stdlib@1.26.8", nil},
			{"library", "pkg:golang/example.org/mast@v1.0.0%2Bincompatible", "example.org/mast", "v1.0.0+incompatible", "pkg:golang/example.org/mast@v1.0.0%2Bincompatible", []property{{"go.sum", "h1:a="}}},
			{"library", "pkg:golang/example.org/canvas@v2.0.0", "example.org/canvas", "v2.0.0", "pkg:golang/example.org/canvas@v2.0.0", []property{{"go.sum", "h1:b="}}},
		}))
		Expect(b.Dependencies).To(ConsistOf(HaveField("DependsOn", HaveLen(3))))
	})

	It("takes the compiler's word for the version where none is given", func() {
		Expect(billOf("keel", "", built()).Metadata.Component.Version).To(Equal("(devel)"))
	})

	It("is written for each binary, the same each time, with every module of it", func(ctx context.Context) {
		binary := filepath.Join(GinkgoT().TempDir(), "up")
		output, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "../up").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(output))
		build, err := buildinfo.ReadFile(binary)
		Expect(err).NotTo(HaveOccurred())
		var texts []string
		for range 2 {
			out := filepath.Join(GinkgoT().TempDir(), "new")
			Expect(run([]string{binary}, "", out)).To(Succeed())
			text, err := os.ReadFile(filepath.Join(out, "up.cdx.json"))
			Expect(err).NotTo(HaveOccurred())
			texts = append(texts, string(text))
		}
		Expect(texts[1]).To(Equal(texts[0]))
		var b bill
		Expect(json.Unmarshal([]byte(texts[0]), &b)).To(Succeed())
		Expect(build.Deps).NotTo(BeEmpty())
		for _, module := range build.Deps {
			Expect(b.Components).To(ContainElement(And(HaveField("Name", module.Path), HaveField("Version", module.Version))))
		}
	})

	It("cannot be had of what is no binary of Go", func() {
		Expect(run([]string{"main.go"}, "", GinkgoT().TempDir())).To(MatchError(ContainSubstring("read modules: ")))
	})
})
