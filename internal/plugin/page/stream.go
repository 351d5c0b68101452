// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"time"

	"k8s.io/klog/v2"
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
