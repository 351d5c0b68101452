// SPDX-License-Identifier: Apache-2.0

package page

import (
	"sync"

	"github.com/evenkeel/evenkeel/internal/overview"
)

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
