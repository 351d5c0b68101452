// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"slices"
)

// grade is the severity of a problem.
type grade int

// The grades, the worst first.
const (
	// broken: workload suffers, or soon will.
	broken grade = iota
	// lacking: something that was requested is missing.
	lacking
	// noted: everything runs, but probably not as intended.
	noted
)

// finding is a problem with its sort order.
type finding struct {
	Trouble
	grade grade
}

func (r *reading) addProblem(g grade, object, what, do string) {
	r.found = append(r.found, finding{Trouble{Object: object, What: what, Do: do}, g})
}

// troubles returns all findings, and problems that only the whole shows.
func (r *reading) troubles() []Trouble {
	r.inspectWaiting()
	slices.SortStableFunc(r.found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.grade, b.grade), cmp.Compare(a.Object, b.Object), cmp.Compare(a.What, b.What))
	})
	troubles := make([]Trouble, 0, len(r.found))
	for _, f := range r.found {
		troubles = append(troubles, f.Trouble)
	}
	return troubles
}

// objectRef returns kind/namespace/name.
func objectRef(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }
