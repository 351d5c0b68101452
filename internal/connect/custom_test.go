// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/evenkeel/evenkeel/internal/connect"
)

// clientOf makes a client of the machine API, and returns how it lists machines.
type clientOf func(*rest.Config) (list func(context.Context) error, err error)

func evenkeelOf(config *rest.Config) (func(context.Context) error, error) {
	client, err := connect.Evenkeel(config)
	return func(ctx context.Context) error {
		_, err := client.MachineV1alpha1().Machines("default").List(ctx, metav1.ListOptions{})
		return err
	}, err
}

func mcmOf(config *rest.Config) (func(context.Context) error, error) {
	client, err := connect.MCM(config)
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
