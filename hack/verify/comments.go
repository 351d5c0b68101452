// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
)

// documented finds comments that do not begin with the name of what they describe: usually with the
// one that it had before it was renamed. A field may be described together with others.
func documented(s source) []string {
	if ast.IsGenerated(s.parsed) {
		return nil
	}
	var wrong []string
	check := func(doc *ast.CommentGroup, form *regexp.Regexp, names ...string) {
		if found := form.FindStringSubmatch(doc.Text()); found != nil && !slices.Contains(names, found[1]) {
			wrong = append(wrong, fmt.Sprintf("the comment of %s begins with %s", names[0], found[1]))
		}
	}
	ast.Inspect(s.parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			check(n.Doc, firstWord, n.Name.Name)
		case *ast.GenDecl:
			if len(n.Specs) != 1 {
				break
			}
			if one, ok := n.Specs[0].(*ast.TypeSpec); ok {
				check(n.Doc, firstWord, one.Name.Name)
			}
		case *ast.StructType:
			for _, f := range n.Fields.List {
				check(f.Doc, firstName, append(namesOf(f), fieldNames(n)...)...)
			}
		}
		return true
	})
	return wrong
}

var (
	// firstWord is the name in the comment of a function or a type.
	firstWord = regexp.MustCompile(`^(?:An? |The )?(\w+)`)
	// firstName is the name in the comment of a field, if it has one.
	firstName = regexp.MustCompile(`^([a-z]\w+)(?:, \w+)*(?: and \w+)? (?:is|are|has|have|reports|contains|counts)\b`)
)

func fieldNames(s *ast.StructType) (all []string) {
	for _, f := range s.Fields.List {
		all = append(all, namesOf(f)...)
	}
	return all
}

// namesOf returns the names of a field; its type stands for that of an embedded one.
func namesOf(f *ast.Field) []string {
	if len(f.Names) == 0 {
		return []string{fmt.Sprint(f.Type)}
	}
	var all []string
	for _, name := range f.Names {
		all = append(all, name.Name)
	}
	return all
}
