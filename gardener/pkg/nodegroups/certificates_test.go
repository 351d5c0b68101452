// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"context"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/secrets"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup"
)

func TestNodeGroups(t *testing.T) {
	RegisterFailHandler(Fail)
	// Short keys are made in no time.
	secrets.GenerateKey = func(random io.Reader, _ int) (*rsa.PrivateKey, error) { return rsa.GenerateKey(random, 1024) }
	RunSpecs(t, "Node groups of a Shoot")
}

const namespace = "shoot--project--shop"

var (
	none      = Rotation{}
	prepares  = Rotation{Begun: "2026-01-01T00:00:00Z", Prepares: true}
	completes = Rotation{Begun: "2026-01-01T00:00:00Z"}
)

func next(c Certificates, r Rotation, now time.Time) Certificates {
	GinkgoHelper()
	made, err := c.Next(namespace, r, now)
	Expect(err).NotTo(HaveOccurred())
	return made
}

// calls is an error where a side does not trust the other. The server reads its files as that of the manager does.
func calls(client, server Certificates) error {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	file := func(key string) string {
		path := filepath.Join(folder, key)
		Expect(os.WriteFile(path, server.Server[key], 0o600)).To(Succeed())
		return path
	}
	secure, err := nodegroup.TLS{CertFile: file(CertificateKey), KeyFile: file(PrivateKey), ClientCAFile: file(AuthoritiesKey)}.Credentials()
	Expect(err).NotTo(HaveOccurred())
	pair, err := tls.X509KeyPair(client.Client[CertificateKey], client.Client[PrivateKey])
	Expect(err).NotTo(HaveOccurred())
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(client.Client[AuthoritiesKey])
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	accepted := make(chan error, 1)
	go func() {
		_, _, err := secure.ServerHandshake(b)
		accepted <- err
		_ = b.Close()
	}()
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, ServerName: host(namespace), RootCAs: trusted, Certificates: []tls.Certificate{pair}}
	err = tls.Client(a, config).Handshake()
	_ = a.Close()
	return errors.Join(err, <-accepted)
}

