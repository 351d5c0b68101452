// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/watchretry"
)

// Limits on what one cluster can make the hub hold in memory, whatever its API server returns.
const (
	// maxList limits the body of a list; maxBody limits any other response, and each event of a
	// watch.
	maxList = 64 << 20
	maxBody = 4 << 20
	// maxWaiting limits how many requests wait for a program that prints credentials.
	maxWaiting = 32
)

// clientFor returns a client that limits what it reads, and that respects deadlines even if a
// program provides the credentials. It does not follow redirects: that would send the cluster's
// credentials to another server.
func clientFor(config *rest.Config) (*http.Client, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	if config.ExecProvider != nil {
		client.Transport = newPunctual(client.Transport)
	}
	client.Transport = bounded{watchretry.Wrap(client.Transport)}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, nil
}

// release closes a client's connections and waits for requests that a program delays.
func release(client *http.Client) {
	utilnet.CloseIdleConnectionsFor(client.Transport)
	for layer := client.Transport; ; {
		if p, ok := layer.(*punctual); ok {
			p.waiting.Wait()
			return
		}
		wrapper, ok := layer.(utilnet.RoundTripperWrapper)
		if !ok {
			return
		}
		layer = wrapper.WrappedRoundTripper()
	}
}

// punctual ends requests at their deadline, even while a program creates their credentials. The
// program does not know the deadline and would otherwise block the caller. If it finishes later,
// the request is not sent.
type punctual struct {
	next    http.RoundTripper
	places  chan struct{}
	waiting sync.WaitGroup
}

func newPunctual(next http.RoundTripper) *punctual {
	return &punctual{next: next, places: make(chan struct{}, maxWaiting)}
}

// RoundTrip implements http.RoundTripper.
func (p *punctual) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case p.places <- struct{}{}:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	type end struct {
		response *http.Response
		err      error
	}
	ended := make(chan end)
	p.waiting.Go(func() {
		response, err := p.next.RoundTrip(r)
		<-p.places
		select {
		case ended <- end{response, err}:
		case <-r.Context().Done():
			if err == nil {
				_ = response.Body.Close()
			}
		}
	})
	select {
	case e := <-ended:
		return e.response, e.err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// WrappedRoundTripper lets client-go close the connections.
func (p *punctual) WrappedRoundTripper() http.RoundTripper { return p.next }

// bounded limits how much of a response is read. It also makes the client send each write once: a
// client that repeats a write by itself would take the second response for the first one.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if r.Method != http.MethodGet {
		response.Header.Del("Retry-After")
	}
	body := &boundedBody{ReadCloser: response.Body, limit: maxBody}
	switch query := r.URL.Query(); {
	case query.Get("watch") != "":
		body.lines = true
	case query.Has("limit"), query.Has("resourceVersion"):
		body.limit = maxList
	}
	body.left = body.limit
	response.Body = body
	return response, nil
}

// WrappedRoundTripper lets client-go close the connections.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

var errTooLong = errors.New("the answer is too long")

// boundedBody returns an error once the body is too long. For a watch, the limit applies to each
// line, because each event is one line.
type boundedBody struct {
	io.ReadCloser
	limit, left int
	lines       bool
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	if i := bytes.LastIndexByte(p[:n], '\n'); b.lines && i >= 0 {
		b.left = b.limit - (n - 1 - i)
	}
	return n, err
}
