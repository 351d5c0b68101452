// SPDX-License-Identifier: Apache-2.0

// Package live shows an overview on a terminal for as long as somebody looks, and leaves the terminal as it was.
package live

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/cmd/kubectl-evenkeel/internal/screen"
	"github.com/evenkeel/evenkeel/internal/overview"
)

const (
	// pace bounds how often is drawn because something has changed.
	pace = 500 * time.Millisecond
	// beat is how often is looked whether the screen has another size.
	beat = 250 * time.Millisecond
	// rest is how often is drawn though nothing has changed: what takes too long shows by itself.
	rest = 5 * time.Second
)

// View is what is shown, and where.
type View struct {
	// Look makes an overview; Changed has something when the next would differ.
	Look    func() overview.Overview
	Changed <-chan struct{}
	// Keys are what is typed. It is read until it ends or the process does: a read of a terminal cannot be called off.
	Keys io.Reader
	Out  io.Writer
	// Size of the screen in columns and lines; asked again and again, since it may change.
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

// What makes a terminal show a second screen without a cursor, and the first one again.
const (
	enter = "\x1b[?1049h\x1b[?25l"
	leave = "\x1b[?25h\x1b[?1049l"
)

// Run draws the overview until q or Ctrl-C is typed, or ctx ends.
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
