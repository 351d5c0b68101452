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

// runeWidth returns the number of columns of a character on a terminal.
func runeWidth(r rune) int {
	if unicode.Is(wide, r) {
		return 2
	}
	return 1
}

// wide contains the characters that take two columns: those of East Asian scripts, and most emoji.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x231a, 0x231b, 1}, {0x23e9, 0x23f3, 1}, {0x25fd, 0x25fe, 1}, {0x2614, 0x2615, 1}, {0x2648, 0x2653, 1},
		{0x267f, 0x267f, 1}, {0x2693, 0x2693, 1}, {0x26a1, 0x26a1, 1}, {0x26aa, 0x26ab, 1}, {0x26bd, 0x26be, 1}, {0x26c4, 0x26c5, 1},
		{0x26ce, 0x26ce, 1}, {0x26d4, 0x26d4, 1}, {0x26ea, 0x26ea, 1}, {0x26f2, 0x26f5, 1}, {0x26fa, 0x26fd, 1}, {0x2705, 0x2705, 1},
		{0x270a, 0x270b, 1}, {0x2728, 0x2728, 1}, {0x274c, 0x274e, 1}, {0x2753, 0x2757, 1}, {0x2795, 0x2797, 1}, {0x27b0, 0x27bf, 1},
		{0x2b1b, 0x2b1c, 1}, {0x2b50, 0x2b55, 1}, {0x2e80, 0xa4cf, 1}, {0xa960, 0xa97f, 1}, {0xac00, 0xd7a3, 1}, {0xf900, 0xfaff, 1},
		{0xfe10, 0xfe19, 1}, {0xfe30, 0xfe6f, 1}, {0xff01, 0xff60, 1}, {0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{{0x16fe0, 0x18cff, 1}, {0x1aff0, 0x1b2ff, 1}, {0x1f000, 0x1faff, 1}, {0x20000, 0x3fffd, 1}},
}
