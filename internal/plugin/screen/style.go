// SPDX-License-Identifier: Apache-2.0

// Package screen draws overviews as text: machines as blocks, replicas as bars, problems in words.
// Lines fit the screen, and no information is conveyed by color alone.
package screen

import "github.com/evenkeel/evenkeel/internal/overview"

// Style defines how to draw.
type Style struct {
	// Width of the screen in columns; at least [Narrowest].
	Width int
	Color bool
	// ASCII uses only characters that every terminal supports.
	ASCII bool
	// Wide lists each machine.
	Wide bool
	// Spaces reports whether objects of more than one namespace are shown, so that each is shown
	// with its namespace.
	Spaces bool
}

// Narrowest is the minimum supported width.
const Narrowest = 60

// hue is a color of terminals.
type hue string

const (
	plain  hue = ""
	bold   hue = "1"
	dim    hue = "2"
	red    hue = "31"
	green  hue = "32"
	yellow hue = "33"
	blue   hue = "34"
	cyan   hue = "36"
)

// colorize colors a text if the style has colors.
func (s Style) colorize(h hue, text string) string {
	if !s.Color || h == plain || text == "" {
		return text
	}
	return "\x1b[" + string(h) + "m" + text + "\x1b[0m"
}

// look defines how a state is drawn.
type look struct {
	block, ascii string
	hue          hue
}

var looks = map[overview.State]look{
	overview.Working:        {"■", "#", green},
	overview.Booting:        {"◧", "+", blue},
	overview.ReserveReady:   {"□", "o", cyan},
	overview.ReserveBooting: {"◌", ".", cyan},
	overview.Leaving:        {"↓", "v", yellow},
	overview.Failed:         {"✗", "x", red},
}

func (s Style) machineBlock(state overview.State) string {
	if s.ASCII {
		return looks[state].ascii
	}
	return looks[state].block
}

// marks are the other characters that ASCII lacks.
type marks struct{ full, part, gap, dots, arrow, bullet string }

func (s Style) symbols() marks {
	if s.ASCII {
		return marks{"#", "+", ".", "~", "->", "!"}
	}
	return marks{"█", "▒", "·", "…", "→", "●"}
}
