// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	mcmv1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/evenkeel/evenkeel/internal/connect/machines"
	"github.com/evenkeel/evenkeel/test/sim"
)

func TestMachines(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Clients of the machine API")
}

// clientOf makes a client of the machine API, and returns how it lists machines.
type clientOf func(*rest.Config) (list func(context.Context) error, err error)

func evenkeelOf(config *rest.Config) (func(context.Context) error, error) {
	client, err := machines.Evenkeel(config)
	return func(ctx context.Context) error {
		_, err := client.MachineV1alpha1().Machines("default").List(ctx, metav1.ListOptions{})
		return err
	}, err
}

func mcmOf(config *rest.Config) (func(context.Context) error, error) {
	client, err := machines.MCM(config)
	return func(ctx context.Context) error {
		_, err := client.MachineV1alpha1().Machines("default").List(ctx, metav1.ListOptions{})
		return err
	}, err
}

// logins is how often the access "flaky" has been used to make a client, and failing is which of these fails.
var (
	errLogin        = errors.New("no login")
	logins, failing atomic.Int32
)

func init() {
	err := rest.RegisterAuthProviderPlugin("flaky", func(string, map[string]string, rest.AuthProviderConfigPersister) (rest.AuthProvider, error) {
		if logins.Add(1) == failing.Load() {
			return nil, errLogin
		}
		return anonymous{}, nil
	})
	if err != nil {
		panic(err)
	}
}

// anonymous adds nothing to requests.
type anonymous struct{}

func (anonymous) WrapTransport(next http.RoundTripper) http.RoundTripper { return next }
func (anonymous) Login() error                                           { return nil }

var _ = Describe("A client of the machine API", func() {
	DescribeTable("says who it is as the configuration does, which stays as it is", func(ctx context.Context, of clientOf, agent, expected string) {
		var agents []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			agents = append(agents, r.UserAgent())
			w.WriteHeader(http.StatusTeapot)
		}))
		defer server.Close()
		config := &rest.Config{Host: server.URL, UserAgent: agent}
		list, err := of(config)
		Expect(err).NotTo(HaveOccurred())
		Expect(list(ctx)).NotTo(Succeed())
		Expect(agents).To(Equal([]string{expected}))
		Expect(config).To(Equal(&rest.Config{Host: server.URL, UserAgent: agent}))
	},
		Entry("ours, with a name", clientOf(evenkeelOf), "a name", "a name"),
		Entry("ours, without one", clientOf(evenkeelOf), "", rest.DefaultKubernetesUserAgent()),
		Entry("that of machine-controller-manager, with a name", clientOf(mcmOf), "a name", "a name"),
		Entry("that of machine-controller-manager, without one", clientOf(mcmOf), "", rest.DefaultKubernetesUserAgent()),
	)

	DescribeTable("is not made where the access fails", func(of clientOf, which int) {
		logins.Store(0)
		failing.Store(int32(which))
		_, err := of(&rest.Config{AuthProvider: &api.AuthProviderConfig{Name: "flaky"}})
		Expect(err).To(MatchError(errLogin))
	},
		Entry("ours, for all kinds", clientOf(evenkeelOf), 1),
		Entry("ours, for the machine API", clientOf(evenkeelOf), 2),
		Entry("that of machine-controller-manager, for all kinds", clientOf(mcmOf), 1),
		Entry("that of machine-controller-manager, for the machine API", clientOf(mcmOf), 2),
	)
})

var _ = Describe("Clients of the machine API", func() {
	It("see what was written, what is watched, and why something is refused", func(ctx context.Context) {
		server := sim.New(sim.Options{})
		defer server.Close()
		ours, err := machines.Evenkeel(server.ConfigFor("evenkeel"))
		Expect(err).NotTo(HaveOccurred())
		mcm, err := machines.MCM(server.ConfigFor("machine-controller-manager"))
		Expect(err).NotTo(HaveOccurred())
		seenBy := mcm.MachineV1alpha1().Machines("default")
		seen, err := seenBy.Watch(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		defer seen.Stop()

		_, err = ours.MachineV1alpha1().Machines("default").Create(ctx, &mcmv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		var event watch.Event
		Eventually(seen.ResultChan()).Should(Receive(&event))
		Expect(event.Type).To(Equal(watch.Added))
		Expect(event.Object).To(BeAssignableToTypeOf(&mcmv1alpha1.Machine{}))
		Expect(event.Object.(*mcmv1alpha1.Machine).Name).To(Equal("a"))

		list, err := seenBy.List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(list.Items).To(HaveLen(1))
		_, err = seenBy.Get(ctx, "b", metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		_, err = ours.MachineV1alpha1().MachineDeployments("default").Get(ctx, "b", metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})
})
