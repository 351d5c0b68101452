// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
)

// width is how many columns a text takes: one for each character, since all that is drawn here is narrow.
func width(text string) int { return utf8.RuneCountInString(text) }

// clean is a text without anything that a terminal would take for an order: names and messages come from others.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// left fills a text up with spaces on its right.
func left(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-width(text)))
}

// right fills a text up with spaces on its left.
func right(text string, columns int) string {
	return strings.Repeat(" ", max(0, columns-width(text))) + text
}

// clip shortens a name in its middle: its ends tell most.
func (s Style) clip(text string, columns int) string {
	runes := []rune(clean(text))
	if len(runes) <= columns {
		return string(runes)
	}
	head := max(0, columns/2)
	tail := max(0, columns-head-1)
	return s.cut(string(runes[:head]), string(runes[len(runes)-tail:]), columns)
}

// tail shortens a name of which the end tells most.
func (s Style) tail(text string, columns int) string {
	runes := []rune(clean(text))
	if len(runes) <= columns {
		return string(runes)
	}
	return s.cut("", string(runes[len(runes)-max(0, columns-1):]), columns)
}

// head shortens a sentence.
func (s Style) head(text string, columns int) string {
	runes := []rune(clean(text))
	if len(runes) <= columns {
		return string(runes)
	}
	return s.cut(string(runes[:max(0, columns-1)]), "", columns)
}

func (s Style) cut(head, tail string, columns int) string {
	if columns < 1 {
		return ""
	}
	return head + s.marks().dots + tail
}

// wrap breaks a text into lines of at most so many columns, at spaces where there are any.
func wrap(text string, columns int) []string {
	columns = max(columns, 1)
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(clean(text)) {
		for width(word) > columns {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			runes := []rune(word)
			lines, word = append(lines, string(runes[:columns])), string(runes[columns:])
		}
		switch {
		case line == "":
			line = word
		case width(line)+1+width(word) <= columns:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// age is how long ago something was, in its largest units.
func age(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(since)))
}
