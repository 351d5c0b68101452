// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// condition is negated, always true, and always false.
func (m *mutator) condition(e ast.Expr) {
	if !isBool(m.typeOf(e)) || m.p.info.Types[e].Value != nil {
		return
	}
	if comparison, ok := e.(*ast.BinaryExpr); !ok || opposites[comparison.Op] == "" {
		m.add("negate", e, "((", ") != "+chosen+"(%d))", "!("+m.text(e)+")")
	}
	m.add("force", e, "((", ") || "+chosen+"(%d))", "true")
	m.add("force", e, "((", ") && !"+chosen+"(%d))", "false")
}

// forCondition is not forced to be true: that never ends.
func (m *mutator) forCondition(e ast.Expr) {
	if e != nil && isBool(m.typeOf(e)) && m.p.info.Types[e].Value == nil {
		m.add("force", e, "((", ") && !"+chosen+"(%d))", "false")
	}
}

var boundaries = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}

var opposites = map[token.Token]string{token.EQL: "!=", token.NEQ: "=="}

var arithmetic = map[token.Token]string{
	token.ADD: "-", token.SUB: "+", token.MUL: "+", token.QUO: "*", token.REM: "*",
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.MUL_ASSIGN: "+=", token.QUO_ASSIGN: "*=",
}

func (m *mutator) binary(e *ast.BinaryExpr) {
	x, y := m.text(e.X), m.text(e.Y)
	switch e.Op {
	case token.LSS, token.GTR:
		m.add("boundary", e, "(", " || "+chosen+"(%d) && ("+x+" == "+y+"))", x+" "+boundaries[e.Op]+" "+y)
	case token.LEQ, token.GEQ:
		m.add("boundary", e, "((", ") && !("+chosen+"(%d) && ("+x+" == "+y+")))", x+" "+boundaries[e.Op]+" "+y)
	case token.EQL, token.NEQ:
		m.add("negate", e, "((", ") != "+chosen+"(%d))", x+" "+opposites[e.Op]+" "+y)
	case token.LAND:
		m.add("operand", e.X, "((", ") || "+chosen+"(%d))", "(left out)")
		m.add("operand", e.Y, "((", ") || "+chosen+"(%d))", "(left out)")
	case token.LOR:
		m.add("operand", e.X, "((", ") && !"+chosen+"(%d))", "(left out)")
		m.add("operand", e.Y, "((", ") && !"+chosen+"(%d))", "(left out)")
	default:
		m.arithmetic(e, x, y)
	}
}

func (m *mutator) arithmetic(e *ast.BinaryExpr, x, y string) {
	if op := arithmetic[e.Op]; op != "" && isNumber(m.typeOf(e)) && m.plain(e.X) && m.plain(e.Y) {
		after := "(" + x + ") " + op + " (" + y + ")"
		m.add("arithmetic", e, pick+"(%d, "+after+", ", ")", after)
	}
}

func (m *mutator) incDec(s *ast.IncDecStmt) {
	opposite := "--"
	if s.Tok == token.DEC {
		opposite = "++"
	}
	after := m.text(s.X) + opposite
	m.add("arithmetic", s, "if "+chosen+"(%d) { "+after+" } else { ", " }", after)
}

func (m *mutator) assignment(s *ast.AssignStmt) {
	if op := arithmetic[s.Tok]; op != "" && isNumber(m.typeOf(s.Lhs[0])) {
		after := m.text(s.Lhs[0]) + " " + op + " " + m.text(s.Rhs[0])
		m.add("arithmetic", s, "if "+chosen+"(%d) { "+after+" } else { ", " }", after)
	}
}

// statements leaves each statement out that others do not need in order to compile.
func (m *mutator) statements(list []ast.Stmt) {
	for _, s := range list {
		if m.omissible(s) {
			m.add("statement", s, "if !"+chosen+"(%d) { ", " }", "(left out)")
		}
	}
}

func (m *mutator) omissible(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		return ok && !m.builtin(call.Fun, "panic")
	case *ast.IncDecStmt, *ast.RangeStmt, *ast.GoStmt:
		return true
	case *ast.BranchStmt:
		return s.Tok == token.CONTINUE || s.Tok == token.BREAK
	}
	return false
}

// branch skips the body of a case.
func (m *mutator) branch(c *ast.CaseClause) {
	if len(c.Body) == 0 {
		return
	}
	last := c.Body[len(c.Body)-1]
	if jump, ok := last.(*ast.BranchStmt); ok && jump.Tok == token.FALLTHROUGH {
		return
	}
	m.addSpan("branch", c, m.offset(c.Body[0].Pos()), m.offset(last.End()), "if !"+chosen+"(%d) { ", " }", "(body left out)")
}

func (m *mutator) returned(s *ast.ReturnStmt) {
	m.skipBesideError(s.Results)
	for _, e := range s.Results {
		t := m.typeOf(e)
		value := m.p.info.Types[e].Value
		switch {
		case isBool(t) && value == nil:
			m.add("return", e, "((", ") != "+chosen+"(%d))", "!("+m.text(e)+")")
		case isBool(t) && m.typeText(types.Default(t)) == "bool":
			m.add("return", e, "("+m.text(e)+" != "+chosen+"(%d) || false && ", ")", "!"+m.text(e))
		case value == nil && len(s.Results) >= 1:
			m.zero("return", e, t)
		}
	}
}

