// SPDX-License-Identifier: Apache-2.0

package screen_test

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plugin/explain"
	. "github.com/evenkeel/evenkeel/internal/plugin/screen"
)

func drawn(v overview.Overview, s Style) string {
	return strings.Join(Status(v, s), "\n") + "\n"
}

var _ = DescribeTable("The status looks as it should",
	func(name string, v overview.Overview, s Style) {
		golden(name, drawn(v, s))
	},
	Entry("in three zones of five", "three-zones", small(), Style{Width: 80}),
	Entry("in three zones of five, in colour", "three-zones-color", small(), Style{Width: 80, Color: true}),
	Entry("in three zones of five, on an old terminal", "three-zones-ascii", small(), Style{Width: 80, ASCII: true}),
	Entry("in three zones of five, on a wide screen with each machine", "three-zones-wide", small(), Style{Width: 160, Wide: true}),
	Entry("on the narrowest screen", "three-zones-narrow", small(), Style{Width: 1}),
	Entry("of which some are prepared, with each machine", "prepared-wide", prepared(), Style{Width: 160, Wide: true}),
	Entry("in three zones of 200", "large", large(), Style{Width: 80}),
	Entry("in three zones of 200 on a wide screen", "large-wide", large(), Style{Width: 200}),
	Entry("in three zones of 200 of many namespaces", "large-spaces", large(), Style{Width: 80, Spaces: true}),
	Entry("with everything wrong at once", "broken", broken(), Style{Width: 80}),
	Entry("with everything wrong at once, on a wide screen", "broken-wide", broken(), Style{Width: 200, Wide: true}),
	Entry("with nothing there", "empty", overview.Overview{At: now}, Style{Width: 80}),
	Entry("with nothing installed", "nothing-installed", overview.Overview{At: now, PodsWaiting: -1, Missing: []string{
		"balancers, federatedhorizontalpodautoscalers, machineclasses, machinedeployments, machines, machinesets, reserves: not installed in this cluster", "nodes, pods: there is no target cluster",
	}}, Style{Width: 80}),
)

var escapes = regexp.MustCompile("\x1b\\[[0-9]*m")

var _ = It("Colours say nothing that is not said without them", func() {
	for _, v := range []overview.Overview{small(), large(), broken()} {
		Expect(escapes.ReplaceAllString(drawn(v, Style{Width: 80, Color: true}), "")).To(Equal(drawn(v, Style{Width: 80})))
	}
})

var _ = It("Only characters that every terminal has are used where that was asked for", func() {
	for _, v := range []overview.Overview{small(), large(), broken()} {
		Expect(drawn(v, Style{Width: 80, ASCII: true})).To(MatchRegexp(`^[\n -~]*$`))
	}
})

var _ = It("Many troubles are not all shown", func() {
	v := small()
	for i := range 25 {
		v.Troubles = append(v.Troubles, overview.Trouble{Object: fmt.Sprint("pod/default/p", i), What: "waits", Do: "look"})
	}
	Expect(drawn(v, Style{Width: 80})).To(And(ContainSubstring("PROBLEMS (25)"), ContainSubstring("and 5 more: use -o json to see all"), Not(ContainSubstring("p20"))))
})

// noise is text as a user may have written it.
func noise(t *rapid.T, label string) string {
	return rapid.OneOf(rapid.StringN(0, 90, 90), rapid.StringMatching(`[a-z0-9-]{0,70}`)).Draw(t, label)
}

func anyZone(t *rapid.T) overview.Zone {
	number := func(label string) int {
		return rapid.OneOf(rapid.IntRange(0, 9), rapid.IntRange(0, 2147483647)).Draw(t, label)
	}
	all := crew{}
	for _, state := range overview.States {
		if n := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 300)).Draw(t, string(state)); n > 0 {
			all[state] = n
		}
	}
	z := zoneOf(noise(t, "zone"), noise(t, "place"), number("R"), number("X"), all)
	if rapid.Bool().Draw(t, "bounds") {
		z = bounded(z, number("min"), number("max"))
	}
	return z
}

