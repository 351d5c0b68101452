// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"regexp"
	"slices"
	"strings"
)

// Matcher is one condition on a label in a query.
type Matcher struct{ Label, Operator, Value string }

// Selector is a metric in a query, with the conditions on its labels.
type Selector struct {
	Name     string
	Matchers []Matcher
}

var (
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	period   = regexp.MustCompile(`\[[^\]]*\]`)
	word     = regexp.MustCompile(`\b([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{[^}]*\}|\()?`)
	matcher  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	// operators are the words of PromQL that are neither functions nor metrics.
	operators = []string{"and", "or", "unless", "bool"}
)

// Selectors returns the metrics in a PromQL query: every word that is not a function, operator or
// label. Anything that it does not understand, such as quotes and braces in the value of a label,
// it reports as an unknown metric instead of omitting it.
func Selectors(query string) []Selector {
	var all []Selector
	query = period.ReplaceAllString(grouping.ReplaceAllString(query, " "), " ")
	for _, match := range word.FindAllStringSubmatch(query, -1) {
		if match[2] == "(" || slices.Contains(operators, match[1]) {
			continue
		}
		s := Selector{Name: match[1]}
		for _, m := range matcher.FindAllStringSubmatch(match[2], -1) {
			s.Matchers = append(s.Matchers, Matcher{m[1], m[2], m[3]})
		}
		all = append(all, s)
	}
	return all
}

// Grouped returns the labels that a query groups or joins by.
func Grouped(query string) []string {
	var all []string
	for _, match := range grouping.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(match[1], ",") {
			if label = strings.TrimSpace(label); label != "" {
				all = append(all, label)
			}
		}
	}
	return all
}
