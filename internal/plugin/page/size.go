// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/evenkeel/evenkeel/internal/plugin/picture"
	"github.com/evenkeel/evenkeel/internal/plugin/screen"
	"github.com/evenkeel/evenkeel/internal/plugin/size"
)

// sizes finds out how large reserves should be (law 9).
type sizes struct {
	source Source
	// turn is held by the one that computes.
	turn chan struct{}

	mu sync.Mutex
	// shown and answer are what was computed last, which pictures are drawn of.
	shown  view
	answer size.Answer
}

func newSizes(source Source) *sizes { return &sizes{source: source, turn: make(chan struct{}, 1)} }

// computeAnswer computes the answer for a MachineDeployment.
func (s *sizes) computeAnswer(ctx context.Context, v view) (size.Answer, error) {
	if s.source.Size == nil {
		return size.Answer{}, size.ErrNotFound
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return size.Answer{}, ctx.Err()
	}
	defer func() { <-s.turn }()
	answer, err := s.source.Size(ctx, v.namespace, v.name)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.shown, s.answer = v, answer
	}
	return answer, err
}

// lastAnswer returns what the page of a MachineDeployment shows, which may have to be computed
// again.
func (s *sizes) lastAnswer(ctx context.Context, v view) (size.Answer, error) {
	s.mu.Lock()
	shown, answer := s.shown, s.answer
	s.mu.Unlock()
	if shown == v {
		return answer, nil
	}
	return s.computeAnswer(ctx, v)
}

// shownSize is a size as the page shows it.
type shownSize struct {
	screen.SizeTexts
	Namespace, Name, Zone, Href string
	Manifest                    string
	Notes                       []string
}

// size answers with the page of how large a reserve should be.
func (s *Server) size(w http.ResponseWriter, r *http.Request) {
	v := view{r.PathValue("namespace"), r.PathValue("name")}
	answer, err := s.sizes.computeAnswer(r.Context(), v)
	if r.Context().Err() != nil {
		return
	}
	var d drawer
	switch {
	case err == nil:
		d.size(v, answer)
	case !errors.Is(err, size.ErrNotFound):
		d.render("size", "unsized", unsized{v.name, zoneHref(v.namespace, v.name), err.Error()})
	}
	if d.err != nil {
		writeError(w, r, d.err)
		return
	}
	s.writePage(w, r, document{Object: v.name, Heading: "How large the reserve of " + v.name + " should be", Fragments: d.fragments})
}

// unsized is why a size is not known.
type unsized struct{ Name, Zone, Why string }

func (d *drawer) size(v view, a size.Answer) {
	shown := shownSize{SizeTexts: screen.TextsOf(a), Namespace: v.namespace, Name: v.name, Zone: zoneHref(v.namespace, v.name), Href: sizeHref(v.namespace, v.name), Notes: a.Notes}
	if a.Reserve != nil {
		if shown.Manifest, d.err = a.Reserve.YAML(); d.err != nil {
			return
		}
	}
	d.render("size", "size", shown)
	d.render("amounts", "amounts", shown)
	d.render("read", "read", a.End)
}

// picturePolicy lets a picture have a style of its own, and nothing else.
const picturePolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

// drawings draw the pictures of a size, by the last part of their path.
var drawings = map[string]func(io.Writer, size.Answer) error{
	"frontier.svg": picture.Frontier,
	"week.svg":     picture.Week,
}

// sizePicture answers with a picture on that page.
func (s *Server) sizePicture(w http.ResponseWriter, r *http.Request) {
	draw, found := drawings[r.PathValue("picture")]
	if !found {
		http.NotFound(w, r)
		return
	}
	answer, err := s.sizes.lastAnswer(r.Context(), view{r.PathValue("namespace"), r.PathValue("name")})
	var text bytes.Buffer
	if err == nil {
		err = draw(&text, answer)
	}
	switch {
	case errors.Is(err, size.ErrNotFound):
		http.NotFound(w, r)
	case err != nil:
		writeError(w, r, err)
	default:
		w.Header().Set("Content-Type", "image/svg+xml")
		w.Header().Set("Content-Security-Policy", picturePolicy)
		send(w, text.Bytes())
	}
}
