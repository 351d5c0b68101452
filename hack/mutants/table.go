// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path"
	"strings"
)

// counts of one package, or of all.
type counts struct {
	killed, lived, unreached, equivalent, untried int
	// basic and hard are how many were killed of those that were tried or not reached, by class.
	basic, hard ratio
}

type ratio struct{ killed, all int }

func (r ratio) String() string {
	if r.all == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(r.killed)/float64(r.all))
}

// below reports whether less than this many percent were killed.
func (r ratio) below(percent float64) bool { return 100*float64(r.killed) < percent*float64(r.all) }

func (r *ratio) add(killed bool) {
	r.all++
	if killed {
		r.killed++
	}
}

func (c *counts) add(m Mutant, v Verdict) {
	class := &c.hard
	if m.Basic() {
		class = &c.basic
	}
	switch v {
	case Killed:
		c.killed++
		class.add(true)
	case Lived:
		c.lived++
		class.add(false)
	case NotReached:
		c.unreached++
		class.add(false)
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
