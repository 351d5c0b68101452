// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	syaml "sigs.k8s.io/yaml"
)

// module is what the paths of our packages begin with.
const module = "github.com/evenkeel/evenkeel/"

// images are our binaries that run in clusters.
var images = []string{"machine-controller-manager", "evenkeel-workloads", "machine-controller"}

var _ = Describe("The image", func() {
	var dockerfile string
	BeforeEach(func() {
		text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
		Expect(err).NotTo(HaveOccurred())
		dockerfile = string(text)
	})

	It("is given all folders that the binaries are made of, and no others", func(ctx context.Context) {
		expectCopied(dockerfile, foldersOf(ctx, "./cmd/machine-controller-manager", "./cmd/evenkeel-workloads", "./cmd/machine-controller"))
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
	It("is built as the other is: static, stamped, from images by digest, and by nobody in particular", func(ctx context.Context) {
		text, err := os.ReadFile(filepath.Join(root, "gardener/Dockerfile"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).To(And(ContainSubstring("CGO_ENABLED=0"), ContainSubstring("\nUSER 65532:65532\n"),
			ContainSubstring("-X github.com/evenkeel/evenkeel/internal/version.stamp=$VERSION"), ContainSubstring("\nRUN /pinned.sh \"$BUILDER\" \"$BASE\"\n")))
		Expect(string(text)).NotTo(MatchRegexp(`(?m)^ARG (BUILDER|BASE)=`), "no default")
		expectCopied(string(text), append(foldersOf(ctx, importedByGardener()...), "gardener"))
	})
})

// importedByGardener are the packages of our main module that the code in gardener/ imports. That module's own graph is not asked: it is long to load.
func importedByGardener() []string {
	GinkgoHelper()
	found := map[string]bool{}
	Expect(filepath.WalkDir(filepath.Join(root, "gardener"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			if path := strings.Trim(spec.Path.Value, `"`); strings.HasPrefix(path, module) && !strings.HasPrefix(path, module+"gardener/") {
				found[path] = true
			}
		}
		return nil
	})).To(Succeed())
	Expect(found).NotTo(BeEmpty())
	return slices.Sorted(maps.Keys(found))
}

// foldersOf are the folders at the top of the repository that the packages are made of.
func foldersOf(ctx context.Context, packages ...string) []string {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", "-f", `{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}`}, packages...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred())
	folders := map[string]bool{}
	for path := range strings.FieldsSeq(string(out)) {
		folder, _, _ := strings.Cut(strings.TrimPrefix(path, module), "/")
		folders[folder] = true
	}
	return slices.Sorted(maps.Keys(folders))
}

// expectCopied checks that the image is built from these folders, no others, and that none of them is kept from it.
func expectCopied(dockerfile string, folders []string) {
	GinkgoHelper()
	ignored, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	Expect(err).NotTo(HaveOccurred())
	var copied []string
	for _, match := range regexp.MustCompile(`(?m)^COPY (\w+) (\w+)$`).FindAllStringSubmatch(dockerfile, -1) {
		Expect(match[1]).To(Equal(match[2]))
		Expect(string(ignored)).To(ContainSubstring("\n!" + match[1] + "\n"))
		copied = append(copied, match[1])
	}
	Expect(copied).To(ConsistOf(folders))
}
