// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// page of the documents.
func page(name string) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, "docs", name))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

var _ = Describe("The documents", func() {
	It("have helm commands that work", func(ctx context.Context) {
		commands := regexp.MustCompile(`helm (?:install|upgrade) \S+ charts/evenkeel((?:[^\n\x60\\]|\\\n)*)`).FindAllStringSubmatch(page("install.md"), -1)
		Expect(len(commands)).To(BeNumerically(">=", 8))
		for _, command := range commands {
			var args []string
			for _, word := range strings.Fields(strings.ReplaceAll(command[1], "\\\n", " ")) {
				switch word = strings.Trim(word, "',"); word {
				case "--reset-then-reuse-values", "--take-ownership": // nothing that a template knows
				default:
					args = append(args, word)
				}
			}
			Expect(objects(template(ctx, args...))).NotTo(BeEmpty(), command[0])
		}
	})

	It("name folders and files that are there", func() {
		for _, name := range []string{"install.md", "security.md"} {
			for _, match := range regexp.MustCompile(`kubernetes/[-\w/.]*\w`).FindAllString(page(name), -1) {
				Expect(filepath.Join(root, match)).To(BeAnExistingFile(), "%s: %s", name, match)
			}
		}
	})

	It("list every fuzz target, and no other", func() {
		listed := map[string]bool{}
		for _, match := range regexp.MustCompile("(?m)^\\| `(Fuzz\\w+)` \\| `\\./([\\w/]+)` \\|").FindAllStringSubmatch(page("security.md"), -1) {
			listed[match[2]+" "+match[1]] = true
		}
		found := map[string]bool{}
		target := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
		for _, top := range []string{"cmd", "internal", "pkg"} {
			Expect(filepath.WalkDir(filepath.Join(root, top), func(path string, _ fs.DirEntry, err error) error {
				if err != nil || !strings.HasSuffix(path, "_test.go") {
					return err
				}
				text, err := os.ReadFile(path)
				for _, match := range target.FindAllSubmatch(text, -1) {
					found[strings.TrimPrefix(filepath.Dir(path), root+"/")+" "+string(match[1])] = true
				}
				return err
			})).To(Succeed())
		}
		Expect(found).NotTo(BeEmpty())
		Expect(listed).To(Equal(found))
	})
})