// skipBesideError leaves constants alone that are returned with an error: callers do not look at
// them.
func (m *mutator) skipBesideError(results []ast.Expr) {
	last := len(results) - 1
	if last < 1 || m.p.info.Types[results[last]].IsNil() || !types.Identical(m.typeOf(results[last]), types.Universe.Lookup("error").Type()) {
		return
	}
	for _, e := range results[:last] {
		m.skipped[e] = m.p.info.Types[e].Value != nil
	}
}

// zero puts the zero value of its type in the place of an expression.
func (m *mutator) zero(kind string, e ast.Expr, t types.Type) {
	if t == nil || m.p.info.Types[e].IsNil() {
		return
	}
	if _, several := t.(*types.Tuple); several {
		return
	}
	switch e := e.(type) {
	case *ast.FuncLit:
		return
	case *ast.CompositeLit:
		if len(e.Elts) == 0 {
			return
		}
	}
	m.add(kind, e, drop+"(%d, ", ")", "(zero)")
}

// constant raises a number by one, where the compiler need not know it.
func (m *mutator) constant(e ast.Expr) {
	t := m.typeOf(e)
	text := ""
	if isNumber(t) {
		text = m.typeText(t)
	}
	if text == "" {
		return
	}
	after := "(" + m.text(e) + ") + 1"
	before, shown := m.withSurroundings(e, "("+m.text(e)+"+1)")
	m.enclose(m.describe("constant", e, before, shown), m.offset(e.Pos()), m.offset(e.End()), pick+"["+text+"](%d, "+after+", ", ")")
}

// withSurroundings shows a change together with the expression that it is part of, if that is short:
// "0 -> 1" does not tell one place from the next.
func (m *mutator) withSurroundings(e ast.Expr, after string) (string, string) {
	if len(m.above) > 0 {
		around := m.above[len(m.above)-1]
		from, to := m.offset(around.Pos()), m.offset(around.End())
		if to-from < 60 && !strings.Contains(m.text(around), "\n") {
			return m.text(around), string(m.source[from:m.offset(e.Pos())]) + after + string(m.source[m.offset(e.End()):to])
		}
	}
	return m.text(e), after
}

func (m *mutator) arguments(call *ast.CallExpr) {
	if m.p.info.Types[call.Fun].IsType() {
		return
	}
	if m.builtin(call.Fun, "min", "max") {
		m.extreme(call)
		return
	}
	if _, isBuiltin := call.Fun.(*ast.Ident); isBuiltin && m.builtin(call.Fun, "make", "new", "append", "copy", "delete", "panic") {
		return
	}
	for i := 0; i+1 < len(call.Args); i++ {
		a, b := call.Args[i], call.Args[i+1]
		if !m.swappable(a, b) || i == 0 && m.commutative(call.Fun) {
			continue
		}
		id := m.mutant("arguments", call, fmt.Sprintf("%s(... %s, %s ...)", m.text(call.Fun), m.text(b), m.text(a)))
		m.enclose(id, m.offset(a.Pos()), m.offset(a.End()), pick+"(%d, "+m.text(b)+", ", ")")
		m.enclose(id, m.offset(b.Pos()), m.offset(b.End()), pick+"(%d, "+m.text(a)+", ", ")")
	}
}

// commuting are functions for which the order of the first two arguments does not matter.
var commuting = []string{
	"math/bits.Add64", "math/bits.Mul64",
	"(k8s.io/apimachinery/third_party/forked/golang/reflect.Equalities).DeepEqual",
	"github.com/evenkeel/evenkeel/internal/requeue.Sooner",
}

func (m *mutator) commutative(f ast.Expr) bool { return slices.Contains(commuting, m.fullName(f)) }

// fullName returns the name of a function of another package, such as "cmp.Or"; empty for others.
func (m *mutator) fullName(f ast.Expr) string {
	selector, ok := f.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	used, ok := m.p.info.Uses[selector.Sel].(*types.Func)
	if !ok {
		return ""
	}
	return used.FullName()
}

func (m *mutator) swappable(a, b ast.Expr) bool {
	return m.plain(a) && m.plain(b) && m.p.info.Types[a].Value == nil && m.p.info.Types[b].Value == nil &&
		m.p.info.Types[a].IsValue() && m.p.info.Types[b].IsValue() && m.text(a) != m.text(b) &&
		types.Identical(m.typeOf(a), m.typeOf(b))
}

// extreme makes a min of a max, and the other way round.
func (m *mutator) extreme(call *ast.CallExpr) {
	other := "max"
	if call.Fun.(*ast.Ident).Name == "max" {
		other = "min"
	}
	after := other + m.text(call)[3:]
	for _, argument := range call.Args {
		if !m.plain(argument) {
			return
		}
	}
	m.add("arguments", call, pick+"(%d, "+after+", ", ")", after)
}

// fields leaves fields and entries of composite literals at zero.
func (m *mutator) fields(literal *ast.CompositeLit) {
	t := m.typeOf(literal)
	if t == nil {
		return
	}
	switch t.Underlying().(type) {
	case *types.Struct, *types.Map:
	default:
		return
	}
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok && m.p.info.Types[pair.Value].Value == nil {
			if inner, ok := pair.Value.(*ast.CompositeLit); !ok || inner.Type != nil {
				m.zero("field", pair.Value, m.typeOf(pair.Value))
			}
		}
	}
}
