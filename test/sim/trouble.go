// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Answer is what a request gets instead of the server's own answer.
type Answer string

// The answers of an API server under load or in an upgrade, and of proxies in front of it.
const (
	// Throttled is 429, half of the time with Retry-After and the headers of API priority and
	// fairness.
	Throttled Answer = "429"
	// Unauthorized and Forbidden are temporary: the next request may succeed.
	Unauthorized Answer = "401"
	Forbidden    Answer = "403"
	// Failed is 500 with a Status.
	Failed Answer = "500"
	// BadGateway is 502 from a proxy, with an HTML page.
	BadGateway Answer = "502"
	// Unavailable is 503 from a proxy. If the request had no effect, Retry-After makes client-go
	// send it again.
	Unavailable Answer = "503"
	// TimedOut is 504, with a Status of the server or a page of a proxy.
	TimedOut Answer = "504"
	// Severed is a connection reset.
	Severed Answer = "connection reset"
)

// Trouble defines how often requests get other answers, and which ones.
type Trouble struct {
	// Reads and Writes are the probabilities, from 0 to 1. Discovery counts as reads. Until each
	// answer was given once, a probability above 0 counts as 0.8.
	Reads, Writes float64
	// Only are the answers to give; none means all. Each is given before any is repeated.
	Only []Answer
}

// Trouble makes requests of a resource ("" means every one) get answers that do not come from the
// server. For writes, answers that leave the outcome open are given both before and after they took
// effect. The zero Trouble ends it.
func (s *Server) Trouble(resource string, t Trouble, users ...string) {
	s.change(func(f *faults) {
		for _, at := range scopes(resource, users) {
			f.troubles[at] = &troubles{Trouble: t}
		}
	})
}

// Struck counts how often each kind of fault has occurred.
func (s *Server) Struck() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.struck)
}

// troubles deal the answers of a Trouble like cards, so that each gets its turn.
type troubles struct {
	Trouble
	reads, writes deck
}

type card struct {
	answer Answer
	moment Moment
}

type deck struct {
	cards []card
	begun bool
	// all reports whether each card was dealt once.
	all bool
}

// eager is the minimum probability until each answer has been given once.
const eager = 0.8

// drawCard takes the next card. The first deck is only cut, so that different seeds begin with
// different cards; later ones are shuffled.
func (d *deck) drawCard(random *rand.Rand, full []card, cut uint64) card {
	if len(d.cards) == 0 {
		first := int(cut % uint64(len(full)))
		d.cards = append(slices.Clone(full[first:]), full[:first]...)
		if d.begun {
			random.Shuffle(len(d.cards), func(i, j int) { d.cards[i], d.cards[j] = d.cards[j], d.cards[i] })
		}
		d.begun = true
	}
	next := d.cards[0]
	d.cards = d.cards[1:]
	d.all = d.all || len(d.cards) == 0
	return next
}

// fullDeck returns the answers of a Trouble, for each moment at which they can occur for a write.
func (t Trouble) fullDeck(write bool) []card {
	answers := t.Only
	if len(answers) == 0 {
		answers = []Answer{Throttled, Unauthorized, Forbidden, Failed, BadGateway, Unavailable, TimedOut, Severed}
	}
	var all []card
	for _, a := range answers {
		all = append(all, card{a, Before})
		if write && a.ambiguous() {
			all = append(all, card{a, After})
		}
	}
	return all
}

// ambiguous reports whether an answer leaves open if the request took effect.
func (a Answer) ambiguous() bool { return a != Throttled && a != Unauthorized && a != Forbidden }

// strike draws whether a request gets another answer than its own, and when. The caller holds the
// lock.
func (s *Server) strike(r *request) (before, after error) {
	t, found := mostSpecific(s.faults.troubles, r.User, r.Resource)
	if !found || r.dryRun() {
		return nil, nil
	}
	chance, dealt := t.Reads, &t.reads
	if r.table != nil && r.Writes() {
		chance, dealt = t.Writes, &t.writes
	}
	if chance > 0 && !dealt.all {
		chance = max(chance, eager)
	}
	if chance == 0 || s.faults.random.Float64() >= chance {
		return nil, nil
	}
	c := dealt.drawCard(s.faults.random, t.fullDeck(dealt == &t.writes), 5*s.seed)
	s.struck[c.label(dealt == &t.writes)]++
	if c.moment == Before {
		return s.spoken(c), nil
	}
	return nil, s.spoken(c)
}

func (c card) label(write bool) string {
	switch {
	case !write:
		return fmt.Sprintf("%s on read", c.answer)
	case c.answer.ambiguous() && c.moment == Before:
		return fmt.Sprintf("%s before write", c.answer)
	case c.answer.ambiguous():
		return fmt.Sprintf("%s after write", c.answer)
	default:
		return fmt.Sprintf("%s on write", c.answer)
	}
}

// spoken returns the answer as it is sent.
func (s *Server) spoken(c card) error {
	coin := s.faults.random.IntN(2) == 0
	switch c.answer {
	case Throttled:
		return throttled(coin)
	case Unauthorized:
		return refusal(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
	case Forbidden:
		return refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "the simulated authorizer has no answer yet")
	case Failed:
		return refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError, "Internal error occurred: the simulated storage failed")
	case BadGateway:
		return proxyPage(http.StatusBadGateway)
	case Unavailable:
		p := proxyPage(http.StatusServiceUnavailable)
		if c.moment == Before && coin {
			p.header.Set("Retry-After", "1")
		}
		return p
	case TimedOut:
		if coin {
			return proxyPage(http.StatusGatewayTimeout)
		}
		return refusal(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Timeout: request did not complete within the allotted timeout")
	default:
		return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
}

// plainAnswer is an answer that is not a Status, or that has headers of its own. It is an error, so
// that it is handled like a refusal.
type plainAnswer struct {
	code   int
	header http.Header
	body   []byte
}

func (p *plainAnswer) Error() string { return fmt.Sprintf("%d %s", p.code, http.StatusText(p.code)) }

// proxyPage is the body of a proxy's answer.
func proxyPage(code int) *plainAnswer {
	title := fmt.Sprintf("%d %s", code, http.StatusText(code))
	return &plainAnswer{
		code: code, header: http.Header{"Content-Type": {"text/html"}},
		body: fmt.Appendf(nil, "<html><head><title>%s</title></head><body><h1>%s</h1></body></html>\n", title, title),
	}
}

func throttled(fairness bool) *plainAnswer {
	p := &plainAnswer{code: http.StatusTooManyRequests, header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, body: []byte("Too many requests, please try again later.\n")}
	if fairness {
		p.header.Set("Retry-After", "1")
		p.header.Set("X-Kubernetes-Pf-Flowschema-Uid", "4fcd1a0e-7b1d-4f8f-9a83-2b6f0c1e9d11")
		p.header.Set("X-Kubernetes-Pf-Prioritylevel-Uid", "0b7a5d0c-52d3-4f3b-8a43-1f7b6a8d2c22")
	}
	return p
}
