// SPDX-License-Identifier: Apache-2.0

package fit

// MaxWork bounds the work of one packing, counted in comparisons of some ten nanoseconds. Half of it goes to whoever comes
// first; the other half is divided evenly among the namespaces of the pods, so that the pods of one, however many and
// odd, leave enough for those of another.
const MaxWork = 4 << 20

// budget is the work that a packing may still do.
type budget struct {
	common      int
	purses      map[string]*purse
	interrupted func() bool
	// rest is how many questions are allowed until the next look at interrupted.
	rest    int
	stopped bool
}

// purse is the part of one namespace.
type purse struct {
	left int
	// cut: pods of the namespace were not looked at, for want of budget.
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

// allows reports whether there is anything left for a namespace.
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

func (b *budget) spend(p *purse, work int) {
	if b.common > 0 {
		b.common -= work
	} else {
		p.left -= work
	}
}

// isLow reports whether too little is left to try another way.
func (b *budget) isLow() bool { return b.stopped || b.common <= 0 }
