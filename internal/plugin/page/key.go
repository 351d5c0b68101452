// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/http"
)

// key opens one server's page. Every user of this machine can connect to the port; only the user
// who started the server sees the address with the key.
type key string

// parameter carries the key in the address, the first time.
const parameter = "key"

func newKey() key {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never returns an error
	return key(base64.RawURLEncoding.EncodeToString(random))
}

// cookie returns the name of the cookie with the key. Browsers send a cookie to all ports of a
// host, so each server uses a different name. The name does not reveal the key.
func (k key) cookie() string {
	sum := sha256.Sum256([]byte(k))
	return "evenkeel-" + hex.EncodeToString(sum[:6])
}

func (k key) matches(shown string) bool {
	return subtle.ConstantTimeCompare([]byte(k), []byte(shown)) == 1
}

// before admits only requests with the key, and moves the key from the address to a cookie.
func (k key) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie(k.cookie())
		switch {
		case r.URL.Path == "/" && k.matches(r.URL.Query().Get(parameter)):
			// Lax: a strict cookie is not sent if the link was followed from another site or from a
			// file.
			http.SetCookie(w, &http.Cookie{Name: k.cookie(), Value: string(k), Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
			http.Redirect(w, r, "/", http.StatusSeeOther)
		case err == nil && k.matches(cookie.Value):
			next.ServeHTTP(w, r)
		default:
			http.Error(w, "open the address that kubectl evenkeel ui has printed", http.StatusForbidden)
		}
	})
}
