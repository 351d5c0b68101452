// SPDX-License-Identifier: Apache-2.0

package process

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gardener/gardener/pkg/utils/secrets"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func TestProcess(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Process")
}

var _ = Describe("The certificate of the webhook server", func() {
	var folder string
	BeforeEach(func() { folder = GinkgoT().TempDir() })

	write := func(name string, data []byte) {
		GinkgoHelper()
		Expect(os.WriteFile(filepath.Join(folder, name), data, 0o600)).To(Succeed())
	}
	generate := func(name string) *secrets.Certificate {
		GinkgoHelper()
		validity := time.Hour
		made, err := (&secrets.CertificateSecretConfig{Name: name, CommonName: name, CertType: secrets.ServerCert, Validity: &validity}).GenerateCertificate()
		Expect(err).NotTo(HaveOccurred())
		return made
	}
	served := func() func() (string, error) {
		o := ManagerOptions("test", "")
		o.WebhookCertDir, o.LogLevel, o.LogFormat = folder, "info", "json"
		Expect(o.Complete()).To(Succeed())
		settings := ManagerSettings(o.Completed()).WebhookServer.(*webhook.DefaultServer).Options
		Expect(settings.CertDir).To(Equal(folder))
		Expect(settings.Host).To(Equal(loopback))
		Expect(settings.Port).To(Equal(10250))
		c := &tls.Config{}
		for _, set := range settings.TLSOpts {
			set(c)
		}
		return func() (string, error) {
			pair, err := c.GetCertificate(&tls.ClientHelloInfo{})
			if err != nil {
				return "", err
			}
			leaf, err := x509.ParseCertificate(pair.Certificate[0])
			Expect(err).NotTo(HaveOccurred())
			return leaf.Subject.CommonName, nil
		}
	}

	It("is the last that was complete, also while its files are written", func() {
		get := served()
		_, err := get()
		Expect(err).To(MatchError(ContainSubstring("read certificate")), "there is none yet")
		first, second := generate("first"), generate("second")
		write("tls.key", nil)
		write("tls.crt", first.CertificatePEM)
		_, err = get()
		Expect(err).To(HaveOccurred())
		write("tls.key", first.PrivateKeyPEM)
		Expect(get()).To(Equal("first"))
		write("tls.key", nil)
		Expect(get()).To(Equal("first"))
		write("tls.key", second.PrivateKeyPEM)
		Expect(get()).To(Equal("first"), "the key does not belong to the certificate")
		write("tls.crt", second.CertificatePEM)
		Expect(get()).To(Equal("second"))
	})
})
