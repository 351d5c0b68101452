// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// glossaryWords is how many words a reader can be expected to look up before the rest makes sense. A word that only one
// page uses is explained there.
const glossaryWords = 30

func longGlossary() ([]string, error) {
	text, err := os.ReadFile("docs/glossary.md")
	return beyondWords(string(text)), err
}

// beyondWords finds what is wrong with the words of a glossary, which are in the first column of its tables.
func beyondWords(text string) []string {
	var words, wrong []string
	for _, row := range rows(text) {
		for word := range strings.SplitSeq(row, ",") {
			if word = strings.TrimSpace(word); slices.Contains(words, word) {
				wrong = append(wrong, fmt.Sprintf("docs/glossary.md: %s is there twice", word))
			}
			words = append(words, word)
		}
	}
	if len(words) > glossaryWords {
		wrong = append(wrong, fmt.Sprintf("docs/glossary.md: %d words, and at most %d can be learned", len(words), glossaryWords))
	}
	return wrong
}

// rows returns the first cells of all rows of tables, without those of their heads.
func rows(text string) []string {
	var cells []string
	for line := range strings.Lines(text) {
		cell, isRow := strings.CutPrefix(line, "| ")
		if cell, _, _ = strings.Cut(cell, " |"); isRow {
			cells = append(cells, cell)
		} else if strings.HasPrefix(line, "|-") {
			cells = cells[:max(0, len(cells)-1)]
		}
	}
	return cells
}
