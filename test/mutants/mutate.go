// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
)

// The switches that mutated code calls; see switches.
const (
	chosen  = "mutantChosen"
	pick    = "mutantPick"
	drop    = "mutantDrop"
	without = "mutantWithout"
)

// mutator collects the mutants of a package, and for each file what they insert.
type mutator struct {
	p          *Package
	mutants    []Mutant
	insertions map[string][]insertion

	source []byte // of the file that is being walked
	path   string
	file   *ast.File
	// skipped are nodes that stay as they are with all below them: what the compiler must know as a
	// constant.
	skipped map[ast.Node]bool
	// function is the name of the one that is being walked, and above the nodes above the one that
	// is.
	function string
	above    []ast.Node
}

// Mutate finds the mutants of a package.
func Mutate(p *Package) ([]Mutant, map[string][]insertion) {
	m := &mutator{p: p, insertions: map[string][]insertion{}}
	for _, file := range p.files {
		if ast.IsGenerated(file) {
			continue
		}
		m.file, m.path, m.skipped = file, p.fset.Position(file.Pos()).Filename, map[ast.Node]bool{}
		m.source = p.sources[m.path]
		for _, declaration := range file.Decls {
			m.walk(declaration)
		}
	}
	return m.mutants, m.insertions
}

func (m *mutator) walk(declaration ast.Decl) {
	m.function, m.above = "", nil
	if f, ok := declaration.(*ast.FuncDecl); ok {
		m.function = f.Name.Name
	}
	ast.Inspect(declaration, func(n ast.Node) bool {
		if n == nil {
			m.above = m.above[:len(m.above)-1]
			return false
		}
		below := m.visit(n)
		if below {
			m.above = append(m.above, n)
		}
		return below
	})
}

func (m *mutator) visit(n ast.Node) bool {
	if m.skipped[n] {
		return false
	}
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Body == nil {
			return false
		}
		m.end(n.Type, n.Body)
	case *ast.FuncLit:
		m.end(n.Type, n.Body)
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.ArrayType:
		return n.Len == nil
	case *ast.BlockStmt:
		m.statements(n.List)
	case *ast.CaseClause:
		m.branch(n)
		m.statements(n.Body)
	case *ast.CommClause:
		m.statements(n.Body)
	case *ast.IfStmt:
		m.skipUnlessDefine(n.Init)
		m.condition(n.Cond)
	case *ast.SwitchStmt:
		m.skipUnlessDefine(n.Init)
	case *ast.ForStmt:
		m.skipUnlessDefine(n.Init)
		m.skipped[n.Post] = n.Post != nil
		m.forCondition(n.Cond)
	case *ast.ReturnStmt:
		m.returned(n)
	case *ast.CallExpr:
		m.arguments(n)
		m.parts(n)
	case *ast.CompositeLit:
		m.fields(n)
		m.elements(n)
	case *ast.IncDecStmt:
		m.incDec(n)
	case *ast.AssignStmt:
		m.assignment(n)
	case ast.Expr:
		return m.expression(n)
	}
	return true
}

// skipUnlessDefine leaves a statement alone that is part of another one's head, where no "if" can
// stand.
func (m *mutator) skipUnlessDefine(s ast.Stmt) {
	if assignment, ok := s.(*ast.AssignStmt); s != nil && (!ok || assignment.Tok != token.DEFINE) {
		m.skipped[s] = true
	}
}

// expression mutates constants and binary expressions, and reports whether to look below.
func (m *mutator) expression(e ast.Expr) bool {
	if m.p.info.Types[e].Value != nil {
		m.constant(e)
		return false
	}
	if binary, ok := e.(*ast.BinaryExpr); ok {
		m.binary(binary)
	}
	return true
}

// end lets functions with results end in a panic, because a return that is switched off is no end
// to the compiler.
func (m *mutator) end(f *ast.FuncType, body *ast.BlockStmt) {
	if f.Results != nil {
		at := m.offset(body.Rbrace)
		m.insertions[m.path] = append(m.insertions[m.path], insertion{mutant: -1, offset: at, text: `;panic("a mutant came to the end of a function")`})
	}
}

