// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	mcmv1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/test/sim"
)

// suite is what properties are checked on.
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

var _ = Describe("Clients of the machine API", func() {
	It("see what was written, what is watched, and why something is refused", func(ctx context.Context) {
		server := sim.New(sim.Options{})
		defer server.Close()
		ours, err := connect.Evenkeel(server.ConfigFor("evenkeel"))
		Expect(err).NotTo(HaveOccurred())
		mcm, err := connect.MCM(server.ConfigFor("machine-controller-manager"))
		Expect(err).NotTo(HaveOccurred())
		machines := mcm.MachineV1alpha1().Machines("default")
		seen, err := machines.Watch(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		defer seen.Stop()

		_, err = ours.MachineV1alpha1().Machines("default").Create(ctx, &mcmv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		var event watch.Event
		Eventually(seen.ResultChan()).Should(Receive(&event))
		Expect(event.Type).To(Equal(watch.Added))
		Expect(event.Object).To(BeAssignableToTypeOf(&mcmv1alpha1.Machine{}))
		Expect(event.Object.(*mcmv1alpha1.Machine).Name).To(Equal("a"))

		list, err := machines.List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(list.Items).To(HaveLen(1))
		_, err = machines.Get(ctx, "b", metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		_, err = ours.MachineV1alpha1().MachineDeployments("default").Get(ctx, "b", metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})
})
