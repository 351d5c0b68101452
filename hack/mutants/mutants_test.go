// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
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
	"lived: sample.go:19: boundary: n < limit -> n <= limit",
	"not reached: sample.go:26: arithmetic: a - b -> (a) + (b)",
	"lived: sample.go:33: boundary: v < 0 -> v <= 0",
	"not reached: sample.go:33: operand: i > 0 -> (left out)",
	"not reached: sample.go:48: statement: name = \"two\" -> (left out)",
	"lived: sample.go:55: field: time.Duration(len(name)) * time.Second -> (zero)",
	"not reached: sample.go:61: boundary: a < b -> a <= b",
}

// Mutants of which each must be killed.
var mustDie = []string{
	"sample.go:15: boundary", "sample.go:19: negate", "sample.go:19: force: n < limit -> true", "sample.go:33: operand: v < 0",
	"sample.go:36: arithmetic", "sample.go:36: statement", "sample.go:32: statement", "sample.go:46: statement",
	"sample.go:55: field: name", "sample.go:55: field: map", "sample.go:59: arguments", "sample.go:59: return",
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
	for _, kind := range []string{"boundary", "negate", "arithmetic", "force", "operand", "statement", "branch", "return", "constant", "arguments", "field"} {
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

func TestEquivalentMutants(t *testing.T) {
	out, err := verdictsOf(t, "sample.go | boundary | a < b -> a <= b | a test of this tool\n")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out, "sample.go:61: boundary") {
		t.Error("a mutant that is listed as equivalent is reported")
	}
	for _, wrong := range []string{
		"sample.go | boundary | a < c -> a <= c | gone\n",
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
	r, err := NewRunner(context.Background(), p, b)
	if err != nil {
		t.Fatal(err)
	}
	r.patience = 2 * time.Second
	for id, v := range r.Run(context.Background(), mutants, nil, 1, time.Minute, 2) {
		if mutants[id].Kind == "statement" && v != Killed {
			t.Errorf("%s: %s", mutants[id], v)
		}
	}
}
