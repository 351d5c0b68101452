// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"github.com/evenkeel/evenkeel/internal/plugin/explain"
)

// Account is an explanation, in lines.
func Account(a explain.Account, s Style) []string {
	s.Width = max(s.Width, Narrowest)
	var lines []string
	for _, line := range wrapText(a.Title, s.Width) {
		lines = append(lines, s.colorize(bold, line))
	}
	if len(a.Facts) > 0 {
		lines = append(lines, "")
	}
	names := widest(s.Width/3, mapStrings(a.Facts, func(f explain.Fact) string { return Sanitize(f.Name) })...)
	for _, f := range a.Facts {
		for i, line := range wrapText(f.Value, s.Width-names-4) {
			name := ""
			if i == 0 {
				name = s.cutMiddle(f.Name, names)
			}
			lines = append(lines, "  "+s.colorize(dim, padRight(name, names))+"  "+line)
		}
	}
	for _, section := range []struct {
		title     string
		sentences []string
	}{{"Why", a.Why}, {"What happens next", a.Next}, {"More", a.See}} {
		lines = append(lines, s.section(section.title, section.sentences)...)
	}
	return lines
}

func (s Style) section(title string, sentences []string) []string {
	if len(sentences) == 0 {
		return nil
	}
	lines := []string{"", s.colorize(bold, title)}
	for _, sentence := range sentences {
		for _, line := range wrapText(sentence, s.Width-2) {
			lines = append(lines, "  "+line)
		}
	}
	return lines
}
