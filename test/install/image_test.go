// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	syaml "sigs.k8s.io/yaml"
)

// images are our binaries that run in clusters.
var images = []string{"machine-controller-manager", "machine-controller"}

var _ = Describe("The image", func() {
	var dockerfile string
	BeforeEach(func() {
		text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
		Expect(err).NotTo(HaveOccurred())
		dockerfile = string(text)
	})

	It("is given all folders that the binaries are made of, and no others", func(ctx context.Context) {
		cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", `{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}`, "./cmd/machine-controller-manager", "./cmd/machine-controller")
		cmd.Dir = root
		out, err := cmd.Output()
		Expect(err).NotTo(HaveOccurred())
		folders := map[string]bool{}
		for _, path := range strings.Fields(string(out)) {
			folder, _, _ := strings.Cut(strings.TrimPrefix(path, "github.com/evenkeel/evenkeel/"), "/")
			folders[folder] = true
		}
		ignored, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
		Expect(err).NotTo(HaveOccurred())
		copied := regexp.MustCompile(`(?m)^COPY (\w+) (\w+)$`).FindAllStringSubmatch(dockerfile, -1)
		Expect(copied).To(HaveLen(len(folders)))
		for _, match := range copied {
			Expect(match[1]).To(Equal(match[2]))
			Expect(folders).To(HaveKey(match[1]))
			Expect(string(ignored)).To(ContainSubstring("\n!" + match[1] + "\n"))
		}
	})

	It("is static, runs as nobody in particular, and is stamped where the code looks for it", func(ctx context.Context) {
		Expect(dockerfile).To(And(ContainSubstring("CGO_ENABLED=0"), ContainSubstring("\nUSER 65532:65532\n")))
		code, err := os.ReadFile(filepath.Join(root, "internal/version/version.go"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(code)).To(ContainSubstring("\nvar stamp string\n"))
		stamp := "-X github.com/evenkeel/evenkeel/internal/version.stamp="
		Expect(dockerfile).To(ContainSubstring(stamp + "$VERSION"))
		ko, err := os.ReadFile(filepath.Join(root, ".ko.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(ko)).To(ContainSubstring(stamp + "{{.Env.VERSION}}"))
	})

	It("is built from images that the release names by digest, and not without them", func(ctx context.Context) {
		for _, from := range regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?(\S+) AS (\S+)$`).FindAllStringSubmatch(dockerfile, -1) {
			Expect(from[1]).To(BeElementOf("${BUILDER}", "${BASE}", "base"))
		}
		Expect(dockerfile).NotTo(MatchRegexp(`(?m)^ARG (BUILDER|BASE)=`), "no default")
		Expect(dockerfile).To(ContainSubstring("\nRUN /pinned.sh \"$BUILDER\" \"$BASE\"\n"))
		ko, err := os.ReadFile(filepath.Join(root, ".ko.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(ko)).To(MatchRegexp(`(?m)^defaultBaseImage: \S+\.invalid/`), "ko has a default of its own")
		digest := "@sha256:" + strings.Repeat("0123456789abcdef", 4)
		for images, pinned := range map[string]bool{
			"a" + digest: true, "registry.example:5000/a/b:tag" + digest + " b" + digest: true,
			"": false, "a": false, "a:latest": false, digest: false, "a" + digest + "0": false, "a" + digest[:70]: false, "a" + strings.ToUpper(digest): false,
			"a" + digest + " b:tag": false, "a@sha256:" + strings.Repeat("x", 64): false,
		} {
			err := exec.CommandContext(ctx, filepath.Join(root, "hack/pinned.sh"), strings.Fields(images)...).Run()
			Expect(err == nil).To(Equal(pinned), images)
		}
	})

	It("has the platforms and binaries that ko has", func() {
		text, err := os.ReadFile(filepath.Join(root, ".ko.yaml"))
		Expect(err).NotTo(HaveOccurred())
		var ko struct {
			DefaultBaseImage string
			DefaultPlatforms []string
			Builds           []struct {
				ID, Main   string
				Env, Flags []string
				Ldflags    []string
			}
		}
		Expect(syaml.UnmarshalStrict(text, &ko)).To(Succeed())
		Expect(dockerfile).To(And(ContainSubstring("FROM ${BASE} AS base"), ContainSubstring("--platform="+strings.Join(ko.DefaultPlatforms, ",")+" ")))
		var names []string
		for _, build := range ko.Builds {
			names = append(names, build.ID)
			Expect(build.Main).To(Equal("./cmd/" + build.ID))
			Expect(build.Env).To(ContainElement("CGO_ENABLED=0"))
			Expect(build.Ldflags).To(HaveLen(2))
			Expect(dockerfile).To(ContainSubstring(`ENTRYPOINT ["/` + build.ID + `"]`))
		}
		Expect(names).To(Equal(images))
	})
})

var _ = Describe("The image of the Gardener extension", func() {
	It("is built as the other is: static, stamped, from images by digest, and by nobody in particular", func() {
		text, err := os.ReadFile(filepath.Join(root, "gardener/Dockerfile"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(And(ContainSubstring("CGO_ENABLED=0"), ContainSubstring("\nUSER 65532:65532\n"),
			ContainSubstring("-X github.com/evenkeel/evenkeel/internal/version.stamp=$VERSION"), ContainSubstring("\nRUN /pinned.sh \"$BUILDER\" \"$BASE\"\n")))
		Expect(string(text)).NotTo(MatchRegexp(`(?m)^ARG (BUILDER|BASE)=`), "no default")
		ignored, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
		Expect(err).NotTo(HaveOccurred())
		copied := regexp.MustCompile(`(?m)^COPY (\w+) (\w+)$`).FindAllStringSubmatch(string(text), -1)
		Expect(copied).To(HaveLen(3))
		for _, match := range copied {
			Expect(match[1]).To(Equal(match[2]))
			Expect(string(ignored)).To(ContainSubstring("\n!" + match[1] + "\n"))
		}
	})
})
