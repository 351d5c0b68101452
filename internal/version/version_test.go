// SPDX-License-Identifier: Apache-2.0

package version

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestVersion(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Version")
}

var _ = Describe("The version", func() {
	build := &debug.BuildInfo{
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123"}},
		Deps:     []*debug.Module{{Path: library, Version: "v1.2.3"}},
	}

	It("names the commit and the library", func() {
		Expect(revision(build)).To(Equal(" (0123456789ab)"))
		Expect(dependency(build, library)).To(Equal("v1.2.3"))
		Expect(dependency(&debug.BuildInfo{}, library) + revision(&debug.BuildInfo{})).To(BeEmpty())
	})

	It("is what the linker stamped, else what the compiler knows", func() {
		DeferCleanup(func() { stamp = "" })
		Expect(Short()).NotTo(BeEmpty())
		stamp = "v9.8.7"
		Expect(Short()).To(Equal("v9.8.7"))
		Expect(Line("machine-controller")).To(MatchRegexp(`^evenkeel machine-controller v9.8.7.*, go1\.`))
		Expect(Line("thing")).To(And(HavePrefix("evenkeel thing v9.8.7"), HaveSuffix(runtime.GOOS+"/"+runtime.GOARCH)))
	})

	It("is stamped into a binary by the flag that the image is built with, and all binaries tell it", func() {
		folder := GinkgoT().TempDir()
		build := exec.Command("go", "build", "-buildvcs=false", "-o", folder,
			"-ldflags=-s -w -X github.com/evenkeel/evenkeel/internal/version.stamp=v9.8.7", "../../cmd/machine-controller-manager", "../../cmd/evenkeel-workloads", "../../cmd/machine-controller", "../../cmd/kubectl-evenkeel")
		out, err := build.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		binaries, err := filepath.Glob(folder + "/*")
		Expect(err).NotTo(HaveOccurred())
		Expect(binaries).To(HaveLen(4))
		for _, binary := range binaries {
			out, err := exec.Command(binary, "--version").CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), binary)
			Expect(string(out)).To(HavePrefix("evenkeel "+filepath.Base(binary)+" v9.8.7"), binary)
			if filepath.Base(binary) == "machine-controller-manager" {
				Expect(string(out)).To(ContainSubstring("with machine-controller-manager v0."))
			}
		}
	})
})
