// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
)

// The placements that users of the original Balancer rely on, from the object and the pods to the answer.
var _ = Describe("What the original Balancer answers", func() {
	free := func(*target) {}
	ab := func(a, b []func(*target)) []target { return []target{named("a", a...), named("b", b...)} }
	one := func(change ...func(*target)) []func(*target) { return change }
	says := func(replicas int, policy v1alpha1.BalancerPolicy, targets []target, want string) {
		GinkgoHelper()
		Expect(desired(New(view(int32(replicas), policy, targets...)))).To(Equal(want))
	}

	DescribeTable("by priority", func(replicas int, a, b []func(*target), want string) {
		says(replicas, builders.InOrder("a", "b"), ab(a, b), want)
	},
		Entry("P1", 10, one(free), one(free), "10/0"),
		Entry("P2", 10, one(between(0, 3)), one(free), "3/7"),
		Entry("P3", 10, one(between(0, 3)), one(between(0, 4)), "3/4 O3"),
		Entry("P4", 10, one(between(2, -1)), one(between(3, -1)), "7/3"),
		Entry("P5", 1, one(between(2, -1)), one(between(3, -1)), "2/3 M4"),
		Entry("P6", 10, one(between(2, 4)), one(between(3, 5)), "4/5 O1"),
		Entry("P7", 10, one(pods(3, 2)), one(free), "10/9"),
		Entry("P8", 6, one(between(3, -1), pods(3, 3)), one(between(3, -1)), "3/6"),
		Entry("P9", 10, one(pods(3, 2)), one(pods(3, 2)), "10/9 O8"),
		Entry("P10", 20, one(between(0, 10), pods(3, 2)), one(between(0, 10), pods(3, 2)), "10/10 O18"),
		Entry("P11", 10, one(between(0, 10), pods(15, 2)), one(between(0, 10), pods(15, 2)), "10/0"),
		Entry("P12", 10, one(pods(3, 2)), one(pods(3, 0)), "10/9"),
		Entry("its example", 5, one(between(1, 7)), one(between(1, -1)), "4/1"),
	)

	DescribeTable("by proportion", func(replicas int, policy v1alpha1.BalancerPolicy, want string, changes ...[]func(*target)) {
		var targets []target
		for i := range policy.Proportions.TargetProportions {
			change := one(free)
			if n := int(i[0] - 'a'); n < len(changes) {
				change = changes[n]
			}
			targets = append(targets, named(i, change...))
		}
		p := New(view(int32(replicas), policy, sorted(targets)...))
		Expect(desired(p)).To(Equal(want))
	},
		Entry("R1", 1, builders.Shares(50, 50), "1/0"),
		Entry("R2", 1, builders.Shares(1, 1, 1), "1/0/0"),
		Entry("R3", 2, builders.Shares(1, 1, 1), "1/1/0"),
		Entry("R4", 10, builders.Shares(50, 50), "5/5"),
		Entry("R5", 10, builders.Shares(70, 30), "7/3"),
		Entry("R6", 100, builders.Shares(70, 30), "70/30"),
		Entry("R7", 11, builders.Shares(50, 50), "6/5"),
		Entry("R8", 10, builders.Shares(50, 50), "3/7", one(between(0, 3))),
		Entry("R9", 10, builders.Shares(50, 50), "3/2 O5", one(between(0, 3)), one(between(0, 2))),
		Entry("R10", 10, builders.Shares(50, 50), "5/5", one(between(3, -1))),
		Entry("R11", 10, builders.Shares(50, 50), "7/3", one(between(7, -1))),
		Entry("R12", 10, builders.Shares(50, 50), "20/0 M10", one(between(20, -1))),
		Entry("R13", 10, builders.Shares(50, 50), "5/5", one(between(3, -1)), one(between(4, -1))),
		Entry("R14", 10, builders.Shares(50, 50), "3/7", one(between(3, 3)), one(between(4, -1))),
		Entry("R15", 10, builders.Shares(50, 50), "3/6 O1", one(between(3, 3)), one(between(4, 6))),
		Entry("R16", 20, builders.Shares(70, 20, 10), "5/10/5", one(between(0, 5))),
		Entry("R17", 20, builders.Shares(48, 48, 4), "5/5/10", one(between(2, 5)), one(between(2, 5)), one(between(2, -1))),
		Entry("R18", 10, builders.Shares(50, 50), "5/7", one(pods(5, 2))),
		Entry("R19", 6, builders.Shares(50, 50), "3/6", one(between(3, -1), pods(3, 3)), one(between(3, -1))),
		Entry("R20", 10, builders.Shares(50, 50), "5/9", one(pods(3, 2))),
		Entry("R21", 18, builders.Shares(50, 50), "9/10 O1", one(between(0, 10), pods(9, 2)), one(between(0, 10))),
		Entry("R22", 20, builders.Shares(50, 50), "10/10", one(pods(15, 3))),
		Entry("R23", 20, builders.Shares(50, 50), "10/20", one(pods(3, 3))),
		Entry("its example", 10, builders.Shares(50, 50), "5/5", one(between(1, 7)), one(between(1, -1))),
		Entry("no weight anywhere", 10, builders.Shares(0, 0), "0/0 O10"),
		Entry("a weight below 0", 10, builders.Shares(-5, 1), "0/4 O6", one(free), one(between(0, 4))),
		Entry("a minimum above the share", 10, builders.Shares(1, 1, 8), "6/0/4", one(between(6, -1))),
	)

	DescribeTable("in one pass of the controller", func(replicas int, policy v1alpha1.BalancerPolicy, a, b []func(*target), want string) {
		Expect(next(New(view(int32(replicas), policy, ab(a, b)...)))).To(Equal(want))
	},
		Entry("C1", 10, builders.Shares(30, 70), one(free), one(free), "3/7"),
		Entry("C2", 10, builders.Shares(30, 70), one(pods(3, 0)), one(free), "3/7"),
		Entry("C4", 10, builders.InOrder("a", "b"), one(free), one(free), "10/0"),
		Entry("C5", 0, builders.Shares(30, 70), one(free), one(free), "0/0"),
		Entry("C6", 1, builders.Shares(30, 70), one(free), one(waiting(time.Hour)), "1/1"),
		Entry("C7", 1, builders.Shares(30, 70), one(free), one(waiting(20*time.Second)), "0/1"),
		Entry("C7, exactly at the end of the timeout", 1, builders.Shares(30, 70), one(free), one(waiting(time.Minute)), "0/1"),
		Entry("C8", 1, builders.Shares(30, 70), one(free), one(waiting(61*time.Second)), "1/1"),
	)

	DescribeTable("about pods", func(total, ready, late int, replicas ...Replica) {
		v := view(10, builders.Shares(50, 50), named("a", asked(int64(len(replicas))), func(t *target) { t.Replicas = replicas }), named("b"))
		v.Balancer.Spec.Policy.Fallback = builders.Fallback(func(f *v1alpha1.Fallback) { *f.StartupTimeoutSeconds = 300 })
		p := New(v)
		s := NewStatus(v, p, Outcome{0, 0}).Targets[0]
		Expect([]int32{s.Observed, s.Ready, s.NotStarted}).To(Equal([]int32{int32(total), int32(ready), int32(late)}))
	},
		Entry("young ones are in time", 3, 2, 0, running(time.Hour), running(time.Hour), pending(time.Minute)),
		Entry("an old one is late", 1, 0, 1, pending(time.Hour)),
		Entry("among others", 3, 2, 1, pending(time.Hour), running(time.Hour), running(time.Hour)),
	)
})

func waiting(age time.Duration) func(*target) {
	return func(t *target) { t.Current, t.Replicas = 1, []Replica{pending(age)} }
}

func sorted(targets []target) []target {
	out := make([]target, len(targets))
	for _, t := range targets {
		out[t.Spec.Name[0]-'a'] = t
	}
	return out
}

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
