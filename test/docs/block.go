// SPDX-License-Identifier: Apache-2.0

// Package docs runs what the documents tell a reader to type.
//
// A fenced block is run if the line before it is `<!-- runnable -->`. Where lines of it begin with "$ ", those are the commands and
// the others are what they print, else every line is a command. The blocks of one document are run one after the other by one shell,
// which ends at the first command that fails.
package docs

import "strings"

const marker = "<!-- runnable -->"

// script returns the commands of a document's runnable blocks.
func script(text string) []string {
	var commands, block []string
	marked, inside := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch fence := strings.HasPrefix(line, "```"); {
		case inside && fence:
			commands = append(commands, typed(block)...)
			inside, marked, block = false, false, nil
		case inside:
			block = append(block, line)
		case fence && marked:
			inside = true
		case strings.TrimSpace(line) == marker:
			marked = true
		case strings.TrimSpace(line) != "":
			marked = false
		}
	}
	return commands
}

// typed are the lines of a block that somebody types.
func typed(block []string) []string {
	var prompted []string
	for _, line := range block {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			prompted = append(prompted, command)
		}
	}
	if prompted == nil {
		return block
	}
	return prompted
}
