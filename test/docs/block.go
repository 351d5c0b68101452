// SPDX-License-Identifier: Apache-2.0

// Package docs runs what the documents tell a reader to type.
//
// A fenced block is run if the line before it is `<!-- runnable -->`. If lines of it begin with "$
// ", those are the commands and the others are what they print; otherwise, every line is a command.
// One shell runs the blocks of a document in order, and ends at the first command that fails. A
// block marked `<!-- runnable apart -->` runs on a fresh cluster and in its own shell.
package docs

import "strings"

const (
	marker = "<!-- runnable -->"
	apart  = "<!-- runnable apart -->"
)

// scripts returns the commands of a document's runnable blocks: those that belong together, then
// each that is apart.
func scripts(text string) [][]string {
	var together, block []string
	var all [][]string
	mark, inside, indent := "", false, ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		bare := strings.TrimLeft(line, " ")
		switch fence := strings.HasPrefix(bare, "```"); {
		case inside && fence:
			if mark == apart {
				all = append(all, typed(block))
			} else {
				together = append(together, typed(block)...)
			}
			inside, mark, block = false, "", nil
		case inside:
			block = append(block, strings.TrimPrefix(line, indent))
		case fence && mark != "":
			inside, indent = true, line[:len(line)-len(bare)]
		case bare == marker, bare == apart:
			mark = bare
		case bare != "":
			mark = ""
		}
	}
	if together != nil {
		all = append([][]string{together}, all...)
	}
	return all
}

// typed are the lines of a block that somebody types. A line that a backslash ends goes on in the next one.
func typed(block []string) []string {
	var prompted []string
	for i, line := range block {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			prompted = append(prompted, command)
		} else if prompted != nil && strings.HasSuffix(block[i-1], "\\") {
			prompted = append(prompted, line)
		}
	}
	if prompted == nil {
		return block
	}
	return prompted
}
