// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Client is one process's connection to the server. It can be cut for good.
type Client struct {
	server *Server
	user   string
	severed
}

// Client returns a new connection with this identity.
func (s *Server) Client(user string) *Client {
	return &Client{server: s, user: user, severed: severed{done: make(chan struct{})}}
}

// Config returns the client's configuration, without a rate limit.
func (c *Client) Config() *rest.Config {
	return &rest.Config{
		Host: "http://sim", Transport: c, QPS: -1, UserAgent: cmp.Or(c.user, "anonymous") + "/sim",
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	}
}

// RoundTrip serves a request on the caller's goroutine.
func (c *Client) RoundTrip(hr *http.Request) (*http.Response, error) {
	var body []byte
	if hr.Body != nil {
		read, err := io.ReadAll(hr.Body)
		if err := errors.Join(err, hr.Body.Close()); err != nil {
			return nil, fmt.Errorf("read request: %w", err)
		}
		body = read
	}
	r, err := c.server.parseRequest(c, hr, body)
	if err != nil {
		return respond(hr, answer{}, err)
	}
	if err := c.server.waitOutSilence(r); err != nil {
		return nil, err
	}
	before, after := c.server.latency(r)
	if err := c.delay(hr.Context(), before); err != nil {
		return nil, err
	}
	c.stands()
	a, err := c.server.serveRequest(r)
	c.stands()
	if a.stream == nil {
		if err := c.server.waitOutSilence(r); err != nil {
			return nil, err
		}
		if err := c.delay(hr.Context(), after); err != nil {
			return nil, err
		}
	}
	return respond(hr, a, err)
}

// delay waits as a network would.
func (c *Client) delay(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return refused()
	case <-c.server.closed:
		return refused()
	}
}

// answer is the result of a request: an encoded object, or a watch.
type answer struct {
	code   int
	body   []byte
	stream io.ReadCloser
}

// object returns an answer with anything that can be encoded.
func object(code int, o any) (answer, error) {
	raw, err := json.Marshal(o)
	return answer{code: code, body: raw}, err
}

// respond turns an error with an API status into a response. Every other error breaks the
// connection.
func respond(hr *http.Request, a answer, err error) (*http.Response, error) {
	var plain *plainAnswer
	if errors.As(err, &plain) {
		return response(hr, answer{code: plain.code, body: plain.body}, plain.header), nil
	}
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			return nil, err
		}
		told := status.Status()
		told.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		if a, err = object(int(told.Code), told); err != nil {
			return nil, err
		}
	}
	return response(hr, a, http.Header{"Content-Type": {"application/json"}}), nil
}

func response(hr *http.Request, a answer, header http.Header) *http.Response {
	response := &http.Response{
		Status:     strconv.Itoa(a.code) + " " + http.StatusText(a.code),
		StatusCode: a.code,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        header,
		Body:          a.stream,
		ContentLength: -1,
		Request:       hr,
	}
	if a.stream == nil {
		response.Body = io.NopCloser(bytes.NewReader(a.body))
		response.ContentLength = int64(len(a.body))
	}
	return response
}

// refused is what a client sees if there is no server.
func refused() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}
