// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"io"
)

// readKeys sends the keys that are pressed, until ctx or the reader ends.
func readKeys(ctx context.Context, in io.Reader) <-chan string {
	keys := make(chan string)
	go func() {
		defer close(keys)
		buffer := make([]byte, 64)
		for {
			n, err := in.Read(buffer)
			if n > 0 {
				select {
				case keys <- string(buffer[:n]):
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
