// SPDX-License-Identifier: Apache-2.0

package fit

import "math"

// MaxWork limits the work of one packing, in comparisons of about ten nanoseconds each. Half of it
// is available to all pods, first come, first served. The other half is divided evenly among the
// namespaces, so that the pods of one namespace, however many and unusual, leave enough for the
// others. A namespace begins no step that costs more than is left of its part.
const MaxWork = 4 << 20

// budget is the work that a packing may still do.
type budget struct {
	common      int
	purses      map[string]*purse
	interrupted func() bool
	// rest is the number of calls of allows until interrupted is called again.
	rest    int
	stopped bool
}

// purse is the part of one namespace.
type purse struct {
	left int
	// cut reports whether pods of the namespace were not considered because the budget was used up.
	cut bool
}

func newBudget(work int, shapes []*shape, interrupted func() bool) *budget {
	b := &budget{common: work / 2, purses: map[string]*purse{}, interrupted: interrupted}
	for _, s := range shapes {
		namespace := s.like.Object.Namespace
		if b.purses[namespace] == nil {
			b.purses[namespace] = &purse{}
		}
		s.purse = b.purses[namespace]
	}
	for _, p := range b.purses {
		p.left = work / 2 / len(b.purses)
	}
	return b
}

// allows reports whether a namespace has any budget left.
func (b *budget) allows(p *purse) bool {
	if b.rest--; b.rest < 0 && b.interrupted != nil {
		b.rest, b.stopped = 255, b.stopped || b.interrupted()
	}
	if b.stopped || b.common <= 0 && p.left <= 0 {
		p.cut = true
		return false
	}
	return true
}

// stepLimit returns how much each part of a namespace's next step may cost: to compare a pod with a
// node, to compare it with other pods, and to place it. While something is left of the common half,
// there is no limit.
func (b *budget) stepLimit(p *purse) int {
	if b.common > 0 {
		return math.MaxInt
	}
	return p.left
}

// forfeit gives up what is left of a purse: it is too little for the next step.
func (p *purse) forfeit() { p.left, p.cut = min(p.left, 0), true }

func (b *budget) spend(p *purse, work int) {
	if b.common > 0 {
		b.common -= work
	} else {
		p.left -= work
	}
}

// isLow reports whether too little is left to try another order.
func (b *budget) isLow() bool { return b.stopped || b.common <= 0 }
