// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// server answers every request with an empty Node once it is let, or with half of one.
type server struct {
	let     chan struct{}
	halfway bool
	// failing answers with this status and Retry-After.
	failing int
	served  int
}

// half is an answer whose rest never arrives. It ends like an answer of http.Transport.
type half struct{ request *http.Request }

func (h half) Read([]byte) (int, error) {
	//lint:ignore SA1019 http.Client sets it
	timeout := h.request.Cancel
	select {
	case <-h.request.Context().Done():
		return 0, h.request.Context().Err()
	case <-timeout:
		return 0, context.Canceled
	}
}

func (h half) Close() error { return nil }

func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	select {
	case <-s.let:
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
	s.served++
	body := io.NopCloser(bytes.NewBufferString(`{"apiVersion":"v1","kind":"Node"}`))
	if s.halfway {
		body = half{request}
	}
	if s.failing != 0 {
		return &http.Response{StatusCode: s.failing, Request: request, Header: http.Header{"Retry-After": {"1"}}, Body: http.NoBody}, nil
	}
	return &http.Response{
		StatusCode: http.StatusOK, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   body,
	}, nil
}

var _ = Describe("Gate", func() {
	ctx := context.Background()
	create := func(client kubernetes.Interface) error {
		_, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{}, metav1.CreateOptions{})
		return err
	}
	behind := func(gate *Gate, server *server) kubernetes.Interface {
		client, err := kubernetes.NewForConfig(gate.Behind(&rest.Config{Host: "http://api", Transport: server, QPS: -1}))
		Expect(err).NotTo(HaveOccurred())
		return client
	}

	read := func(client kubernetes.Interface) error {
		_, err := client.CoreV1().Nodes().Get(ctx, "a", metav1.GetOptions{})
		return err
	}
	DescribeTable("ends a watch with the timeout of its client, but gives it time to begin with all objects",
		func(initial *bool, want time.Duration) {
			synctest.Test(suite, func(*testing.T) {
				s := &server{let: make(chan struct{}), halfway: true}
				close(s.let)
				config := (&Gate{}).Behind(&rest.Config{Host: "http://api", Transport: s, QPS: -1, Timeout: time.Minute})
				begun := time.Now()
				events, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().Watch(ctx, metav1.ListOptions{SendInitialEvents: initial})
				Expect(err).NotTo(HaveOccurred())
				for range events.ResultChan() { // until it ends
				}
				Expect(time.Since(begun)).To(Equal(want))
				synctest.Wait()
			})
		},
		Entry("from a version", nil, time.Minute),
		Entry("from all objects", ptr.To(true), 5*time.Minute),
	)

	It("ends a watch that begins with all objects when its caller does, or when it closes", func() {
		synctest.Test(suite, func(*testing.T) {
			for _, closes := range []bool{false, true} {
				s, gate := &server{let: make(chan struct{}), halfway: true}, &Gate{}
				close(s.let)
				watching, cancel := context.WithCancel(ctx)
				events, err := behind(gate, s).CoreV1().Nodes().Watch(watching, metav1.ListOptions{SendInitialEvents: ptr.To(true)})
				Expect(err).NotTo(HaveOccurred())
				if closes {
					Expect(gate.Close()).To(Succeed())
				}
				begun := time.Now()
				if !closes {
					cancel()
				}
				for range events.ResultChan() { // until it ends
				}
				Expect(time.Since(begun)).To(BeZero())
				cancel()
			}
		})
	})

	It("repeats a watch that begins with all objects until its caller stops, while the API server has too many requests", bubble(func() {
		s := &server{let: make(chan struct{}), failing: http.StatusTooManyRequests}
		close(s.let)
		watching, stop := context.WithCancel(ctx)
		begun := time.Now()
		time.AfterFunc(5*time.Minute, stop)
		_, err := behind(new(Gate), s).CoreV1().Nodes().Watch(watching, metav1.ListOptions{SendInitialEvents: ptr.To(true)})
		Expect(err).To(MatchError(context.Canceled))
		Expect(time.Since(begun)).To(Equal(5 * time.Minute))
	}))

	DescribeTable("has client-go repeat no write by itself that may have had an effect",
		func(request func(kubernetes.Interface) error, status int, repeats bool) {
			synctest.Test(suite, func(*testing.T) {
				s := &server{let: make(chan struct{}), failing: status}
				close(s.let)
				Expect(request(behind(&Gate{}, s))).NotTo(Succeed())
				Expect(s.served > 1).To(Equal(repeats))
			})
		},
		Entry("a write of which the API server says nothing", create, http.StatusServiceUnavailable, false),
		Entry("a write that fails", create, http.StatusInternalServerError, false),
		Entry("a write that is throttled, which is not looked at", create, http.StatusTooManyRequests, true),
		Entry("a read", read, http.StatusServiceUnavailable, true),
	)

	// begun starts a request and returns where its error will be.
	begun := func(request func(kubernetes.Interface) error, client kubernetes.Interface) <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- request(client) }()
		synctest.Wait()
		return ended
	}

	It("lets everything through while open, and nothing once closed", bubble(func() {
		gate, api := new(Gate), &server{let: make(chan struct{})}
		close(api.let)
		client := behind(gate, api)
		Expect(create(client)).To(Succeed())
		Expect(read(client)).To(Succeed())
		Expect(gate.Close()).To(Succeed())
		Expect(create(client)).To(MatchError(ErrClosed))
		Expect(read(client)).To(MatchError(ErrClosed))
		Expect(api.served).To(Equal(2))
	}))

	It("hides no connection from who closes it", func() {
		transport, err := rest.TransportFor(new(Gate).Behind(&rest.Config{Host: "http://api"}))
		Expect(err).NotTo(HaveOccurred())
		for {
			wrapper, ok := transport.(utilnet.RoundTripperWrapper)
			if !ok {
				break
			}
			transport = wrapper.WrappedRoundTripper()
		}
		Expect(transport).To(BeAssignableToTypeOf(&http.Transport{}))
	})

	It("gives up writes that get no answer, and reports it", bubble(func() {
		gate, api := new(Gate), &server{let: make(chan struct{})}
		written := begun(create, behind(gate, api))
		from := time.Now()
		Expect(gate.Close()).To(MatchError(ErrUnanswered))
		Expect(time.Since(from)).To(Equal(time.Second))
		Expect(<-written).To(MatchError(context.Canceled))
		Expect(gate.Close()).To(MatchError(ErrUnanswered), "whoever asks")
	}))

	It("cuts reads at once, also those whose answer is half read", bubble(func() {
		for _, halfway := range []bool{false, true} {
			gate, api := new(Gate), &server{let: make(chan struct{}), halfway: halfway}
			if halfway {
				close(api.let)
			}
			answered := begun(read, behind(gate, api))
			from := time.Now()
			Expect(gate.Close()).To(Succeed())
			Expect(<-answered).To(MatchError(context.Canceled))
			Expect(time.Since(from)).To(BeZero())
		}
	}))

	It("gives a write up whose answer is half read", bubble(func() {
		gate, api := new(Gate), &server{let: make(chan struct{}), halfway: true}
		close(api.let)
		written := begun(create, behind(gate, api))
		from := time.Now()
		Expect(gate.Close()).To(MatchError(ErrUnanswered))
		Expect(<-written).To(HaveOccurred())
		Expect(time.Since(from)).To(Equal(time.Second))
	}))

	It("closes only when the writes under way have been answered", bubble(func() {
		gate, api := new(Gate), &server{let: make(chan struct{})}
		client := behind(gate, api)
		written := begun(create, client)
		closed := false
		go func() { _ = gate.Close(); closed = true }()
		synctest.Wait()
		Expect(closed).To(BeFalse())
		Expect(create(client)).To(MatchError(ErrClosed))
		close(api.let)
		Expect(<-written).To(Succeed())
		synctest.Wait()
		Expect(closed).To(BeTrue())
	}))

	It("closes with a context, whoever still works", bubble(func() {
		gate, api := new(Gate), &server{let: make(chan struct{})}
		close(api.let)
		client := behind(gate, api)
		work, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- gate.Run(work) }()
		Expect(create(client)).To(Succeed())
		stop()
		Expect(<-ended).To(Succeed())
		Expect(create(client)).To(MatchError(ErrClosed))
	}))

	It("gives a write whose caller stops a moment to be answered", bubble(func() {
		for _, answeredIn := range []time.Duration{time.Second / 2, time.Minute} {
			gate, api := new(Gate), &server{let: make(chan struct{})}
			call, stop := context.WithCancel(ctx)
			written := begun(func(client kubernetes.Interface) error {
				_, err := client.CoreV1().Nodes().Create(call, &corev1.Node{}, metav1.CreateOptions{})
				return err
			}, behind(gate, api))
			stop()
			from := time.Now()
			time.AfterFunc(answeredIn, func() { close(api.let) })
			err := <-written
			if answeredIn > time.Second {
				Expect(err).To(MatchError(context.Canceled))
			}
			Expect(api.served).To(Equal(int(min(1, time.Second/answeredIn))))
			Expect(time.Since(from)).To(Equal(min(answeredIn, time.Second)))
		}
	}))

	It("keeps the deadline of a write", bubble(func() {
		gate, api := new(Gate), &server{let: make(chan struct{})}
		call, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		from := time.Now()
		_, err := behind(gate, api).CoreV1().Nodes().Create(call, &corev1.Node{}, metav1.CreateOptions{})
		Expect(err).To(MatchError(context.DeadlineExceeded))
		Expect(time.Since(from)).To(Equal(time.Minute))
	}))
})
