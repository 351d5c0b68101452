// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/reason"
)

// The page for operators lists what the code says, and nothing that it does not say.
var _ = Describe("The page about the reserve", func() {
	page := read("../../docs/reserve.md")
	var sources []string
	for _, folder := range []string{"../../pkg/controller/machinedeployment", "../../pkg/controller/machinedeployment/plan", "../../pkg/controller/machinetaint"} {
		for _, file := range files(folder) {
			sources = append(sources, read(file))
		}
	}
	code := strings.Join(sources, "\n")

	It("lists each event, and no other", func() {
		moves := found(`reserve(?:Held|Released) += "([A-Za-z]+)"`, code)
		Expect(moves).To(HaveLen(2), "the events about machines that change places")
		own := append(found(`say\("([A-Za-z]+)"`, code), found(`ExcessRestored = "([A-Za-z]+)"`, code)...)
		Expect(own).To(HaveLen(3), "those about the excess")
		wanted := slices.Concat(moves, own, []string{"UnableToManage"})
		for _, r := range reason.ReserveReady {
			if r.Event != "" {
				wanted = append(wanted, r.Event)
			}
		}
		slices.Sort(wanted)
		Expect(found("(?m)^\\| `([A-Za-z]+)` \\| (?:Normal|Warning) \\|", page)).To(Equal(slices.Compact(wanted)))
	})

	It("lists each flag with its default, and no other", func() {
		flags := read("../../cmd/machine-controller-manager/app/reserve.go")
		defined := `flags\.[A-Za-z]+\(&[a-z]\.[A-Za-z]+, "([a-z-]+)"`
		wanted := append(found(defined, flags), found(defined, read("../../internal/settings/eviction.go"))...)
		slices.Sort(wanted)
		Expect(found("(?m)^\\| `--([a-z-]+)` \\|", page)).To(Equal(wanted))
		Expect(page).To(And(ContainSubstring("`--surplus-patience` | 10m"), ContainSubstring("`--reserve-boot-patience` | 15m")))
		Expect(code).To(And(ContainSubstring("DefaultSurplusPatience = 10 * time.Minute"), ContainSubstring("DefaultBootPatience    = 15 * time.Minute")))
	})

	It("and the page of the API name each annotation", func() {
		spec := read("../../docs/spec/machinedeployment.md")
		names := found(`AnnotationPrefix \+ "([a-z-]+)"`, read("../../pkg/apis/machine/v1alpha1/annotations.go"))
		Expect(names).NotTo(BeEmpty())
		for _, name := range names {
			Expect(spec).To(ContainSubstring("`" + name + "`"))
		}
	})
})

func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// files are those of a folder that are no tests.
func files(folder string) []string {
	all, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		panic(err)
	}
	return slices.DeleteFunc(all, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

// found is what a pattern captures in a text: sorted, each once.
func found(pattern, text string) []string {
	var all []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}
