// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"errors"
	"fmt"

	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/lru"
)

// maxCompiled is how many selectors are remembered, of about 60 KB each. The budget of one packing
// compiles fewer, so that a user with very many does not displace those that others use each time.
const maxCompiled = 512

// celFeatures are the scheduler's default features.
var celFeatures = cel.Features{EnableConsumableCapacity: true}

// Selectors remember selectors that were compiled, for all inventories that are made one after the
// other. They can be used concurrently.
type Selectors struct {
	compiled *cel.Cache
	costs    *lru.Cache
}

// NewSelectors returns selectors that remember nothing yet.
func NewSelectors() *Selectors {
	return &Selectors{compiled: cel.NewCache(maxCompiled, celFeatures), costs: lru.New(maxCompiled)}
}

// estimate is what is known of a selector: its largest cost, or why it is not evaluated.
type estimate struct {
	cost int
	err  error
}

// known returns what is remembered of a selector.
func (s *Selectors) known(expression string) (estimate, bool) {
	e, ok := s.costs.Get(expression)
	if !ok {
		return estimate{}, false
	}
	return e.(estimate), true
}

// compile compiles a selector, and estimates its cost.
func (s *Selectors) compile(expression string) estimate {
	e := estimateOf(expression)
	if e.err == nil {
		s.compiled.GetOrCompile(expression)
	}
	s.costs.Add(expression, e)
	return e
}

func estimateOf(expression string) estimate {
	result := cel.GetCompiler(celFeatures).CompileCELExpression(expression, cel.Options{})
	switch {
	case result.Error != nil:
		return estimate{err: errors.New("a selector cannot be compiled")}
	case result.MaxCost > MaxSelectorCost:
		return estimate{err: fmt.Errorf("a selector may cost more than %d", MaxSelectorCost)}
	}
	return estimate{cost: int(result.MaxCost)}
}