var _ = Describe("The certificates of a Shoot", func() {
	now := time.Now()
	first := func() Certificates {
		GinkgoHelper()
		return next(Certificates{}, none, now)
	}

	It("are made once, and have the caller trust the server and the server the caller", func() {
		made := first()
		Expect(calls(made, made)).To(Succeed())
		Expect(next(made, none, now.Add(200*24*time.Hour))).To(Equal(made))
		for _, side := range []map[string][]byte{made.Server, made.Client} {
			Expect(side).NotTo(HaveKey(authorityPrivateKey), "law 3")
		}
	})

	It("are not trusted in another Shoot, nor in the place of the other side", func() {
		made, other := first(), first()
		Expect(calls(made, other)).NotTo(Succeed())
		swapped := Certificates{Server: made.Server, Client: made.Server}
		Expect(calls(swapped, made)).NotTo(Succeed(), "the certificate of the server is none of a caller")
	})

	DescribeTable("are made again where they are", func(spoil func(Certificates), changed func(before, after Certificates)) {
		before := first()
		spoiled := next(before, none, now)
		spoil(spoiled)
		after := next(spoiled, none, now)
		Expect(calls(after, after)).To(Succeed())
		changed(before, after)
	},
		Entry("no certificate of the server", func(c Certificates) { c.Server[CertificateKey] = []byte("x") }, func(before, after Certificates) {
			Expect(after.Authority).To(Equal(before.Authority))
			Expect(after.Client).To(Equal(before.Client))
		}),
		Entry("for another address than that of the server", func(c Certificates) {
			other, err := Certificates{Authority: c.Authority}.Next("another", none, now)
			Expect(err).NotTo(HaveOccurred())
			maps.Copy(c.Server, other.Server)
		}, func(before, after Certificates) {
			Expect(after.Authority).To(Equal(before.Authority))
			Expect(after.Client).To(Equal(before.Client))
		}),
		Entry("without the key of the caller", func(c Certificates) { delete(c.Client, PrivateKey) }, func(before, after Certificates) {
			Expect(after.Server).To(Equal(before.Server))
			Expect(after.Client[CertificateKey]).NotTo(Equal(before.Client[CertificateKey]))
		}),
		Entry("not those of the authority", func(c Certificates) { delete(c.Authority, AuthoritiesKey) }, func(before, after Certificates) {
			Expect(calls(before, after)).NotTo(Succeed())
		}),
		Entry("without the key of the authority", func(c Certificates) { delete(c.Authority, authorityPrivateKey) }, func(before, after Certificates) {
			Expect(next(after, none, now.Add(300*24*time.Hour)).Authority).To(Equal(after.Authority), "which renews them")
		}),
		Entry("with the key of another caller", func(c Certificates) { c.Client[PrivateKey] = c.Server[PrivateKey] }, func(before, after Certificates) {
			Expect(after.Server).To(Equal(before.Server))
		}),
		Entry("with another address", func(c Certificates) { c.Client[CloudConfigKey] = []byte("x") }, func(before, after Certificates) { Expect(after).To(Equal(before)) }),
	)

	It("are renewed before they end, by the same authority", func() {
		before := first()
		after := next(before, none, now.Add(300*24*time.Hour))
		Expect(after.Authority).To(Equal(before.Authority))
		Expect(after.Server[CertificateKey]).NotTo(Equal(before.Server[CertificateKey]))
		Expect(after.Client[CertificateKey]).NotTo(Equal(before.Client[CertificateKey]))
		for _, pair := range [][2]Certificates{{before, after}, {after, before}} {
			Expect(calls(pair[0], pair[1])).To(Succeed())
		}
		Expect(next(before, none, now.Add(9*365*24*time.Hour)).Authority).NotTo(Equal(before.Authority))
	})

	It("are trusted by a side that was told later, or earlier, in each step of a rotation", func() {
		before := first()
		prepared := next(before, prepares, now)
		Expect(next(prepared, prepares, now)).To(Equal(prepared))
		Expect(prepared.Authority[AuthoritiesKey]).NotTo(Equal(before.Authority[AuthoritiesKey]))
		completed := next(prepared, completes, now)
		Expect(next(completed, completes, now)).To(Equal(completed))
		Expect(completed.Authority).NotTo(HaveKey(oldPrivate))
		// The server is written first: gardenlet waits for it.
		for _, pair := range [][2]Certificates{{before, prepared}, {prepared, prepared}, {prepared, completed}, {completed, completed}} {
			Expect(calls(pair[0], pair[1])).To(Succeed())
		}
		Expect(calls(before, completed)).NotTo(Succeed(), "the old authority is gone")
		Expect(next(completed, Rotation{Begun: "2027-01-01T00:00:00Z"}, now).Authority[AuthoritiesKey]).NotTo(Equal(completed.Authority[AuthoritiesKey]), "a rotation that was missed")
	})

	DescribeTable("follow the rotation of the Shoot", func(phase gardencorev1beta1.CredentialsRotationPhase, prepares bool) {
		shoot := &gardencorev1beta1.Shoot{}
		Expect(RotationOf(shoot)).To(Equal(none))
		shoot.Status.Credentials = &gardencorev1beta1.ShootCredentials{Rotation: &gardencorev1beta1.ShootCredentialsRotation{
			CertificateAuthorities: &gardencorev1beta1.CARotation{Phase: phase, LastInitiationTime: &metav1.Time{Time: time.Unix(0, 0)}},
		}}
		Expect(RotationOf(shoot)).To(Equal(Rotation{Begun: "1970-01-01T00:00:00Z", Prepares: prepares}))
	},
		Entry(nil, gardencorev1beta1.RotationPreparing, true),
		Entry(nil, gardencorev1beta1.RotationPreparingWithoutWorkersRollout, true),
		Entry(nil, gardencorev1beta1.RotationWaitingForWorkersRollout, true),
		Entry(nil, gardencorev1beta1.RotationPrepared, true),
		Entry(nil, gardencorev1beta1.RotationCompleting, false),
		Entry(nil, gardencorev1beta1.RotationCompleted, false),
	)
})

