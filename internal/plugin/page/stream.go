// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// update is sent to a browser: the names of all fragments in order, and the fragments that it does
// not have yet.
type update struct {
	Order     []string                 `json:"order"`
	Fragments map[string]template.HTML `json:"fragments"`
}

// stream sends a view's updates until the browser disconnects.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	v := view{r.URL.Query().Get("namespace"), r.URL.Query().Get("name")}
	w.Header().Set("Content-Type", "text/event-stream")
	var sent []fragment
	for now := range s.board.scenes(r.Context()) {
		fragments, err := now.fragments(v)
		if err == nil {
			err = sendEvent(w, newUpdate(sent, fragments))
		}
		if err != nil {
			klog.FromContext(r.Context()).V(2).Info("Stream ended", "reason", err.Error())
			return
		}
		sent = fragments
	}
}

// newUpdate returns the update from the old fragments to the new ones.
func newUpdate(before, after []fragment) update {
	u := update{Order: make([]string, len(after)), Fragments: map[string]template.HTML{}}
	for i, f := range after {
		u.Order[i] = f.ID
		if !slices.Contains(before, f) {
			u.Fragments[f.ID] = f.HTML
		}
	}
	return u
}

// sendEvent writes one event. Its data is one line: the JSON encoder writes no line break except
// the last one.
func sendEvent(w http.ResponseWriter, u update) error {
	var data bytes.Buffer
	// The page's script parses this as JSON, never as HTML: escaping it again would only make it
	// longer.
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(u); err != nil {
		return fmt.Errorf("write update: %w", err)
	}
	browser := http.NewResponseController(w)
	if err := browser.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("limit update: %w", err)
	}
	if _, err := fmt.Fprintf(w, "data: %s\n", data.Bytes()); err != nil {
		return fmt.Errorf("send update: %w", err)
	}
	return browser.Flush()
}

// How often the timeline advances if nothing changes: twice per step, so that no step is left out.
const beat = step / 2

// sceneFeed contains the newest scene and wakes its readers when there is a newer one.
type sceneFeed struct {
	source Source
	clock  clock.WithTicker
	// pace is the minimum time between two scenes.
	pace time.Duration

	mu sync.Mutex
	// now is the newest scene; nil until the first has been read.
	now *scene
	// newer is closed when now is replaced.
	newer chan struct{}
}

func newBoard(source Source, clock clock.WithTicker, pace time.Duration) *sceneFeed {
	return &sceneFeed{source: source, clock: clock, pace: pace, newer: make(chan struct{})}
}

// run reads scenes until ctx ends.
func (b *sceneFeed) run(ctx context.Context) {
	ticker := b.clock.NewTicker(beat)
	defer ticker.Stop()
	var past history
	for {
		seen := b.source.Read()
		past = past.record(seen)
		b.publish(newScene(seen, past))
		if !b.waitPace(ctx) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-b.source.Changed:
		case <-ticker.C():
		}
	}
}

// waitPace waits for the pace, or until ctx ends; then it returns false.
func (b *sceneFeed) waitPace(ctx context.Context) bool {
	timer := b.clock.NewTimer(b.pace)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

func (b *sceneFeed) publish(s *scene) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = s
	close(b.newer)
	b.newer = make(chan struct{})
}

func (b *sceneFeed) newest() (*scene, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now, b.newer
}

// scenes yields the newest scene, then again the newest one each time the caller is ready, until
// ctx ends.
func (b *sceneFeed) scenes(ctx context.Context) iter.Seq[*scene] {
	return func(yield func(*scene) bool) {
		var last *scene
		for {
			now, newer := b.newest()
			if now != last && !yield(now) {
				return
			}
			last = now
			select {
			case <-ctx.Done():
				return
			case <-newer:
			}
		}
	}
}

// view is what a browser shows: one MachineDeployment, or everything if the name is empty.
type view struct {
	namespace, name string
}

// scene is the state at one instant. Each of its views is drawn once, when a browser requests it.
type scene struct {
	overview overview.Overview
	past     history

	mu    sync.Mutex
	drawn map[view]drawing
}

// drawing is one view of a scene.
type drawing struct {
	fragments []fragment
	err       error
}

func newScene(o overview.Overview, past history) *scene {
	return &scene{overview: o, past: past, drawn: map[view]drawing{}}
}

// fragments draws a view. It returns nil if the view's object does not exist.
func (s *scene) fragments(v view) ([]fragment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, found := s.drawn[v]
	if !found {
		d.fragments, d.err = renderFragments(s.overview, s.past, v)
		s.drawn[v] = d
	}
	return d.fragments, d.err
}
