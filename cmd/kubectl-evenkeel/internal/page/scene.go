// SPDX-License-Identifier: Apache-2.0

package page

import (
	"sync"

	"github.com/evenkeel/evenkeel/internal/overview"
)

// view is what a browser looks at: one MachineDeployment, or everything where it has no name.
type view struct {
	namespace, name string
}

// scene is what there is to see at one instant. Each view of it is drawn once, when somebody looks.
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

// fragments draws a view. It is nil where the view's object does not exist.
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
