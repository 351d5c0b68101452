// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/evenkeel/evenkeel/internal/plugin/screen"
)

// The size of a screen if it is unknown.
const (
	usualWidth  = 80
	usualHeight = 24
)

// screenStyle returns the style that fits the output.
func (o *options) screenStyle() screen.Style {
	s := screen.Style{Width: usualWidth, Spaces: o.everywhere, ASCII: !unicode(os.Getenv)}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		s.Width = n
	}
	file, terminal := o.terminal()
	if !terminal {
		return s
	}
	if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
		s.Width = columns
	}
	s.Color = colors(os.Getenv)
	return s
}

// colors reports whether a terminal gets colors. Any value of NO_COLOR means no.
func colors(environment func(string) string) bool {
	return environment("NO_COLOR") == "" && environment("TERM") != "dumb"
}

// terminal returns the output if it is a terminal.
func (o *options) terminal() (*os.File, bool) {
	file, ok := o.Out.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// unicode reports whether the locale supports all characters. If the locale is not set, it does, as
// on today's terminals.
func unicode(environment func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(environment(name)); locale != "" {
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}
	return true
}