var _ = Describe("The objects of a Shoot", func() {
	now := time.Now()

	// all are the names of those that exist.
	all := func(ctx context.Context, c client.Client) (names []string) {
		GinkgoHelper()
		var secrets corev1.SecretList
		var services corev1.ServiceList
		Expect(c.List(ctx, &secrets)).To(Succeed())
		Expect(c.List(ctx, &services)).To(Succeed())
		for _, s := range secrets.Items {
			names = append(names, s.Name)
		}
		for _, s := range services.Items {
			names = append(names, s.Name)
		}
		return names
	}

	It("are written once, restored where a user changed them, and deleted", func(ctx context.Context) {
		writes := 0
		count := interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				writes++
				return c.Create(ctx, o, options...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
				writes++
				return c.Patch(ctx, o, patch, options...)
			},
		}
		c := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithInterceptorFuncs(count).Build()
		Expect(Ensure(ctx, c, namespace, none, now)).To(Succeed())
		Expect(all(ctx, c)).To(ConsistOf(ServiceName, AuthorityName, ServerName, ClientName))
		Expect(writes).To(Equal(4))
		Expect(Ensure(ctx, c, namespace, none, now)).To(Succeed())
		Expect(writes).To(Equal(4), "nothing differs")

		var s corev1.Secret
		Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ServerName}, &s)).To(Succeed())
		before := AuthorityChecksum(&s)
		s.Data = nil
		Expect(c.Update(ctx, &s)).To(Succeed())
		service := service(namespace)
		Expect(c.Patch(ctx, service, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"ports":[{"port":1}],"selector":{"a":"b"}}}`)))).To(Succeed())
		Expect(Ensure(ctx, c, namespace, none, now)).To(Succeed())
		Expect(c.Get(ctx, client.ObjectKeyFromObject(&s), &s)).To(Succeed())
		Expect(AuthorityChecksum(&s)).To(Equal(before), "the authority is the same")
		Expect(c.Get(ctx, client.ObjectKeyFromObject(service), service)).To(Succeed())
		Expect(service.Spec.Selector).To(Equal(map[string]string{"app": "kubernetes", "role": "machine-controller-manager"}))
		Expect(service.Spec.Ports).To(ConsistOf(HaveField("Port", Port)))

		Expect(Remove(ctx, c, namespace)).To(Succeed())
		Expect(all(ctx, c)).To(BeEmpty())
		Expect(Remove(ctx, c, namespace)).To(Succeed())
	})

	It("have cluster-autoscaler start anew with each of its files, and the manager with another authority only", func() {
		first, err := Certificates{}.Next(namespace, none, now)
		Expect(err).NotTo(HaveOccurred())
		client, server := secret(namespace, ClientName, first.Client), secret(namespace, ServerName, first.Server)
		files, authority := FilesChecksum(client), AuthorityChecksum(server)
		Expect([]string{files, authority}).To(Equal([]string{FilesChecksum(client.DeepCopy()), AuthorityChecksum(server.DeepCopy())}))
		for key := range client.Data {
			other := client.DeepCopy()
			other.Data[key] = []byte("x")
			Expect(FilesChecksum(other)).NotTo(Equal(files), key)
		}
		server.Data[CertificateKey] = []byte("x")
		Expect(AuthorityChecksum(server)).To(Equal(authority))
		server.Data[AuthoritiesKey] = []byte("x")
		Expect(AuthorityChecksum(server)).NotTo(Equal(authority))
	})

	It("name the address in the form that cluster-autoscaler reads", func() {
		Expect(string(cloudConfig(namespace))).To(Equal(`address: extension-evenkeel-nodegroups.shoot--project--shop.svc:8086
cert: /etc/cluster-autoscaler/evenkeel/tls.crt
key: /etc/cluster-autoscaler/evenkeel/tls.key
cacert: /etc/cluster-autoscaler/evenkeel/ca.crt
grpc_timeout: 20s
`))
	})
})
