// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

func TestKrew(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Krew")
}

var _ = It("An archive holds the plugin and its license, and has the sum that it says", func() {
	folder := GinkgoT().TempDir()
	a := archive{OS: "linux", Arch: "arm64"}
	Expect(a.write(folder, []byte("binary"), []byte("license"))).To(Succeed())
	packed, err := os.ReadFile(filepath.Join(folder, "kubectl-evenkeel_linux_arm64.tar.gz"))
	Expect(err).NotTo(HaveOccurred())
	sum := sha256.Sum256(packed)
	Expect(a.Sum).To(Equal(hex.EncodeToString(sum[:])))

	zip, err := gzip.NewReader(bytes.NewReader(packed))
	Expect(err).NotTo(HaveOccurred())
	files, found := tar.NewReader(zip), map[string]string{}
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(files)
		Expect(err).NotTo(HaveOccurred())
		found[header.FileInfo().Mode().String()+" "+header.Name] = string(content)
	}
	Expect(found).To(Equal(map[string]string{"-rwxr-xr-x kubectl-evenkeel": "binary", "-rw-r--r-- LICENSE": "license"}))

	again := a
	Expect(again.write(folder, []byte("binary"), []byte("license"))).To(Succeed())
	Expect(again.Sum).To(Equal(a.Sum))
})

var _ = It("A manifest is what krew reads", func() {
	var m struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, ShortDescription string
			Platforms                 []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	text := manifest("v1.2.3", "https://example.com/v1.2.3/", []archive{{"linux", "amd64", "aa"}, {"windows", "amd64", "bb"}})
	Expect(yaml.Unmarshal([]byte(text), &m)).To(Succeed())
	Expect(m.APIVersion + " " + m.Kind + " " + m.Metadata.Name + " " + m.Spec.Version).To(Equal("krew.googlecontainertools.github.com/v1alpha2 Plugin evenkeel v1.2.3"))
	Expect(len(m.Spec.ShortDescription)).To(BeNumerically("<", 80))
	Expect(m.Spec.Platforms).To(HaveLen(2))
	windows := m.Spec.Platforms[1]
	Expect(windows.Selector.MatchLabels).To(Equal(map[string]string{"os": "windows", "arch": "amd64"}))
	Expect(windows.URI).To(Equal("https://example.com/v1.2.3/kubectl-evenkeel_windows_amd64.tar.gz"))
	Expect(windows.SHA256).To(Equal("bb"))
	Expect(windows.Bin).To(Equal("kubectl-evenkeel.exe"))
})

// compiler stands for go: it writes for which platform it was called, and what the linker was told.
const compiler = `#!/bin/sh
while [ "$1" != "-o" ]; do last=$1; shift; done
echo "$GOOS/$GOARCH $CGO_ENABLED $last" > "$2"
`

var _ = It("Each platform has an archive of what was built for it", func() {
	tools, out := GinkgoT().TempDir(), GinkgoT().TempDir()
	Expect(os.WriteFile(filepath.Join(tools, "go"), []byte(compiler), 0o755)).To(Succeed())
	GinkgoT().Setenv("PATH", tools+":"+os.Getenv("PATH"))
	GinkgoT().Chdir("../..")
	Expect(run(GinkgoT().Context(), "v1.2.3", "https://example.com", []string{"linux/amd64", "windows/arm64"}, out)).To(Succeed())
	var names []string
	entries, err := os.ReadDir(out)
	Expect(err).NotTo(HaveOccurred())
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	Expect(names).To(Equal([]string{"evenkeel.yaml", "kubectl-evenkeel_linux_amd64.tar.gz", "kubectl-evenkeel_windows_arm64.tar.gz"}))
	packed, err := os.Open(filepath.Join(out, names[2]))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = packed.Close() }()
	zip, err := gzip.NewReader(packed)
	Expect(err).NotTo(HaveOccurred())
	files := tar.NewReader(zip)
	header, err := files.Next()
	Expect(err).NotTo(HaveOccurred())
	Expect(header.Name).To(Equal("kubectl-evenkeel.exe"))
	Expect(io.ReadAll(files)).To(BeEquivalentTo("windows/arm64 0 -ldflags=-s -w -X github.com/evenkeel/evenkeel/internal/version.stamp=v1.2.3\n"))
	text, err := os.ReadFile(filepath.Join(out, "evenkeel.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(string(text)).To(And(ContainSubstring("version: v1.2.3"), ContainSubstring("kubectl-evenkeel_linux_amd64.tar.gz")))
})

var _ = DescribeTable("What krew could not use is refused",
	func(version, base, platform string) {
		GinkgoT().Chdir("../..")
		Expect(run(GinkgoT().Context(), version, base, []string{platform}, GinkgoT().TempDir())).NotTo(Succeed())
	},
	Entry("no version", "1.2.3", "https://example.com", "linux/amd64"),
	Entry("no address", "v1.2.3", "", "linux/amd64"),
	Entry("no platform", "v1.2.3", "https://example.com", "linux"),
)
