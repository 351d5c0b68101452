// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// server answers every request with an empty Node once it is let.
type server struct {
	let    chan struct{}
	served int
}

func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	select {
	case <-s.let:
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
	s.served++
	return &http.Response{
		StatusCode: http.StatusOK, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewBufferString(`{"apiVersion":"v1","kind":"Node"}`)),
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

	It("lets everything through while open, and only reads once closed", bubble(func() {
		gate, api := new(Gate), &server{let: make(chan struct{})}
		close(api.let)
		client := behind(gate, api)
		Expect(create(client)).To(Succeed())
		gate.Close()
		Expect(create(client)).To(MatchError(ErrClosed))
		_, err := client.CoreV1().Nodes().Get(ctx, "a", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(api.served).To(Equal(2))
	}))

	It("gives writes up that nobody answers", bubble(func() {
		gate, api := new(Gate), &server{let: make(chan struct{})}
		client := behind(gate, api)
		written := make(chan error, 1)
		go func() { written <- create(client) }()
		synctest.Wait()
		from := time.Now()
		gate.Close()
		Expect(time.Since(from)).To(Equal(2 * time.Second))
		Expect(<-written).To(MatchError(context.Canceled))
	}))

	It("closes only when the writes under way have been answered", bubble(func() {
		gate, api := new(Gate), &server{let: make(chan struct{})}
		client := behind(gate, api)
		written := make(chan error, 1)
		go func() { written <- create(client) }()
		synctest.Wait()
		closed := false
		go func() { gate.Close(); closed = true }()
		synctest.Wait()
		Expect(closed).To(BeFalse())
		Expect(create(client)).To(MatchError(ErrClosed))
		close(api.let)
		Expect(<-written).To(Succeed())
		synctest.Wait()
		Expect(closed).To(BeTrue())
	}))
})
