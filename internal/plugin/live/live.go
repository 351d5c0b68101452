// SPDX-License-Identifier: Apache-2.0

// Package live shows an overview on a terminal until the user quits, and then restores the
// terminal.
package live

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plugin/screen"
)

const (
	// pace is the minimum time between two frames after changes.
	pace = 500 * time.Millisecond
	// beat is how often the size of the screen is checked.
	beat = 250 * time.Millisecond
	// rest is how often a frame is drawn without a change, so that durations are up to date.
	rest = 5 * time.Second
)

// View defines what is shown, and where.
type View struct {
	// Look returns an overview. Changed has a value when the next one would differ.
	Look    func() overview.Overview
	Changed <-chan struct{}
	// Keys is the input. It is read until it ends or the process does, because a read from a
	// terminal cannot be canceled.
	Keys io.Reader
	Out  io.Writer
	// Size returns the size of the screen in columns and lines. It is called repeatedly, because
	// the size may change.
	Size  func() (columns, lines int)
	Style screen.Style
	Clock clock.WithTicker

	shown   overview.Overview
	at      time.Time
	offset  int
	columns int
	lines   int
	last    string
}

// Escape sequences: to a second screen without a cursor, and back.
const (
	enter = "\x1b[?1049h\x1b[?25l"
	leave = "\x1b[?25h\x1b[?1049l"
)

// Run draws the overview until q or Ctrl-C is pressed, or ctx ends.
func (v *View) Run(ctx context.Context) (err error) {
	if _, err := io.WriteString(v.Out, enter); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	defer func() {
		if _, e := io.WriteString(v.Out, leave); err == nil && e != nil {
			err = fmt.Errorf("restore the terminal: %w", e)
		}
	}()
	keys := readKeys(ctx, v.Keys)
	ticker := v.Clock.NewTicker(beat)
	defer ticker.Stop()
	v.columns, v.lines = v.Size()
	v.refresh()
	for stale := false; ; {
		if err := v.redraw(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case key, open := <-keys:
			if !open {
				keys = nil
			} else if v.handleKey(key) {
				return nil
			}
		case <-v.Changed:
			stale = true
		case <-ticker.C():
			v.columns, v.lines = v.Size()
		}
		if age := v.Clock.Since(v.at); stale && age >= pace || age >= rest {
			v.refresh()
			stale = false
		}
	}
}

func (v *View) refresh() {
	v.shown, v.at = v.Look(), v.Clock.Now()
}

// redraw writes the screen if it has changed.
func (v *View) redraw() error {
	style := v.Style
	style.Width = v.columns
	frame, offset := Frame(v.shown, style, v.columns, v.lines, v.offset)
	v.offset = offset
	if frame == v.last {
		return nil
	}
	v.last = frame
	if _, err := io.WriteString(v.Out, frame); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	return nil
}

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

// Frame draws one screen: as many lines as fit from offset on, and a last line that counts the
// rest. It returns the offset, limited to what there is to see.
func Frame(v overview.Overview, style screen.Style, columns, lines, offset int) (string, int) {
	if columns < screen.Narrowest || lines < 3 {
		return home + clearBelow + fmt.Sprintf("needs %dx3", screen.Narrowest), 0
	}
	content := screen.Status(v, style)
	room := lines - 1
	offset = max(0, min(offset, len(content)-room))
	shown := content[offset:min(len(content), offset+room)]
	var b strings.Builder
	b.WriteString(home)
	for _, line := range shown {
		b.WriteString(clearLine + line + "\r\n")
	}
	for range room - len(shown) {
		b.WriteString(clearLine + "\r\n")
	}
	b.WriteString(clearBelow + reverse + style.Fit(footer(v, offset, len(shown), len(content)), columns) + plain)
	return b.String(), offset
}

// Escape sequences: to the upper left corner, and to clear the rest of a line and of the screen. After a
// text that fills a line, the cursor is still on its last character, and many terminals would clear that.
const (
	home       = "\x1b[H"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

// Escape sequences: dark letters on a light ground, and as usual.
const (
	reverse = "\x1b[7m"
	plain   = "\x1b[0m"
)

// footer lists the keys, the number of problems, the position, and first of all that is missing what is
// old.
func footer(v overview.Overview, offset, shown, all int) string {
	text := "q quit  w machines"
	if shown < all {
		text += fmt.Sprintf("  j k space scroll  %d-%d of %d", offset+1, offset+shown, all)
	}
	if n := len(v.Troubles); n > 0 {
		text = fmt.Sprintf("%d wrong  ", n) + text
	}
	if len(v.Missing) > 0 {
		text += "  " + v.Missing[0]
	}
	return text
}
