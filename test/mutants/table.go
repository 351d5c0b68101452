// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"path"
	"strings"
)

// counts of one package, or of all.
type counts struct {
	killed, lived, unreached, equivalent, untried int
	basic, hard                                   score
}

// score counts the mutants of one class that are not equivalent.
type score struct{ killed, tried, untried, unreached int }

// percent is how many would be killed if all were tried. Those that were tried are a sample of the
// ones that are reached; those that are not reached are all known.
func (s score) percent() float64 {
	all, reached := s.tried+s.untried+s.unreached, s.tried+s.untried
	switch {
	case all == 0 || s.tried == 0 && s.untried > 0:
		return math.NaN()
	case reached == 0:
		return 0
	}
	return 100 * float64(s.killed) / float64(s.tried) * float64(reached) / float64(all)
}

func (s score) String() string {
	if p := s.percent(); !math.IsNaN(p) {
		return fmt.Sprintf("%.1f%%", p)
	}
	return "-"
}

// below reports whether less than this many percent were killed.
func (s score) below(percent float64) bool { return s.percent() < percent }

func (s *score) add(v Verdict) {
	switch v {
	case Killed:
		s.killed++
		s.tried++
	case Lived:
		s.tried++
	case NotReached:
		s.unreached++
	case NotTried:
		s.untried++
	}
}

func (c *counts) add(m Mutant, v Verdict) {
	class := &c.hard
	if m.Basic() {
		class = &c.basic
	}
	class.add(v)
	switch v {
	case Killed:
		c.killed++
	case Lived:
		c.lived++
	case NotReached:
		c.unreached++
	case Equivalent:
		c.equivalent++
	case NotTried:
		c.untried++
	}
}

type table struct {
	out io.Writer
	sum counts
	// basic and hard are how many percent of each class are to be killed in each package; weak are
	// the packages where fewer are.
	basic, hard float64
	weak        []string
}

const row = "%-34s %7v %7v %12v %11v %10v %8v %8v\n"

func newTable(out io.Writer, basic, hard float64) *table {
	fmt.Fprintf(out, row, "package", "killed", "lived", "not reached", "equivalent", "not tried", "basic", "hard")
	return &table{out: out, basic: basic, hard: hard}
}

func (t *table) add(folder string, mutants []Mutant, verdicts map[int]Verdict, list bool) {
	var c counts
	for _, m := range mutants {
		c.add(m, verdicts[m.ID])
		t.sum.add(m, verdicts[m.ID])
	}
	t.print(folder, c)
	if c.basic.below(t.basic) || c.hard.below(t.hard) {
		t.weak = append(t.weak, folder)
	}
	for _, m := range mutants {
		if v := verdicts[m.ID]; list && (v == Lived || v == NotReached) {
			m.Position.Filename = path.Join(folder, m.Position.Filename)
			fmt.Fprintf(t.out, "  %s: %s\n", v, m)
		}
	}
}

func (t *table) print(name string, c counts) {
	fmt.Fprintf(t.out, row, name, c.killed, c.lived, c.unreached, c.equivalent, c.untried, c.basic, c.hard)
}

// total prints the sum, and returns an error that names the packages in which too few were killed.
func (t *table) total() error {
	t.print("all", t.sum)
	if len(t.weak) == 0 {
		return nil
	}
	return fmt.Errorf("fewer than %v%% of basic mutants, or %v%% of hard ones, were killed in %s", t.basic, t.hard, strings.Join(t.weak, ", "))
}
