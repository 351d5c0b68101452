// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"embed"
	"net/http"
	"net/url"
	"time"

	"k8s.io/klog/v2"
)

//go:embed assets
var assets embed.FS

// handler serves all paths.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.everything)
	mux.HandleFunc("GET /zone/{namespace}/{name}", s.machines)
	mux.HandleFunc("GET /size/{namespace}/{name}", s.size)
	mux.HandleFunc("GET /size/{namespace}/{name}/{picture}", s.sizePicture)
	mux.HandleFunc("GET /events", s.stream)
	mux.Handle("GET /assets/", http.FileServerFS(assets))
	return guarded(s.key.before(mux))
}

func (s *Server) everything(w http.ResponseWriter, r *http.Request) { s.serveView(w, r, view{}) }

func (s *Server) machines(w http.ResponseWriter, r *http.Request) {
	s.serveView(w, r, view{r.PathValue("namespace"), r.PathValue("name")})
}

// document is a whole page.
type document struct {
	// Name is the name of what the page shows, Object the object; empty for everything.
	Name, Object string
	Heading      string
	// Stream is the path of the updates; empty if there are none.
	Stream    string
	Fragments []fragment
}

// serveView answers with the whole page of a view. The first request may wait until there is
// something to show.
func (s *Server) serveView(w http.ResponseWriter, r *http.Request, v view) {
	for now := range s.board.scenes(r.Context()) {
		fragments, err := now.fragments(v)
		if err != nil {
			writeError(w, r, err)
			return
		}
		s.writePage(w, r, document{Object: v.name, Heading: v.heading(), Stream: v.stream(), Fragments: fragments})
		return
	}
}

func (s *Server) writePage(w http.ResponseWriter, r *http.Request, page document) {
	page.Name = s.name
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, "document", page); err != nil {
		writeError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if len(page.Fragments) == 0 {
		w.WriteHeader(http.StatusNotFound)
	}
	send(w, text.Bytes())
}

// send writes what the browser waited for, so only the write has a deadline. An error means that the
// browser has disconnected.
func send(w http.ResponseWriter, text []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	_, _ = w.Write(text)
}

func (v view) heading() string {
	if v == (view{}) {
		return "Pools, zones and machines"
	}
	return "Machines of " + v.name
}

// stream returns the path of a view's updates.
func (v view) stream() string {
	if v == (view{}) {
		return "/events"
	}
	return "/events?" + url.Values{"namespace": {v.namespace}, "name": {v.name}}.Encode()
}

func writeError(w http.ResponseWriter, r *http.Request, err error) {
	klog.FromContext(r.Context()).Error(err, "Page not drawn")
	http.Error(w, err.Error(), http.StatusInternalServerError)
}
