// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
)

// textWidth returns the number of columns of a text.
func textWidth(text string) (columns int) {
	for _, r := range text {
		columns += runeWidth(r)
	}
	return columns
}

// headOf returns as much of the beginning of a text as fits, tailOf as much of its end.
func headOf(text string, columns int) string {
	for i, r := range text {
		if columns -= runeWidth(r); columns < 0 {
			return text[:i]
		}
	}
	return text
}

func tailOf(text string, columns int) string {
	at := len(text)
	for at > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:at])
		if columns -= runeWidth(r); columns < 0 {
			break
		}
		at -= size
	}
	return text[at:]
}

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
	if text = Sanitize(text); textWidth(text) <= columns {
		return text
	}
	first := columns / 2
	return s.joinCut(headOf(text, first), tailOf(text, columns-first-1), columns)
}

// keepTail shortens a name whose end is the most distinctive.
func (s Style) keepTail(text string, columns int) string {
	if text = Sanitize(text); textWidth(text) <= columns {
		return text
	}
	return s.joinCut("", tailOf(text, columns-1), columns)
}

// keepHead shortens a sentence.
func (s Style) keepHead(text string, columns int) string {
	if text = Sanitize(text); textWidth(text) <= columns {
		return text
	}
	return s.joinCut(headOf(text, columns-1), "", columns)
}

func (s Style) joinCut(before, after string, columns int) string {
	if columns < 1 {
		return ""
	}
	return before + s.symbols().dots + after
}

// Fit shortens or fills a text so that it has exactly this width.
func (s Style) Fit(text string, columns int) string {
	return padRight(s.keepHead(text, columns), columns)
}

// wrapText breaks a text into lines of at most the given number of columns, at spaces where
// possible.
func wrapText(text string, columns int) []string {
	columns = max(columns, 2) // enough for each character
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(Sanitize(text)) {
		for textWidth(word) > columns {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			first := headOf(word, columns)
			lines, word = append(lines, first), word[len(first):]
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
