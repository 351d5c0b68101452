// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// verdictsOf measures the sample, with the given list of equivalent mutants.
func verdictsOf(t *testing.T, equivalent string, more ...string) (string, error) {
	t.Helper()
	list := filepath.Join(t.TempDir(), "equivalent.txt")
	if err := os.WriteFile(list, []byte(equivalent), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	args := append([]string{"-root", "testdata/sample", "-equivalent", list, "-seed", "1", "-basic", "0", "-hard", "0"}, more...)
	err := run(context.Background(), append(args, "."), &out)
	return out.String(), err
}

// The mutants of the sample that must live, because its tests were written not to see them. Whatever kills one of these
// kills for another reason than that a test has failed.
var mustLive = []string{
	"lived: sample.go:25: boundary: n < limit -> n <= limit",
	"not reached: sample.go:32: arithmetic: a - b -> (a) + (b)",
	"lived: sample.go:39: boundary: v < 0 -> v <= 0",
	"not reached: sample.go:39: operand: i > 0 -> (left out)",
	"not reached: sample.go:54: statement: name = \"two\" -> (left out)",
	"lived: sample.go:61: field: time.Duration(len(name)) * time.Second -> (zero)",
	"not reached: sample.go:67: boundary: a < b -> a <= b",
	"lived: sample.go:83: part: cmp.Compare(a, b) -> (zero)",
	"lived: sample.go:88: part: \"two\" -> (left out)",
}

// Mutants that tests must kill.
var mustDie = []string{
	"sample.go:21: boundary", "sample.go:25: negate", "sample.go:25: force: n < limit -> true", "sample.go:39: operand: v < 0",
	"sample.go:42: arithmetic", "sample.go:42: statement", "sample.go:38: statement", "sample.go:52: statement",
	"sample.go:61: field: name", "sample.go:61: field: map", "sample.go:65: arguments", "sample.go:65: return",
	"sample.go:73: constant: high > 0 -> high > (0+1)", "sample.go:82: part", `sample.go:88: part: "one"`,
}

func TestMutantsThatMustLiveLiveAndOthersDie(t *testing.T) {
	out, err := verdictsOf(t, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range mustLive {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("must live: %s", want)
		}
	}
	for _, dead := range mustDie {
		if strings.Contains(out, ": "+dead) {
			t.Errorf("must be killed: %s", dead)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

func TestPackagesWithTooFewKilledAreNamed(t *testing.T) {
	for _, class := range []string{"-basic", "-hard"} {
		out, err := verdictsOf(t, "", class, "97")
		if err == nil || !strings.Contains(err.Error(), "were killed in .") || !strings.Contains(out, "\nall ") {
			t.Errorf("%s: %v\n%s", class, err, out)
		}
	}
}

func TestMutantsOfEveryKindAreMade(t *testing.T) {
	p, err := Load("testdata/sample", ".")
	if err != nil {
		t.Fatal(err)
	}
	mutants, _ := Mutate(p)
	for _, kind := range []string{"boundary", "negate", "arithmetic", "force", "operand", "statement", "branch", "return", "constant", "arguments", "field", "part"} {
		if !slices.ContainsFunc(mutants, func(m Mutant) bool { return m.Kind == kind }) {
			t.Errorf("no mutant of kind %s", kind)
		}
	}
	for _, dead := range mustDie {
		if !slices.ContainsFunc(mutants, func(m Mutant) bool { return strings.HasPrefix(m.String(), dead) }) {
			t.Errorf("no mutant %s, so it cannot be killed", dead)
		}
	}
}

func TestWhatNoTestCouldSeeIsNoMutant(t *testing.T) {
	p, err := Load("testdata/sample", ".")
	if err != nil {
		t.Fatal(err)
	}
	mutants, _ := Mutate(p)
	for _, m := range mutants {
		if m.Function == "Product" && (m.Kind == "arguments" || m.Before == "0" || strings.HasPrefix(m.Before, "return")) {
			t.Errorf("made %s", m)
		}
	}
}

func TestWhatIsComparedMayChangePlaces(t *testing.T) {
	p, err := Load("../..", "./pkg/controller/machinedeployment/plan")
	if err != nil {
		t.Fatal(err)
	}
	mutants, _ := Mutate(p)
	for _, m := range mutants {
		if m.Kind == "arguments" && (strings.HasPrefix(m.Before, "equality.Semantic.DeepEqual(") || strings.HasPrefix(m.Before, "requeue.Sooner(")) {
			t.Errorf("made %s", m)
		}
	}
}

func TestMutantMeetsTheSpecsThatReachItTheFastestFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes")
	note := func(text string, took time.Duration, reached string) string {
		return fmt.Sprintf("begin %q\n%send %d\n", text, reached, took)
	}
	text := "7\n" + note("storms", time.Minute, "1\n2\n") + note("order", 600*time.Millisecond, "1\n") +
		note("sum", 300*time.Millisecond, "1\n3\n") + note("walk", 5*time.Second, "1\n") + "4\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := readNotes(path)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int]string{
		1: `"sum" "order", "walk"`,
		2: `"storms"`,
		3: `"sum"`,
		4: ``,
		7: `"sum" "order", "walk"`,
	} {
		var groups []string
		for _, specs := range n.groups(id, 10*time.Second) {
			var texts []string
			for _, s := range specs {
				texts = append(texts, s.text)
			}
			groups = append(groups, strings.Join(texts, " "))
		}
		if got := strings.Join(groups, ", "); got != want {
			t.Errorf("mutant %d meets %s, want %s", id, got, want)
		}
		if n.reached[id] == nil && !n.early[id] {
			t.Errorf("mutant %d is not reached", id)
		}
	}
	if n, err := readNotes(path + ".missing"); err != nil || len(n.reached) > 0 {
		t.Errorf("without notes: %v, %v", n, err)
	}
}

func TestEquivalentMutants(t *testing.T) {
	out, err := verdictsOf(t, "sample.go before | boundary | a < b -> a <= b | a test of this tool\n")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out, "sample.go:67: boundary") {
		t.Error("a mutant that is listed as equivalent is reported")
	}
	for _, wrong := range []string{
		"sample.go | boundary | a < c -> a <= c | gone\n",
		"sample.go Less | boundary | a < b -> a <= b | in another function\n",
		"sample.go | boundary | a < b -> a <= b\n",
	} {
		if _, err := verdictsOf(t, wrong); err == nil || !strings.Contains(err.Error(), "equivalent.txt:1") {
			t.Errorf("%q: got error %v", wrong, err)
		}
	}
}

func TestMutantThatNeverEndsIsKilled(t *testing.T) {
	p, err := Load("testdata/endless", ".")
	if err != nil {
		t.Fatal(err)
	}
	mutants, insertions := Mutate(p)
	b, err := Build(p, mutants, insertions, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRunner(context.Background(), p, b, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	r.all.cpu = time.Second
	for id, v := range r.Run(context.Background(), mutants, nil, 1, time.Minute, 2) {
		if mutants[id].Kind == "statement" && v != Killed {
			t.Errorf("%s: %s", mutants[id], v)
		}
	}
}

func TestScoreIsThatOfAllMutantsThoughASampleIsTried(t *testing.T) {
	for _, c := range []struct {
		s    score
		want string
	}{
		{score{}, "-"},
		{score{untried: 5, unreached: 5}, "-"},
		{score{unreached: 5}, "0.0%"},
		{score{killed: 9, tried: 10}, "90.0%"},
		{score{killed: 9, tried: 10, unreached: 10}, "45.0%"},
		{score{killed: 9, tried: 10, untried: 80, unreached: 10}, "81.0%"},
	} {
		if got := c.s.String(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.s, got, c.want)
		}
	}
	half := score{killed: 1, tried: 2, untried: 2}
	if !half.below(51) || half.below(50) || (score{}).below(97) {
		t.Error("a score is below what is more than it, and nothing measured is below nothing")
	}
}

func TestEquivalentMutantsAreStillMade(t *testing.T) {
	all, err := readEquivalences("equivalent.txt")
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]bool{}
	for _, e := range all {
		folders[path.Dir(e.file)] = true
	}
	for folder := range folders {
		p, err := Load("../..", "./"+folder)
		if err != nil {
			t.Fatal(err)
		}
		mutants, _ := Mutate(p)
		if _, err := known(all, folder, mutants); err != nil {
			t.Error(err)
		}
	}
}
