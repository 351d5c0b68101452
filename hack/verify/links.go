// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

var (
	// inline is a link or a picture, definition a link whose text is elsewhere, and reference one in HTML.
	inline     = regexp.MustCompile(`\]\(([^()\s]+)(?:\s+"[^"]*")?\)`)
	definition = regexp.MustCompile(`(?m)^ {0,3}\[[^\]\n]+\]:\s+(\S+)`)
	reference  = regexp.MustCompile(`<[a-z]+ [^>]*(?:href|src)="([^"]+)"`)
	anchor     = regexp.MustCompile(`<[a-z]+ [^>]*(?:id|name)="([^"]+)"`)
	linked     = regexp.MustCompile(`!?\[([^\]\n]*)\]\([^()]*\)`)
)

// deadLinks returns the links of a document to files and headings that do not exist. Links to other sites are not
// looked at.
func deadLinks(name string, texts map[string]string, missing func(string) bool) []string {
	var wrong []string
	for _, to := range linksIn(texts[name]) {
		target, heading, _ := strings.Cut(to, "#")
		if strings.Contains(target, ":") {
			continue
		}
		file := name
		if target != "" {
			file = path.Join(path.Dir(name), target)
		}
		text, read := texts[file]
		if path.IsAbs(target) || missing(file) || heading != "" && read && !slices.Contains(anchors(text), heading) {
			wrong = append(wrong, fmt.Sprintf("%s: there is no %s", name, to))
		}
	}
	return wrong
}

// linksIn returns what a text links to outside its code.
func linksIn(text string) []string {
	prose := span.ReplaceAllString(withoutBlocks(text), "")
	var all []string
	for _, kind := range []*regexp.Regexp{inline, definition, reference} {
		for _, match := range kind.FindAllStringSubmatch(prose, -1) {
			all = append(all, match[1])
		}
	}
	return all
}

// withoutBlocks returns a text without its blocks of code.
func withoutBlocks(text string) string {
	var prose strings.Builder
	for line, inBlock := range linesOf(text) {
		if !inBlock {
			prose.WriteString(line)
		}
	}
	return prose.String()
}

// anchors returns what links can name in a page: its headings as GitHub writes them, and the anchors in its HTML. A
// heading that repeats an earlier one gets a number.
func anchors(text string) []string {
	text = withoutBlocks(text)
	var all []string
	for _, match := range anchor.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	seen := map[string]int{}
	for line := range strings.Lines(text) {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			s := slug(strings.TrimSpace(title))
			if n := seen[s]; n > 0 {
				all = append(all, s+"-"+strconv.Itoa(n))
			} else {
				all = append(all, s)
			}
			seen[s]++
		}
	}
	return all
}

// slug writes a heading as its anchor.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, linked.ReplaceAllString(heading, "$1"))
}
