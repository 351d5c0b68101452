// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
)

// An equivalence is a line of equivalent.txt: a mutant that changes nothing observable,
// and why.
//
//	pkg/fit/pack.go | boundary | free < need -> free <= need | an exact fit leaves nothing, and both branches then agree
//
// After the file, the name of a function limits it to that one.
type equivalence struct {
	file, function, kind, change, reason string
	line                                 int
}

func readEquivalences(name string) ([]equivalence, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var all []equivalence
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, " | ")
		if len(parts) != 4 || strings.TrimSpace(parts[3]) == "" {
			return nil, fmt.Errorf("%s:%d: want: file | kind | before -> after | reason", name, number)
		}
		file, function, _ := strings.Cut(parts[0], " ")
		all = append(all, equivalence{file: file, function: function, kind: parts[1], change: parts[2], reason: parts[3], line: number})
	}
	return all, nil
}

// known are the mutants of a package, in the folder of the repository, that are listed. An entry of
// this package that matches none is an error: the code has changed, and with it perhaps the reason.
func known(all []equivalence, folder string, mutants []Mutant) (map[int]bool, error) {
	ids := map[int]bool{}
	var errs []error
	for _, e := range all {
		if path.Dir(e.file) != folder {
			continue
		}
		found := false
		for _, m := range mutants {
			if e.matches(m) {
				ids[m.ID], found = true, true
			}
		}
		if !found {
			errs = append(errs, fmt.Errorf("equivalent.txt:%d: no such mutant any more: %s: %s: %s", e.line, e.file, e.kind, e.change))
		}
	}
	return ids, errors.Join(errs...)
}

func (e equivalence) matches(m Mutant) bool {
	return m.Position.Filename == path.Base(e.file) && (e.function == "" || e.function == m.Function) &&
		m.Kind == e.kind && m.Before+" -> "+m.After == e.change
}