// add makes a mutant that encloses a node. Every %d of opening and ending is the mutant's number.
func (m *mutator) add(kind string, n ast.Node, opening, ending, after string) {
	m.addSpan(kind, n, m.offset(n.Pos()), m.offset(n.End()), opening, ending, after)
}

func (m *mutator) addSpan(kind string, n ast.Node, from, to int, opening, ending, after string) {
	m.enclose(m.mutant(kind, n, after), from, to, opening, ending)
}

func (m *mutator) mutant(kind string, n ast.Node, after string) int {
	return m.describe(kind, n, m.text(n), after)
}

// describe makes a mutant of a place that is shown as before and after.
func (m *mutator) describe(kind string, n ast.Node, before, after string) int {
	id := len(m.mutants)
	position := m.p.fset.Position(n.Pos())
	position.Filename = filepath.Base(position.Filename)
	m.mutants = append(m.mutants, Mutant{ID: id, Kind: kind, Position: position, Function: m.function, Before: oneLine(before), After: oneLine(after)})
	return id
}

func (m *mutator) enclose(id, from, to int, opening, ending string) {
	number := fmt.Sprint(id)
	order := len(m.insertions[m.path])
	m.insertions[m.path] = append(m.insertions[m.path],
		insertion{mutant: id, offset: from, span: to - from, order: order, text: strings.ReplaceAll(opening, "%d", number)},
		insertion{mutant: id, offset: to, span: to - from, order: order, ending: true, text: strings.ReplaceAll(ending, "%d", number)})
}

func (m *mutator) offset(p token.Pos) int { return m.p.fset.Position(p).Offset }

func (m *mutator) text(n ast.Node) string {
	return string(m.source[m.offset(n.Pos()):m.offset(n.End())])
}

func (m *mutator) typeOf(e ast.Expr) types.Type { return m.p.info.TypeOf(e) }

// typeText is how this file writes a type, or "" where it cannot.
func (m *mutator) typeText(t types.Type) string {
	known := true
	text := types.TypeString(t, func(pkg *types.Package) string {
		if pkg == m.p.types {
			return ""
		}
		name := m.importName(pkg)
		known = known && name != ""
		return name
	})
	if basic, ok := t.(*types.Basic); ok && basic.Info()&types.IsUntyped != 0 {
		return ""
	}
	if !known {
		return ""
	}
	return text
}

func (m *mutator) importName(pkg *types.Package) string {
	for _, i := range m.file.Imports {
		if strings.Trim(i.Path.Value, `"`) != pkg.Path() {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return pkg.Name()
	}
	return ""
}

// plain reports whether an expression can be evaluated once more, and where it was not to be,
// without any effect.
func (m *mutator) plain(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return true
	case *ast.BasicLit:
		return true
	case *ast.ParenExpr:
		return m.plain(e.X)
	case *ast.SelectorExpr:
		return m.plain(e.X)
	case *ast.BinaryExpr:
		return e.Op != token.QUO && e.Op != token.REM && e.Op != token.LAND && e.Op != token.LOR && m.plain(e.X) && m.plain(e.Y)
	case *ast.CallExpr:
		return len(e.Args) == 1 && m.plain(e.Args[0]) && (m.p.info.Types[e.Fun].IsType() || m.builtin(e.Fun, "len", "cap"))
	}
	return false
}

func (m *mutator) builtin(e ast.Expr, names ...string) bool {
	ident, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	_, ok = m.p.info.Uses[ident].(*types.Builtin)
	for _, name := range names {
		if ok && ident.Name == name {
			return true
		}
	}
	return false
}

func isBool(t types.Type) bool {
	basic, ok := t.(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0
}

func isNumber(t types.Type) bool {
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsNumeric != 0
}
