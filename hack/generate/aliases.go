// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// aliasFile is the file of an API package that names another module's types; see [expandAliases].
const aliasFile = "stock.go"

// alias is one `type Name = pkg.Target`, with the comment that stands over it.
type alias struct {
	name, target, comment string
}

// expandAliases replaces each alias file of the staged API packages by the sources that its aliases
// stand for: files of the other package, without the types that have no alias, and under the
// aliases' names. A marker in the comment over an alias is added to the type.
func expandAliases(staged string) error {
	files, err := filepath.Glob(filepath.Join(staged, apis, "*", "*", aliasFile))
	if err != nil {
		return err
	}
	for _, file := range files {
		source, aliases, err := readAliases(file)
		if err != nil {
			return err
		}
		if err := os.Remove(file); err != nil {
			return err
		}
		if err := expand(filepath.Dir(file), source, aliases); err != nil {
			return fmt.Errorf("expand %s: %w", source, err)
		}
	}
	return nil
}

// readAliases reads an alias file and the import path of the one package it imports.
func readAliases(file string) (source string, aliases []alias, err error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return "", nil, err
	}
	if len(parsed.Imports) != 1 {
		return "", nil, fmt.Errorf("%s: wants exactly one import", file)
	}
	for _, decl := range parsed.Decls {
		types, ok := decl.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		for _, spec := range types.Specs {
			t := spec.(*ast.TypeSpec)
			target, ok := t.Type.(*ast.SelectorExpr)
			if !ok || !t.Assign.IsValid() {
				return "", nil, fmt.Errorf("%s: %s is no alias of an imported type", file, t.Name)
			}
			aliases = append(aliases, alias{t.Name.Name, target.Sel.Name, commentText(t.Doc)})
		}
	}
	return strings.Trim(parsed.Imports[0].Path.Value, `"`), aliases, nil
}

func commentText(group *ast.CommentGroup) string {
	if group == nil {
		return ""
	}
	var lines strings.Builder
	for _, comment := range group.List {
		lines.WriteString(comment.Text + "\n")
	}
	return lines.String()
}

// expand writes the sources of package source into folder, as part of the package there.
func expand(folder, source string, aliases []alias) error {
	found, err := exec.Command("go", "list", "-f", "{{.Dir}}", source).Output()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(found)), "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "zz_generated") || slices.Contains([]string{"doc.go", "register.go"}, name) {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if content, err = rewrite(content, aliases); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "expanded_"+name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// rewrite drops the types without an alias, and gives the others their alias' name and comment.
func rewrite(content []byte, aliases []alias) ([]byte, error) {
	content, err := dropOthers(content, aliases)
	if err != nil {
		return nil, err
	}
	for _, a := range aliases {
		if a.name != a.target {
			content = regexp.MustCompile(`\b`+a.target+`\b`).ReplaceAll(content, []byte(a.name))
		}
		declaration := []byte("\ntype " + a.name + " ")
		content = bytes.Replace(content, declaration, []byte("\n"+a.comment+"type "+a.name+" "), 1)
	}
	return content, nil
}

func dropOthers(content []byte, aliases []alias) ([]byte, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, "", content, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, decl := range slices.Backward(parsed.Decls) {
		types, ok := decl.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE || len(types.Specs) != 1 {
			continue
		}
		name := types.Specs[0].(*ast.TypeSpec).Name.Name
		if slices.ContainsFunc(aliases, func(a alias) bool { return a.target == name }) {
			continue
		}
		from, to := set.Position(commentedStart(parsed, types)).Offset, set.Position(types.End()).Offset
		content = slices.Delete(content, from, to)
	}
	return content, nil
}

// commentedStart is where a declaration begins, its comment and the marker block right before that
// included.
func commentedStart(file *ast.File, decl *ast.GenDecl) token.Pos {
	start := decl.Pos()
	if decl.Doc != nil {
		start = decl.Doc.Pos()
	}
	for _, group := range slices.Backward(file.Comments) {
		if group.End() < start && start-group.End() <= 2 && strings.HasPrefix(group.List[0].Text, "// +") {
			start = group.Pos()
		}
	}
	return start
}
