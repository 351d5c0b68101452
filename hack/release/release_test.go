// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestRelease(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Release")
}

// program stands for a command: it prints the version that the linker gave it.
const program = `package main

import "example.com/small/internal/version"

func main() { print(version.Stamp) }
`

// small makes a repository with one small command, the chart and a changelog, all committed.
func small() string {
	GinkgoHelper()
	root := GinkgoT().TempDir()
	tools, err := filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	config, err := os.ReadFile(filepath.Join(tools, ".ko.yaml"))
	Expect(err).NotTo(HaveOccurred())
	config = bytes.ReplaceAll(config, []byte("github.com/evenkeel/evenkeel/internal/version.stamp"), []byte("example.com/small/internal/version.Stamp"))
	for path, text := range map[string]string{
		"go.mod":                                 "module example.com/small\n\ngo 1.26\n",
		"internal/version/version.go":            "package version\n\nvar Stamp string\n",
		"cmd/machine-controller-manager/main.go": program,
		"cmd/evenkeel-workloads/main.go":         program,
		"cmd/machine-controller/main.go":         program,
		".ko.yaml":                               string(config),
		".gitignore":                             "/.local/\n",
		"CHANGELOG.md":                           "# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-11-22\n",
	} {
		Expect(os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(root, path), []byte(text), 0o644)).To(Succeed())
	}
	Expect(os.Mkdir(filepath.Join(root, "charts"), 0o755)).To(Succeed())
	Expect(exec.Command("cp", "-RL", filepath.Join(tools, "charts", "evenkeel"), filepath.Join(root, "charts")).Run()).To(Succeed())
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "Begin"}} {
		command := exec.Command("git", args...)
		command.Dir = root
		Expect(command.Run()).To(Succeed())
	}
	return root
}

// base pushes an empty image for both platforms and returns its name with the digest.
func base(host string) string {
	GinkgoHelper()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range []string{"amd64", "arm64"} {
		image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: arch, Config: v1.Config{User: "65532:65532"}})
		Expect(err).NotTo(HaveOccurred())
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	tag, err := name.NewTag(host + "/base:empty")
	Expect(err).NotTo(HaveOccurred())
	Expect(remote.WriteIndex(tag, index)).To(Succeed())
	digest, err := index.Digest()
	Expect(err).NotTo(HaveOccurred())
	return host + "/base@" + digest.String()
}

// started is a release of a small repository, beside a registry of its own.
func started(ctx context.Context) (*release, string) {
	GinkgoHelper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	DeferCleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	tools, err := filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	r := &release{Version: "v0.1.0", Base: base(host), URL: "https://example.com/v0.1.0", Root: small(), Tools: tools,
		Commands: append(charted, "machine-controller")}
	Expect(r.resolve(ctx)).To(Succeed())
	Expect(os.MkdirAll(filepath.Join(r.Out, "sbom"), 0o755)).To(Succeed())
	return r, host
}

// unpacked returns the files of a gzipped archive, or of one layer.
func unpacked(from io.Reader) map[string][]byte {
	GinkgoHelper()
	found, archive := map[string][]byte{}, tar.NewReader(from)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		Expect(err).NotTo(HaveOccurred())
		found[header.Name], err = io.ReadAll(archive)
		Expect(err).NotTo(HaveOccurred())
	}
}

// printed is what the command of an image for this machine prints.
func printed(image v1.Image) string {
	GinkgoHelper()
	layers, err := image.Layers()
	Expect(err).NotTo(HaveOccurred())
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		Expect(err).NotTo(HaveOccurred())
		if binary := unpacked(content)["/ko-app/machine-controller-manager"]; binary != nil {
			path := filepath.Join(GinkgoT().TempDir(), "command")
			Expect(os.WriteFile(path, binary, 0o755)).To(Succeed())
			out, err := exec.Command(path).CombinedOutput()
			Expect(err).NotTo(HaveOccurred())
			return string(out)
		}
	}
	return "no command in the image"
}

