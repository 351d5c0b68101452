// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener/gardener/pkg/utils/secrets"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

// patienceOfWrites is what one write of gardenlet may take at most: the timeout of the webhook, and some time for a busy machine.
const patienceOfWrites = 10 * time.Second

// outage is a way in which the webhook does not answer. It returns how it ends.
type outage func(ctx context.Context, extension *localcluster.Process) (over func())

func down(ctx context.Context, extension *localcluster.Process) func() {
	GinkgoHelper()
	Expect(extension.Stop()).To(Succeed())
	return func() {
		Expect(extension.Start()).To(Succeed())
		awaitReady(ctx, extensionProgram)
	}
}

// slow takes the connection and never answers.
func slow(ctx context.Context, extension *localcluster.Process) func() {
	GinkgoHelper()
	Expect(extension.Pause()).To(Succeed())
	return func() {
		Expect(extension.Kill()).To(Succeed())
		Expect(extension.Start()).To(Succeed())
		awaitReady(ctx, extensionProgram)
	}
}

// expired has a server with a certificate that is too old in the place of the webhook.
func expired(ctx context.Context, extension *localcluster.Process) func() {
	GinkgoHelper()
	comeBack := down(ctx, extension)
	server := newImpostor(ctx, -time.Second)
	return func() {
		server.Close()
		Expect(server.connections.Load()).NotTo(BeZero(), "the API server has tried")
		Expect(server.requests.Load()).To(BeZero(), "the API server has not accepted the certificate")
		comeBack()
	}
}

// impostor listens where the webhook does. It counts, and answers with an error.
type impostor struct {
	*httptest.Server
	connections, requests atomic.Int32
}

// newImpostor has a certificate of the authority that the API server was told to trust.
func newImpostor(ctx context.Context, validity time.Duration) *impostor {
	GinkgoHelper()
	certificate := must((&secrets.CertificateSecretConfig{
		Name: "impostor", CommonName: "impostor", CertType: secrets.ServerCert, SigningCA: authority(ctx),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, Validity: ptr.To(validity),
	}).GenerateCertificate())
	pair := must(tls.X509KeyPair(certificate.CertificatePEM, certificate.PrivateKeyPEM))
	i := &impostor{}
	i.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.requests.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	Expect(i.Listener.Close()).To(Succeed())
	i.Listener = must(net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", must(seedCluster.Port(extensionProgram)))))
	i.Config.ErrorLog = log.New(io.Discard, "", 0)
	i.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			i.connections.Add(1)
		}
	}
	i.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	i.StartTLS()
	return i
}

// authority is the newest of the webhook's certificates, which the extension keeps in its namespace.
func authority(ctx context.Context) *secrets.Certificate {
	GinkgoHelper()
	var list corev1.SecretList
	Expect(seed.List(ctx, &list, client.InNamespace(extensionNamespace))).To(Succeed())
	authorities := slices.DeleteFunc(list.Items, func(s corev1.Secret) bool { return s.Data[secrets.DataKeyPrivateKeyCA] == nil })
	Expect(authorities).NotTo(BeEmpty())
	newest := slices.MaxFunc(authorities, func(a, b corev1.Secret) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return must(secrets.LoadCertificate("ca", newest.Data[secrets.DataKeyPrivateKeyCA], newest.Data[secrets.DataKeyCertificateCA]))
}

// quickly fails where a write takes longer than gardenlet can wait.
func quickly(write func()) {
	GinkgoHelper()
	begin := time.Now()
	write()
	Expect(time.Since(begin)).To(BeNumerically("<", patienceOfWrites))
}
