// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
)

// textWidth returns the number of columns of a text: one for each character, because all of them
// are narrow.
func textWidth(text string) int { return utf8.RuneCountInString(text) }

// Sanitize removes everything that a terminal would interpret as a command, because names and
// messages come from other sources.
func Sanitize(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// padRight fills a text with spaces on its right.
func padRight(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-textWidth(text)))
}

// padLeft fills a text with spaces on its left.
func padLeft(text string, columns int) string {
	return strings.Repeat(" ", max(0, columns-textWidth(text))) + text
}

// cutMiddle shortens a name in its middle, because its ends are the most distinctive.
func (s Style) cutMiddle(text string, columns int) string {
	runes := []rune(Sanitize(text))
	if len(runes) <= columns {
		return string(runes)
	}
	head := max(0, columns/2)
	tail := max(0, columns-head-1)
	return s.joinCut(string(runes[:head]), string(runes[len(runes)-tail:]), columns)
}

// keepTail shortens a name whose end is the most distinctive.
func (s Style) keepTail(text string, columns int) string {
	runes := []rune(Sanitize(text))
	if len(runes) <= columns {
		return string(runes)
	}
	return s.joinCut("", string(runes[len(runes)-max(0, columns-1):]), columns)
}

// keepHead shortens a sentence.
func (s Style) keepHead(text string, columns int) string {
	runes := []rune(Sanitize(text))
	if len(runes) <= columns {
		return string(runes)
	}
	return s.joinCut(string(runes[:max(0, columns-1)]), "", columns)
}

func (s Style) joinCut(head, tail string, columns int) string {
	if columns < 1 {
		return ""
	}
	return head + s.symbols().dots + tail
}

// wrapText breaks a text into lines of at most the given number of columns, at spaces where
// possible.
func wrapText(text string, columns int) []string {
	columns = max(columns, 1)
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(Sanitize(text)) {
		for textWidth(word) > columns {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			runes := []rune(word)
			lines, word = append(lines, string(runes[:columns])), string(runes[columns:])
		}
		switch {
		case line == "":
			line = word
		case textWidth(line)+1+textWidth(word) <= columns:
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

// formatAge formats the time since an event, in its largest units.
func formatAge(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(since)))
}
