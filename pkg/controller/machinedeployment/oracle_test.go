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

// onPurpose are stories that end differently, by name, with the row of
// docs/decisions/0024-differences-from-stock.md.
var onPurpose = map[string]purpose{
	"a machine that no longer matches":              {row: "O6"},
	"a machine that nobody can create":              {row: "E2"},
	"a set that is invalid stands still":            {row: "E2"},
	"a selector that selects all machines":          {row: "V4"},
	"a deployment that is invalid stands still":     {row: "E2"},
	"a selector of everything":                      {row: "E3"},
	"a strategy without its block":                  {row: "E2", in: regexp.MustCompile(`^MachineDeployment pool status\.conditions\[ReplicaFailure\]`)},
	"a template without the labels of the selector": {row: "E2", in: regexp.MustCompile(`^MachineDeployment pool status\.conditions\[ReplicaFailure\]`)},
	"a finalizer that others hold":                  {row: "O7", in: regexp.MustCompile(`^MachineDeployment pool status\.(r|updatedR)eplicas`)},
	"a machine that the server refuses":             {row: "D10"},
	"a named machine of another deployment":         {row: "N3", in: regexp.MustCompile(`^(Machine alone#.|MachineDeployment pool) metadata\.annotations`)},
	"a label that freezes":                          {row: "F4"},
	"a deployment that recreates is frozen by hand": {row: "F5"},
	"back from a template that has no set yet":      {row: "B1", in: regexp.MustCompile(`^Event MachineSet `)},

	"a machine that boots in place":                    {row: "I5"},
	"going back in place":                              {row: "I2"},
	"scaling a manual update":                          {row: "D7"},
	"scaling in a rollout that recreates stands still": {row: "D7"},
}

// purpose is why a story ends differently, and in which fields alone, if it is in few.
type purpose struct {
	row string
	in  *regexp.Regexp
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

// playStory plays a story, and forgets some fields.
func playStory(story oracle.Story, of oracle.Implementation, forget *regexp.Regexp) oracle.Ending {
	ending := oracle.Play(suite, story, of)
	for _, rest := range ending.Rests {
		for object, fields := range rest.State {
			maps.DeleteFunc(fields, func(field, _ string) bool { return forget.MatchString(object + " " + field) })
			if len(fields) == 0 && (strings.HasPrefix(object, oracle.Node) || strings.HasPrefix(object, "Event ")) {
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

// inVain are events about machines that stock creates beyond replicas, and deletes in the next pass (D5).
var inVain = regexp.MustCompile(`^Event MachineSet \S+ Normal Successful(Create|Delete)$`)

// differs returns how a random story differs from stock; empty if it does not. There may be no machines in
// vain.
func differs(story oracle.Story) string {
	verdict := oracle.Judge(suite, story, ours)
	more := slices.ContainsFunc(verdict.Differences, func(d oracle.Difference) bool {
		return d.Left != "seen" || !inVain.MatchString(d.Object+" "+d.Field)
	})
	switch {
	case verdict.Same():
		return ""
	case more || len(verdict.Worse) > 0:
		return verdict.String()
	}
	if rest := oracle.Compare(playStory(story, oracle.Stock, inVain), playStory(story, ours, inVain)); len(rest) > 0 {
		return story.String() + "\n" + rest.String()
	}
	return ""
}

var _ = Describe("Beside stock", Label("oracle"), func() {
	for _, story := range oracle.Stories() {
		switch why, differs := onPurpose[story.Name]; {
		case differs:
			It(why.row+": it ends otherwise on purpose: "+story.Name, func() {
				Expect(oracle.Judge(suite, story, ours).Differences).NotTo(BeEmpty())
				if why.in != nil {
					Expect(oracle.Compare(playStory(story, oracle.Stock, why.in), playStory(story, ours, why.in)).String()).To(BeEmpty(), "nothing else differs")
				}
			})
		default:
			It("it ends the same: "+story.Name, func() { expectSame(story) })
		}
	}

	for slice, usual := range map[string]int{"sets": 4, "scaling": 3, "rolling": 3, "recreate": 2, "rollback": 2, "safety": 2} {
		It("it ends the same in random stories of "+slice, func() {
			var all []string
			for _, seed := range seeds(usual) {
				if text := differs(oracle.Random(slice, seed)); text != "" {
					all = append(all, text)
				}
			}
			Expect(all).To(BeEmpty(), func() string { return strings.Join(all, "\n") })
		})

		It("it ends the same in bad weather in random stories of "+slice, func() {
			for _, seed := range seeds(min(usual, 2)) {
				story := oracle.RandomInWeather(slice, seed)
				if strings.Contains(strings.ToLower(story.String()), "orphan") { // what comes first is chance
					continue
				}
				stock, here := playStory(story, oracle.Stock, ofChance), playStory(story, ours, ofChance)
				differences := oracle.Compare(stock, here)
				Expect(differences).To(BeEmpty(), func() string { return story.String() + "\n" + differences.String() })
				Expect(here.Seen.Breaches[oracle.Over]).To(BeNumerically("<=", stock.Seen.Breaches[oracle.Over]), story.String)
			}
		})
	}
})
