// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
)

var (
	// exampleLink is where the page begins to speak of an example.
	exampleLink = regexp.MustCompile(`\]\(\.\./(examples/balancer-[a-z]+\.yaml)\)`)
	// exampleRow is a row about it: replicas, how many start in which target, the answer.
	exampleRow = regexp.MustCompile(`^\| (\d+) \| (?:all well|(\d+) start in ([\w-]+))[^|]* \| (\d+) \| (\d+) \|$`)
)

var _ = It("gives every answer of its page about the examples", func() {
	page, err := os.ReadFile("../../../../docs/balancer.md")
	Expect(err).NotTo(HaveOccurred())
	var example *v1alpha1.Balancer
	checked := 0
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if link := exampleLink.FindStringSubmatch(line); link != nil {
			example = readExample("../../../../" + link[1])
		}
		if r := exampleRow.FindStringSubmatch(line); r != nil {
			Expect(desired(New(situation(example, r[1], r[2], r[3])))).To(HavePrefix("%s/%s", r[4], r[5]), line)
			checked++
		}
	}
	Expect(checked).To(Equal(strings.Count(string(page), "all well") + strings.Count(string(page), " start in shop")))
})

func readExample(file string) *v1alpha1.Balancer {
	GinkgoHelper()
	text, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	first, _, _ := strings.Cut(string(text), "\n---\n")
	b := &v1alpha1.Balancer{}
	Expect(yaml.UnmarshalStrict([]byte(first), b)).To(Succeed())
	return b
}

// situation is an example with this many replicas. All of them run, or only some of one target's.
func situation(b *v1alpha1.Balancer, replicas, start, in string) View {
	n, err := strconv.ParseInt(replicas, 10, 32)
	Expect(err).NotTo(HaveOccurred())
	b = b.DeepCopy()
	*ensure(&b.Spec.Replicas) = int32(n)
	v := View{Now: noon, Balancer: b}
	for _, spec := range b.Spec.Targets {
		v.Targets = append(v.Targets, target{Spec: spec, Known: true})
	}
	for i, share := range New(v).Shares {
		all, stuck := int(share.Base), 0
		if share.Name == in {
			runs, err := strconv.Atoi(start)
			Expect(err).NotTo(HaveOccurred(), fmt.Sprint(start))
			stuck = all - runs
		}
		pods(all, stuck)(&v.Targets[i])
	}
	return v
}

func ensure(n **int32) *int32 {
	if *n == nil {
		*n = new(int32)
	}
	return *n
}
