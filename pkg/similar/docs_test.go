// SPDX-License-Identifier: Apache-2.0

package similar_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	. "github.com/evenkeel/evenkeel/pkg/similar"
)

func source(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// row is a table row of a page: "| `a 100, b 96` | `a b` |".
var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\|")

var _ = DescribeTable("gives every answer of its pages", func(page string, least int) {
	rows := row.FindAllStringSubmatch(source(page), -1)
	Expect(len(rows)).To(BeNumerically(">=", least))
	for _, r := range rows {
		var groups []string
		for _, group := range Groups(readTemplates(r[1]), Defaults()) {
			groups = append(groups, strings.Join(group, " "))
		}
		Expect(strings.Join(groups, " ; ")).To(Equal(r[2]), r[0])
	}
},
	Entry(nil, "../../docs/decisions/0003-similar-groups.md", 8),
)

// readTemplates reads names with free CPU, or free CPU and memory: "a 100, b 96/200".
func readTemplates(s string) []Template {
	var all []Template
	for word := range strings.SplitSeq(s, ", ") {
		var name string
		var cpu, memory int64
		if n, _ := fmt.Sscanf(word, "%s %d/%d", &name, &cpu, &memory); n < 2 {
			panic(word)
		}
		t := node(size("cpu=1k memory=1Mi")).template(name)
		t.Free = corev1.ResourceList{
			"cpu": *resource.NewQuantity(cpu, resource.DecimalSI), "memory": *resource.NewQuantity(memory, resource.DecimalSI),
		}
		all = append(all, t)
	}
	return all
}

var _ = It("documents each flag and its default, and each label that never counts", func() {
	page := source("../../docs/similar.md")
	for flag, value := range map[string]float64{
		"--memory-difference-ratio":          Defaults().MemoryRatio,
		"--max-allocatable-difference-ratio": Defaults().AllocatableRatio,
		"--max-free-difference-ratio":        Defaults().FreeRatio,
	} {
		Expect(page).To(ContainSubstring(fmt.Sprintf("| `%s` | %v |", flag, value)))
	}
	never := regexp.MustCompile("(?m)^- `([^`]+)`").FindAllStringSubmatch(page, -1)
	Expect(len(never)).To(BeNumerically(">=", 15))
	for _, m := range never {
		key := strings.ReplaceAll(m[1], "*", "x.example.com")
		a, b := node(label(key+"=a")).template("a"), node(label(key+"=b")).template("b")
		Expect(Similar(a, b, Defaults())).To(BeTrue(), key)
	}
})
