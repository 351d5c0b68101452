// SPDX-License-Identifier: Apache-2.0

package watchretry_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/watchretry"
)

var suite *testing.T

func TestWatchRetry(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "WatchRetry")
}

// server answers one request after the other, the last answer to all that follow.
type server struct {
	answers []func() (*http.Response, error)
	asked   []time.Duration
	begun   time.Time
	closed  int
}

func (s *server) RoundTrip(*http.Request) (*http.Response, error) {
	s.asked = append(s.asked, time.Since(s.begun))
	return s.answers[min(len(s.asked), len(s.answers))-1]()
}

func (s *server) code(code int) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		return &http.Response{StatusCode: code, Body: &body{Reader: strings.NewReader(""), server: s}}, nil
	}
}

type body struct {
	io.Reader
	server *server
}

func (b *body) Close() error { b.server.closed++; return nil }

func fails(err error) func() (*http.Response, error) {
	return func() (*http.Response, error) { return nil, err }
}

var refused = fails(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})

const fills, goesOn = "https://it/pods?watch=true&sendInitialEvents=true", "https://it/pods?watch=true&resourceVersion=5"

// ask sends a request whose context ends after ten minutes.
func (s *server) ask(url string) (response *http.Response, took time.Duration, err error) {
	synctest.Test(suite, func(*testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		s.begun = time.Now()
		response, err = watchretry.Wrap(s).RoundTrip(request)
		took = time.Since(s.begun)
	})
	return response, took, err
}

var _ = Describe("The request that fills an informer", func() {
	It("is repeated while connections are refused or there are too many requests, ever more seldom", func() {
		s := &server{}
		s.answers = []func() (*http.Response, error){refused, refused, s.code(http.StatusTooManyRequests), refused, refused, refused, refused, refused, s.code(http.StatusOK)}
		response, _, err := s.ask(fills)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.StatusCode).To(Equal(http.StatusOK))
		Expect(s.closed).To(Equal(1), "bodies that are not handed over are closed")
		Expect(s.asked).To(HaveLen(9))
		for i, least := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
			Expect(s.asked[i+1] - s.asked[i]).To(And(BeNumerically(">=", least*time.Second), BeNumerically("<=", 2*least*time.Second)))
		}
	})

	It("ends with its context, also while it waits", func() {
		s := &server{answers: []func() (*http.Response, error){refused}}
		_, took, err := s.ask(fills)
		Expect(err).To(MatchError(context.DeadlineExceeded))
		Expect(took).To(Equal(10 * time.Minute))
	})

	It("is not repeated after any other answer, nor is any other request", func() {
		for _, answer := range []func() (*http.Response, error){fails(errors.New("no route")), fails(syscall.ECONNRESET)} {
			s := &server{answers: []func() (*http.Response, error){answer}}
			_, _, err := s.ask(fills)
			Expect(err).To(HaveOccurred())
			Expect(s.asked).To(HaveLen(1))
		}
		s := &server{}
		s.answers = []func() (*http.Response, error){s.code(http.StatusGone)}
		response, _, err := s.ask(fills)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.StatusCode).To(Equal(http.StatusGone))
		Expect(s.closed).To(BeZero())

		s = &server{answers: []func() (*http.Response, error){refused}}
		_, _, err = s.ask(goesOn)
		Expect(err).To(MatchError(syscall.ECONNREFUSED))
		Expect(s.asked).To(HaveLen(1))
	})
})
