// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net"
	"net/http"
	"slices"
)

// policy lets a browser load only content from this server, and forbids framing the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guarded enforces laws 1 to 3: it answers only GET, and only requests from pages of this server,
// or from a user who opens a page.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		switch {
		case r.Method != http.MethodGet:
			header.Set("Allow", http.MethodGet)
			http.Error(w, "only GET is supported", http.StatusMethodNotAllowed)
		case !loopback(r.Host):
			http.Error(w, "open this page as http://127.0.0.1 or http://localhost", http.StatusForbidden)
		case foreign(r):
			http.Error(w, "requests from other sites are rejected", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// loopback reports whether a Host is an address of this machine that no name server decides. The
// port may be different, because a tunnel may end at another one.
func loopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return slices.Contains([]string{"127.0.0.1", "localhost", "::1", "[::1]"}, name)
}

// foreign reports whether a page of another origin makes the request. A link to this page may be
// followed from anywhere, because the site with the link learns nothing from that.
func foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return true
	}
	followed := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	default:
		return !followed
	}
}

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
			http.Error(w, "open the address that kubectl evenkeel ui printed", http.StatusForbidden)
		}
	})
}
