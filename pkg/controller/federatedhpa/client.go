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

// Bounds of what one cluster can make the hub hold, whatever its API server answers.
const (
	// maxList bounds the body of a list, maxBody that of any other answer, and one event of a watch.
	maxList = 64 << 20
	maxBody = 4 << 20
	// maxWaiting bounds how many requests wait for a program that makes credentials.
	maxWaiting = 32
)

// clientFor is bounded in what it reads, and punctual where programs are involved. A redirect is an answer like any other:
// who is redirected would show the cluster's credentials to somebody else.
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

// release closes the connections of a client, and waits for the requests that a program holds up.
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

// punctual ends requests when their time is up, also while a program makes the credentials for them: that one is not told
// of time, and would otherwise block the caller. What it comes to later is not sent any more, since the request is over.
type punctual struct {
	next    http.RoundTripper
	places  chan struct{}
	waiting sync.WaitGroup
}

func newPunctual(next http.RoundTripper) *punctual {
	return &punctual{next: next, places: make(chan struct{}, maxWaiting)}
}

// RoundTrip is for http.
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

// WrappedRoundTripper is for closing connections.
func (p *punctual) WrappedRoundTripper() http.RoundTripper { return p.next }

// bounded reads no more of an answer than there can sensibly be. One request is sent once: a client that repeats a write by
// itself takes the answer to the second for that to the first.
type bounded struct{ next http.RoundTripper }

// RoundTrip is for http.
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

// WrappedRoundTripper is for closing connections.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

var errTooLong = errors.New("the answer is too long")

// boundedBody ends with an error where it would be too long, or a line of it, as each event of a watch is one.
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
