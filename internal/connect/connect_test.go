// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/test/sim"
)

// suite is what bubbles of virtual time are part of.
var suite *testing.T

func TestConnect(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "connect")
}

var _ = Describe("A client of Kubernetes' own kinds", func() {
	It("speaks protobuf, and leaves the configuration as it is", func() {
		var accepted, sent string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			accepted, sent = r.Header.Get("Accept"), r.Header.Get("Content-Type")
			w.WriteHeader(http.StatusTeapot)
		}))
		defer server.Close()
		config := &rest.Config{Host: server.URL}
		client, err := connect.Core(config)
		Expect(err).NotTo(HaveOccurred())
		_, err = client.CoreV1().Nodes().Create(context.Background(), &corev1.Node{}, metav1.CreateOptions{})
		Expect(err).To(HaveOccurred())
		Expect(accepted).To(HavePrefix("application/vnd.kubernetes.protobuf,application/json"))
		Expect(sent).To(Equal("application/vnd.kubernetes.protobuf"))
		Expect(config).To(Equal(&rest.Config{Host: server.URL}))
	})

	It("reads what it wrote", func() {
		server := sim.New(sim.Options{})
		defer server.Close()
		client, err := connect.Core(server.ConfigFor("test"))
		Expect(err).NotTo(HaveOccurred())
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{ProviderID: "b"}}
		_, err = client.CoreV1().Nodes().Create(context.Background(), node, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		read, err := client.CoreV1().Nodes().Get(context.Background(), "a", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(read.Spec.ProviderID).To(Equal("b"))
	})
})
