// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/evenkeel/evenkeel/internal/plugin/picture"
	"github.com/evenkeel/evenkeel/internal/plugin/size"
)

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
