// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"io"
	"strings"
)

// readKeys sends the keys that are pressed, until ctx or the reader ends.
func readKeys(ctx context.Context, in io.Reader) <-chan string {
	keys := make(chan string)
	go func() {
		defer close(keys)
		buffer := make([]byte, 64)
		for {
			n, err := in.Read(buffer)
			for _, key := range splitKeys(string(buffer[:n])) {
				select {
				case keys <- key:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return keys
}

// splitKeys splits what was read into keys: a key that is held, or a slow connection, sends several at
// once. Some keys are escape sequences, which end with a letter or a tilde.
func splitKeys(text string) (all []string) {
	for text != "" {
		n := 1
		if strings.HasPrefix(text, "\x1b[") || strings.HasPrefix(text, "\x1bO") {
			n = 2
			for n < len(text) && (text[n] < '@' || text[n] > '~') {
				n++
			}
			n = min(n+1, len(text))
		}
		all, text = append(all, text[:n]), text[n:]
	}
	return all
}

// handleKey handles a key, and reports whether to quit.
func (v *View) handleKey(key string) (quit bool) {
	page := max(1, v.lines-2)
	switch key {
	case "q", "Q", "\x03", "\x04", "\x1b":
		return true
	case "j", "\x1b[B", "\x1bOB", "\r":
		v.offset++
	case "k", "\x1b[A", "\x1bOA":
		v.offset--
	case " ", "f", "\x1b[6~":
		v.offset += page
	case "b", "\x1b[5~":
		v.offset -= page
	case "g", "\x1b[H", "\x1b[1~":
		v.offset = 0
	case "G", "\x1b[F", "\x1b[4~":
		v.offset = end
	case "w":
		v.Style.Wide = !v.Style.Wide
	}
	return false
}

// end is beyond any content.
const end = 1 << 30
