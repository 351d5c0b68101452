// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
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
		if err == io.EOF {
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
