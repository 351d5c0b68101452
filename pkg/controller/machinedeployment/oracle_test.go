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

// isCovered reports whether a story is about what this controller does: MachineSets of their own,
// without the safety controller, which removes the label freeze from them.
func isCovered(story oracle.Story) bool {
	text := story.String()
	return !strings.Contains(text, `"kind":"MachineDeployment"`) && !strings.Contains(text, "freeze")
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

// tries is how often stock plays a story: which of several equal machines it deletes is chance (S7).
const tries = 8

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

// compare returns how an ending differs from all that stock can have, and what stock promises and was
// not kept.
func compare(story oracle.Story) (differences oracle.Differences, worse []string) {
	here := playStory(story, ours)
	for range tries {
		stock := playStory(story, oracle.Stock)
		worse = slices.DeleteFunc(here.Seen.Worse(stock.Seen), func(text string) bool {
			return story.Weather > 0 && strings.HasPrefix(text, string(oracle.Unmarked)) // the machine controller does it, too (O9)
		})
		if differences = oracle.Compare(stock, here); len(differences) == 0 {
			break
		}
	}
	return differences, worse
}

func playStory(story oracle.Story, of oracle.Implementation) oracle.Ending {
	ending := oracle.Play(suite, story, of)
	for _, rest := range ending.Rests {
		for object, fields := range rest.State {
			delete(fields, "spec.template.spec.drainTimeout") // stock's safety controller writes 1m as 1m0s
			maps.DeleteFunc(fields, func(field, _ string) bool {
				return story.Weather > 0 && ofChance.MatchString(object+" "+field)
			})
			if len(fields) == 0 && strings.HasPrefix(object, oracle.Node) {
				delete(rest.State, object)
			}
		}
	}
	return ending
}

func expectEqual(story oracle.Story) {
	GinkgoHelper()
	differences, worse := compare(story)
	Expect(differences).To(BeEmpty(), func() string { return story.String() + "\n" + differences.String() })
	Expect(worse).To(BeEmpty(), story.String)
}

var _ = Describe("Beside stock", Label("oracle"), func() {
	for _, story := range oracle.Stories() {
		switch row, differs := onPurpose[story.Name]; {
		case !isCovered(story):
		case differs:
			It(row+": it ends otherwise on purpose: "+story.Name, func() {
				differences, _ := compare(story)
				Expect(differences).NotTo(BeEmpty())
			})
		default:
			It("it ends the same: "+story.Name, func() { expectEqual(story) })
		}
	}

	It("it ends the same in random stories", func() {
		for _, seed := range seeds(10) {
			if story := oracle.Random("sets", seed); isCovered(story) {
				expectEqual(story)
			}
		}
	})

	It("it ends the same in random stories in bad weather", func() {
		for _, seed := range seeds(4) {
			story := oracle.RandomInWeather("sets", seed)
			if isCovered(story) && !strings.Contains(strings.ToLower(story.String()), "orphan") { // what comes first is chance
				expectEqual(story)
			}
		}
	})
})
