// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// folders are those of the repository that documents name.
var folders = []string{".github", "charts", "cmd", "dashboards", "docs", "examples", "gardener", "hack", "internal", "kubernetes", "pkg", "test"}

// deadPaths finds what documents name or link to in this repository although it is not there.
func deadPaths(repository fs.FS) ([]string, error) {
	texts, err := documents(repository)
	if err != nil {
		return nil, err
	}
	missing := func(pattern string) bool {
		found, err := fs.Glob(repository, pattern)
		return err != nil || !slices.ContainsFunc(found, func(name string) bool { return holdsFile(repository, name) })
	}
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		for _, named := range pathsIn(texts[name]) {
			if slices.ContainsFunc(patterns(named), missing) {
				wrong = append(wrong, fmt.Sprintf("%s: there is no %s", name, named))
			}
		}
		wrong = append(wrong, deadLinks(name, texts, missing)...)
	}
	return wrong, nil
}

// holdsFile reports whether there is a file at or below a path. Git keeps no empty folder.
func holdsFile(repository fs.FS, name string) bool {
	holds := false
	_ = fs.WalkDir(repository, name, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		holds = true
		return fs.SkipAll
	})
	return holds
}

// documents reads the pages at the root of the repository, and below docs and test.
func documents(repository fs.FS) (map[string]string, error) {
	texts := map[string]string{}
	for _, root := range []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "RELEASE.md", "SECURITY.md", "docs", "test"} {
		err := fs.WalkDir(repository, root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(name) != ".md" {
				return err
			}
			text, err := fs.ReadFile(repository, name)
			texts[name] = string(text)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return texts, nil
}

var (
	span   = regexp.MustCompile("`[^`\n]+`")
	hole   = regexp.MustCompile(`<[^<>]*>`)
	braces = regexp.MustCompile(`^(.*?)\{([^{}]*)\}(.*)$`)
)

// pathsIn returns the words of a text that begin with a folder of the repository and stand in backquotes or in a block
// of code.
func pathsIn(text string) []string {
	var found []string
	for _, code := range codeIn(text) {
		for word := range strings.FieldsSeq(code) {
			word = strings.TrimRight(strings.TrimPrefix(word, "./"), ".,:;/")
			first, _, nested := strings.Cut(word, "/")
			if nested && slices.Contains(folders, first) && !slices.Contains(found, word) {
				found = append(found, word)
			}
		}
	}
	return found
}

// codeIn returns the spans in backquotes and the lines of the blocks of code.
func codeIn(text string) []string {
	var code []string
	for line, inBlock := range linesOf(text) {
		if inBlock {
			code = append(code, line)
			continue
		}
		for _, s := range span.FindAllString(line, -1) {
			code = append(code, strings.Trim(s, "`"))
		}
	}
	return code
}

// linesOf returns the lines of a page, and whether each is in a block of code.
func linesOf(text string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		inBlock := false
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
				inBlock = !inBlock
			} else if !yield(line, inBlock) {
				return
			}
		}
	}
}

// patterns returns what a path in a document can stand for, as patterns of [fs.Glob]: each alternative of its
// braces, with a star for a placeholder in angle brackets.
func patterns(named string) []string {
	named = hole.ReplaceAllString(named, "*")
	parts := braces.FindStringSubmatch(named)
	if parts == nil {
		return []string{named}
	}
	var all []string
	for alternative := range strings.SplitSeq(parts[2], ",") {
		all = append(all, patterns(parts[1]+alternative+parts[3])...)
	}
	return all
}
