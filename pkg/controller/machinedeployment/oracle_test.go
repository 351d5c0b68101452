// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinedeployment_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/oracle"
)

var ours = oracle.Implementation{Name: "ours", Program: controller}

// yetToCome are words of stories about what this controller does not do yet.
var yetToCome = []string{"InPlaceUpdate", "rollbackTo", "trigger-deletion-by-mcm", "freeze", "Frozen"}

// isCovered reports whether a story is about what this controller does.
func isCovered(story oracle.Story) bool {
	text := story.String()
	safety := slices.ContainsFunc(story.Rows, func(row string) bool { return strings.HasPrefix(row, "F") })
	return !safety && !slices.ContainsFunc(yetToCome, func(word string) bool { return strings.Contains(text, word) })
}

// onPurpose are stories that end differently, by name, with the row of
// docs/decisions/0024-differences-from-stock.md.
var onPurpose = map[string]string{
	"a machine that no longer matches":     "O6",
	"a machine that nobody can create":     "E2",
	"a set that is invalid stands still":   "E2",
	"a selector that selects all machines": "V4",
}

// ofChance are fields that depend in bad weather on when something was decided: which machines there are,
// and what they are doing. Of these, only the number is compared.
var ofChance = regexp.MustCompile(`^Node |^Machine .* (metadata|spec|status)|^MachineSet .* status\.(ready|available)Replicas`)

// seeds returns the seeds of random stories, ORACLE of them if that is set.
func seeds(usual int) (all []uint64) {
	if n, err := strconv.Atoi(os.Getenv("ORACLE")); err == nil {
		usual = n
	}
	for n := range usual {
		all = append(all, uint64(n+1))
	}
	return all
}

// playStory plays a story in bad weather, and forgets what is of chance.
func playStory(story oracle.Story, of oracle.Implementation) oracle.Ending {
	ending := oracle.Play(suite, story, of)
	for _, rest := range ending.Rests {
		for object, fields := range rest.State {
			maps.DeleteFunc(fields, func(field, _ string) bool { return ofChance.MatchString(object + " " + field) })
			if len(fields) == 0 && strings.HasPrefix(object, oracle.Node) {
				delete(rest.State, object)
			}
		}
	}
	return ending
}

func expectSame(story oracle.Story) {
	GinkgoHelper()
	verdict := oracle.Judge(suite, story, ours)
	Expect(verdict.Same()).To(BeTrue(), verdict.String)
}

var _ = Describe("Beside stock", Label("oracle"), func() {
	for _, story := range oracle.Stories() {
		switch row, differs := onPurpose[story.Name]; {
		case !isCovered(story):
		case differs:
			It(row+": it ends otherwise on purpose: "+story.Name, func() {
				Expect(oracle.Judge(suite, story, ours).Differences).NotTo(BeEmpty())
			})
		default:
			It("it ends the same: "+story.Name, func() { expectSame(story) })
		}
	}

	It("it ends the same in random stories", func() {
		played := 0
		for _, seed := range seeds(10) {
			if story := oracle.Random("sets", seed); isCovered(story) {
				expectSame(story)
				played++
			}
		}
		AddReportEntry("stories", played)
	})

	It("it ends the same in random stories in bad weather", func() {
		for _, seed := range seeds(4) {
			story := oracle.RandomInWeather("sets", seed)
			if !isCovered(story) || strings.Contains(strings.ToLower(story.String()), "orphan") { // what comes first is chance
				continue
			}
			stock, here := playStory(story, oracle.Stock), playStory(story, ours)
			differences := oracle.Compare(stock, here)
			Expect(differences).To(BeEmpty(), func() string { return story.String() + "\n" + differences.String() })
			Expect(here.Seen.Breaches[oracle.Over]).To(BeNumerically("<=", stock.Seen.Breaches[oracle.Over]), story.String)
		}
	})
})
