// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// joining are functions that ignore an argument with the zero value.
var joining = []string{"cmp.Or", "errors.Join", "slices.Concat"}

// parts leaves out each argument of a function that joins its arguments.
func (m *mutator) parts(call *ast.CallExpr) {
	if !slices.Contains(joining, m.fullName(call.Fun)) || call.Ellipsis.IsValid() || len(call.Args) < 2 {
		return
	}
	for _, argument := range call.Args {
		if m.p.info.Types[argument].Value == nil {
			m.zero("part", argument, m.typeOf(argument))
		}
	}
}

// elements leaves out each element of a slice that has several.
func (m *mutator) elements(literal *ast.CompositeLit) {
	t := m.typeOf(literal)
	if t == nil || literal.Type == nil || len(literal.Elts) < 2 || m.isOperand(literal) {
		return
	}
	if _, ok := t.Underlying().(*types.Slice); !ok {
		return
	}
	for i, element := range literal.Elts {
		if _, keyed := element.(*ast.KeyValueExpr); keyed {
			return
		}
		id := m.mutant("part", element, "(left out)")
		m.enclose(id, m.offset(literal.Pos()), m.offset(literal.End()), fmt.Sprintf("%s(%%d, %d, ", without, i), ")")
	}
}

// isOperand reports whether the address of a literal is taken, which a call does not have.
func (m *mutator) isOperand(literal *ast.CompositeLit) bool {
	if len(m.above) == 0 {
		return false
	}
	unary, ok := m.above[len(m.above)-1].(*ast.UnaryExpr)
	return ok && unary.Op == token.AND && unary.X == literal
}