func anyOverview(t *rapid.T) overview.Overview {
	v := broken()
	few := func(label string) int { return rapid.IntRange(0, 3).Draw(t, label) }
	for range few("pools") {
		p := overview.Pool{Namespace: noise(t, "space"), Name: noise(t, "pool"), Excess: noise(t, "excess"), Skew: few("skew")}
		for range 1 + few("zones") {
			p.Zones = append(p.Zones, anyZone(t))
			for m := range p.Zones[len(p.Zones)-1].Machines {
				p.Zones[len(p.Zones)-1].Machines[m].Images = noise(t, "images")
			}
		}
		v.Pools = append(v.Pools, p)
	}
	for range few("targets") {
		n := rapid.IntRange(0, 2147483647)
		v.Balancers[0].Targets = append(v.Balancers[0].Targets, overview.Target{
			Name: noise(t, "target"), Wanted: n.Draw(t, "wanted"), Current: n.Draw(t, "current"), Ready: n.Draw(t, "ready"), Why: noise(t, "why"),
		})
	}
	for range few("buffers") {
		v.Buffers = append(v.Buffers, overview.Buffer{
			Namespace: noise(t, "space"), Name: noise(t, "buffer"), Shape: noise(t, "shape"), Dedicated: noise(t, "owner"), Chunks: rapid.IntRange(-1, 2147483647).Draw(t, "chunks"),
			Ready: overview.Condition{Status: "False", Reason: noise(t, "reason"), Message: noise(t, "message")},
		})
	}
	for range few("requests") {
		v.Requests = append(v.Requests, overview.Request{
			Namespace: noise(t, "space"), Name: noise(t, "request"), Pods: rapid.IntRange(0, 2147483647).Draw(t, "pods"), Booked: noise(t, "booked"), Left: noise(t, "left"),
			Ready: overview.Condition{Status: rapid.SampledFrom([]string{"True", "False"}).Draw(t, "status"), Reason: noise(t, "reason"), Message: noise(t, "message")},
		})
	}
	for range few("reserves") {
		v.Reserves = append(v.Reserves, overview.Reserve{
			Namespace: noise(t, "space"), Name: noise(t, "reserve"), Active: []string{noise(t, "schedule")}, Wanted: rapid.IntRange(0, 2147483647).Draw(t, "wanted"),
			Next: &overview.Change{At: now.Add(time.Duration(rapid.Int64().Draw(t, "next")))}, Ready: overview.Condition{Status: "False", Reason: noise(t, "reason"), Message: noise(t, "message")},
		})
	}
	for range few("troubles") {
		v.Troubles = append(v.Troubles, overview.Trouble{Object: noise(t, "object"), What: noise(t, "what"), Do: noise(t, "do")})
	}
	v.Federated[0].Clusters[0].Name, v.Federated[0].Workload = noise(t, "cluster"), noise(t, "workload")
	v.Missing = append(v.Missing, noise(t, "missing"))
	return v
}

var _ = It("No line is longer than the screen is wide, and none has orders for the terminal, whatever there is to show", func() {
	rapid.Check(GinkgoT(), func(t *rapid.T) {
		s := Style{
			Width: rapid.IntRange(Narrowest, 220).Draw(t, "width"), ASCII: rapid.Bool().Draw(t, "ascii"),
			Wide: rapid.Bool().Draw(t, "wide"), Spaces: rapid.Bool().Draw(t, "spaces"),
		}
		for _, line := range Status(anyOverview(t), s) {
			if n := utf8.RuneCountInString(line); n > s.Width {
				t.Fatalf("%d columns of %d: %q", n, s.Width, line)
			}
			if strings.ContainsAny(line, "\x1b\n\r\t") {
				t.Fatalf("orders for the terminal: %q", line)
			}
		}
	})
})

var _ = It("Characters of two columns count as two, so that no line is longer than the screen is wide", func() {
	text := strings.Repeat("配额不足，请联系管理员。", 20)
	v := small()
	v.Troubles = []overview.Trouble{{Object: "pod/default/p", What: "a" + text, Do: text}}
	v.Reserves = []overview.Reserve{{Namespace: "default", Name: "r", Ready: overview.Condition{Status: "False", Reason: text, Message: text}}}
	v.Pools[0].Zones[0].Machines[0].Why = text
	v.Missing = []string{text}
	for width := Narrowest; width < 100; width++ {
		lines := Status(v, Style{Width: width, Wide: true})
		lines = append(lines, Account(explain.Account{Title: text, Why: []string{text}}, Style{Width: width})...)
		for _, line := range lines {
			columns := utf8.RuneCountInString(line)
			for _, r := range line {
				if unicode.Is(unicode.Han, r) || r == '，' || r == '。' {
					columns++
				}
			}
			Expect(columns).To(BeNumerically("<=", width), line)
		}
	}
})

var _ = It("An explanation is no wider than the screen, whatever its text", func() {
	rapid.Check(GinkgoT(), func(t *rapid.T) {
		a := explain.Account{
			Title: noise(t, "title"), Facts: []explain.Fact{{Name: noise(t, "name"), Value: noise(t, "value")}},
			Why: []string{noise(t, "why")}, Next: []string{noise(t, "next")},
		}
		width := rapid.IntRange(Narrowest, 220).Draw(t, "width")
		for _, line := range Account(a, Style{Width: width}) {
			if n := utf8.RuneCountInString(line); n > width || strings.ContainsAny(line, "\x1b\n\r\t") {
				t.Fatalf("%d columns of %d: %q", n, width, line)
			}
		}
	})
})

var _ = It("An explanation has its sections in order, and none that is empty", func() {
	a := explain.Account{Title: "Machine m: working", Facts: []explain.Fact{{Name: "Node", Value: "n"}, {Name: "Priority", Value: "3"}}, Why: []string{"Because."}, See: []string{"docs"}}
	Expect(Account(a, Style{Width: 80})).To(Equal([]string{
		"Machine m: working", "", "  Node      n", "  Priority  3", "", "Why", "  Because.", "", "More", "  docs",
	}))
})
