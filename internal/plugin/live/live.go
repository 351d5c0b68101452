// SPDX-License-Identifier: Apache-2.0

// Package live shows an overview on a terminal until the user quits, and then restores the
// terminal.
package live

import (
	"context"
	"fmt"
	"io"
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
