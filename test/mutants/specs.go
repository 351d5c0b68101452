// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// firstStep is how long the specs of the first group may take together. They kill most mutants.
const firstStep = time.Second

// spec is one spec of Ginkgo.
type spec struct {
	// text is its full text, quoted.
	text string
	took time.Duration
}

// notes are what a run without a mutant has noted.
type notes struct {
	// specs are all that ran, in ascending order of the time that they took.
	specs []spec
	// reached are the specs that reach each mutant, by their texts. One that is reached outside of
	// all specs has an entry, too.
	reached map[int]map[string]bool
	// early are mutants that are reached before the first spec begins: any spec may see these.
	early map[int]bool
}

func readNotes(path string) (notes, error) {
	n := notes{reached: map[int]map[string]bool{}, early: map[int]bool{}}
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return n, err
	}
	current := ""
	for line := range strings.Lines(string(content)) {
		n.read(strings.TrimSpace(line), &current)
	}
	slices.SortStableFunc(n.specs, func(a, b spec) int { return cmp.Compare(a.took, b.took) })
	return n, nil
}

// read reads one line; current is the spec that runs then, or "".
func (n *notes) read(line string, current *string) {
	if text, ok := strings.CutPrefix(line, beginNote); ok {
		*current = text
		n.specs = append(n.specs, spec{text: text})
		return
	}
	if took, ok := strings.CutPrefix(line, endNote); ok {
		if nanoseconds, err := strconv.ParseInt(took, 10, 64); err == nil && *current != "" {
			n.specs[len(n.specs)-1].took = time.Duration(nanoseconds)
		}
		*current = ""
		return
	}
	id, err := strconv.Atoi(line)
	if err != nil {
		return
	}
	if n.reached[id] == nil {
		n.reached[id] = map[string]bool{}
	}
	if *current != "" {
		n.reached[id][*current] = true
	} else if len(n.specs) == 0 {
		n.early[id] = true
	}
}

// groups are the specs to try for a mutant, one group after the other: those that reach it, the
// fastest first, and as many as take no longer than limit together, but at least one.
func (n notes) groups(id int, limit time.Duration) [][]spec {
	specs := slices.DeleteFunc(slices.Clone(n.specs), func(s spec) bool { return !n.early[id] && !n.reached[id][s.text] })
	specs = specs[:max(within(specs, limit), min(1, len(specs)))]
	first := within(specs, firstStep)
	if first == 0 || first == len(specs) {
		return [][]spec{specs}
	}
	return [][]spec{specs[:first], specs[first:]}
}

// within is how many of the specs take no longer than limit together.
func within(specs []spec, limit time.Duration) int {
	for i, s := range specs {
		if limit -= s.took; limit < 0 {
			return i
		}
	}
	return len(specs)
}

// timeOf is how long specs take together.
func timeOf(specs []spec) time.Duration {
	var sum time.Duration
	for _, s := range specs {
		sum += s.took
	}
	return sum
}

// halves are every other spec, and the rest.
func (n notes) halves() [2][]spec {
	var halves [2][]spec
	for i, s := range n.specs {
		halves[i%2] = append(halves[i%2], s)
	}
	return halves
}

// writeSpecs writes the file that chooses specs.
func writeSpecs(path string, specs []spec) error {
	texts := map[string]bool{}
	for _, s := range specs {
		texts[s.text] = true
	}
	return os.WriteFile(path, []byte(strings.Join(slices.Sorted(maps.Keys(texts)), "\n")+"\n"), 0o600)
}
