// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"regexp"
	"strings"
	"unicode"
)

// Limits on how much of a cluster's own text goes into the status of an object.
const (
	maxReason  = 64
	maxMessage = 300
)

var (
	addresses   = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://[^\s"'<>]+|\b(\d{1,3}\.){3}\d{1,3}(:\d+)?\b|\[[0-9a-f]*:[0-9a-f:.%]+\](:\d+)?`)
	credentials = regexp.MustCompile(`(?i)\b(bearer|basic|token|password|authorization)\b["']?[\s:=]+["']?[^\s"',;]+`)
	longWords   = regexp.MustCompile(`[A-Za-z0-9+/_=.-]{40,}`)
)

// sanitized makes a sentence from a cluster safe to show: short, on one line, and without anything
// that could be an address or a credential. Users of the hub are not necessarily allowed to know
// these.
func sanitized(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, text[:min(len(text), 16*maxMessage)])
	text = addresses.ReplaceAllString(text, "(address)")
	text = credentials.ReplaceAllString(text, "$1 (hidden)")
	text = longWords.ReplaceAllStringFunc(text, func(word string) string {
		if strings.ContainsAny(word, "0123456789") {
			return "(hidden)"
		}
		return word
	})
	text = strings.Join(strings.Fields(text), " ")
	if all := []rune(text); len(all) > maxMessage {
		return string(all[:maxMessage-1]) + "…"
	}
	return text
}

// sanitizedReason returns a reason that may come from a cluster, if it has the form of one.
func sanitizedReason(word string) string {
	word = strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return -1
	}, word)
	return word[:min(len(word), maxReason)]
}
