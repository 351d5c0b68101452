// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"slices"
)

// grade says how bad a trouble is.
type grade int

// The grades, the worst first.
const (
	// broken: workload suffers, or soon will.
	broken grade = iota
	// lacking: something that was asked for is not there.
	lacking
	// noted: all runs, but hardly as it is meant to.
	noted
)

// finding is a trouble with what orders it.
type finding struct {
	Trouble
	grade grade
}

func (r *reading) addProblem(g grade, object, what, do string) {
	r.found = append(r.found, finding{Trouble{Object: object, What: what, Do: do}, g})
}

// troubles are all that was found, and what only shows in the whole.
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