var _ = Describe("A release", func() {
	It("has images for two platforms, a chart that pins them, provenance and checksums, and the same bytes from the same commit", func(ctx context.Context) {
		r, host := started(ctx)
		Expect(r.check(ctx)).To(Succeed())
		r.Push = host + "/evenkeel"
		images, err := r.images(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.chart(ctx, images)).To(Succeed())
		Expect(r.provenance(images)).To(Succeed())
		Expect(r.sums()).To(Succeed())
		Expect(r.push(ctx, images)).To(Succeed())

		digest, err := images["machine-controller-manager"].Digest()
		Expect(err).NotTo(HaveOccurred())
		By("pulling what was pushed, for each platform")
		for _, arch := range []string{"amd64", "arm64"} {
			reference, err := name.NewDigest(r.Push + "/machine-controller-manager@" + digest.String())
			Expect(err).NotTo(HaveOccurred())
			image, err := remote.Image(reference, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
			Expect(err).NotTo(HaveOccurred())
			config, err := image.ConfigFile()
			Expect(err).NotTo(HaveOccurred())
			Expect(config.Architecture).To(Equal(arch))
			Expect(config.Config.User).To(Equal("65532:65532"))
			if out, err := exec.Command("go", "env", "GOARCH").Output(); err == nil && strings.TrimSpace(string(out)) == arch {
				Expect(printed(image)).To(Equal("v0.1.0"))
			}
		}

		By("reading the chart")
		file, err := os.Open(filepath.Join(r.Out, "evenkeel-0.1.0.tgz"))
		Expect(err).NotTo(HaveOccurred())
		defer file.Close()
		zip, err := gzip.NewReader(file)
		Expect(err).NotTo(HaveOccurred())
		chart := unpacked(zip)
		for _, name := range charted {
			digest, err := images[name].Digest()
			Expect(err).NotTo(HaveOccurred())
			Expect(string(chart["evenkeel/values.yaml"])).To(MatchRegexp(`(?m)^  repository: ` + r.Push + "/" + name + `\n(?:  (?:#|tag:).*\n)+  digest: ` + digest.String() + "$"))
		}
		Expect(string(chart["evenkeel/Chart.yaml"])).To(And(ContainSubstring("version: 0.1.0"), ContainSubstring("appVersion: v0.1.0")))

		By("checking the sums as a user does")
		command := exec.Command("sha256sum", "--check", "--strict", sumsFile)
		command.Dir = r.Out
		out, err := command.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		for _, published := range []string{"images/machine-controller.tar", "images/machine-controller-manager.tar", "evenkeel-0.1.0.tgz", "provenance.intoto.json"} {
			Expect(string(out)).To(ContainSubstring(published + ": OK"))
		}

		By("reading the provenance")
		text, err := os.ReadFile(filepath.Join(r.Out, "provenance.intoto.json"))
		Expect(err).NotTo(HaveOccurred())
		var s statement
		Expect(json.Unmarshal(text, &s)).To(Succeed())
		Expect(s.Subject).To(ContainElement(subject{Name: "image:machine-controller-manager", Digest: map[string]string{"sha256": digest.Hex}}))
		Expect(s.Predicate.BuildDefinition.ResolvedDependencies[0].Digest).To(HaveKeyWithValue("gitCommit", r.Commit))

		By("building the same commit again")
		before, err := os.ReadFile(filepath.Join(r.Out, sumsFile))
		Expect(err).NotTo(HaveOccurred())
		Expect(os.RemoveAll(r.Out)).To(Succeed())
		Expect(os.MkdirAll(filepath.Join(r.Out, "sbom"), 0o755)).To(Succeed())
		again, err := r.images(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.chart(ctx, again)).To(Succeed())
		Expect(r.provenance(again)).To(Succeed())
		Expect(r.sums()).To(Succeed())
		after, err := os.ReadFile(filepath.Join(r.Out, sumsFile))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(after)).To(Equal(string(before)))

		By("pushing another image under a version that is there")
		Expect(r.push(ctx, map[string]v1.ImageIndex{"machine-controller-manager": again["machine-controller"]})).To(MatchError(ContainSubstring("release another version")))
	})

	It("is not pushed where the registry does not answer whether it has that version", func(ctx context.Context) {
		var busy atomic.Bool
		images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead && busy.CompareAndSwap(true, false) {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			images.ServeHTTP(w, r)
		}))
		DeferCleanup(server.Close)
		r := &release{Version: "v0.1.0", Push: strings.TrimPrefix(server.URL, "http://") + "/evenkeel"}
		first, second := empty.Index, mutate.IndexMediaType(empty.Index, types.DockerManifestList)
		Expect(r.push(ctx, map[string]v1.ImageIndex{"machine-controller": first})).To(Succeed())
		busy.Store(true)
		Expect(r.push(ctx, map[string]v1.ImageIndex{"machine-controller": second})).NotTo(Succeed())
		tag, err := name.NewTag(r.Push + "/machine-controller:v0.1.0")
		Expect(err).NotTo(HaveOccurred())
		there, err := remote.Head(tag)
		Expect(err).NotTo(HaveOccurred())
		Expect(first.Digest()).To(Equal(there.Digest))
	})

	It("is refused with everything that is wrong with it", func(ctx context.Context) {
		r, _ := started(ctx)
		r.Version, r.Base, r.URL = "0.2", "base:latest", "http://example.com"
		Expect(os.WriteFile(filepath.Join(r.Root, "new.go"), nil, 0o644)).To(Succeed())
		err := r.check(ctx)
		for _, wrong := range []string{"write it like v0.1.0", "by its digest", "https folder", "CHANGELOG.md has no section", "not committed"} {
			Expect(err).To(MatchError(ContainSubstring(wrong)))
		}
	})
})
