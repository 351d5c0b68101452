// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"io"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/fixture"
)

// Codes are the answers of an API server that has not looked at the object.
var Codes = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests}

// Answers registers the specs about such answers. The function returns the configuration of a
// client that gets nothing else.
func Answers(unlucky func(code int) *rest.Config) {
	for _, code := range Codes {
		Describe(http.StatusText(code), func() { answers(func() *rest.Config { return unlucky(code) }, code) })
	}
}

func answers(unlucky func() *rest.Config, code int) {
	It("looks as it does to those who read the wire", func() {
		config := unlucky()
		client, err := rest.HTTPClientFor(config)
		Expect(err).NotTo(HaveOccurred())
		header, body := http.Header{}, ""
		Eventually(func(g Gomega) { // a rule of a real API server applies a moment later, and proxies omit the delay
			response, err := client.Get(config.Host + "/api/v1/namespaces/" + fixture.Namespace + "/configmaps")
			g.Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.StatusCode).To(Equal(code))
			header, body = response.Header, string(text)
			g.Expect(code == http.StatusTooManyRequests && header.Get("Retry-After") == "").To(BeFalse())
		}, patience, 50*time.Millisecond).Should(Succeed())
		if code == http.StatusTooManyRequests {
			Expect(header.Get("Retry-After")).To(MatchRegexp("^[1-9][0-9]?$")) // a real one doubles it for a level that drops more than three in a second
			Expect(header.Get("Content-Type")).To(Equal("text/plain; charset=utf-8"))
			Expect(header.Get("X-Kubernetes-Pf-Flowschema-Uid")).NotTo(BeEmpty())
			Expect(header.Get("X-Kubernetes-Pf-Prioritylevel-Uid")).NotTo(BeEmpty())
			Expect(body).To(Equal("Too many requests, please try again later.\n"))
			return
		}
		Expect(header.Get("Retry-After")).To(BeEmpty())
		Expect(header.Get("Content-Type")).To(Equal("application/json"))
		Expect(body).To(ContainSubstring(`"kind":"Status"`))
	})

	It("is understood by clients, and nothing was done", func() {
		c := connect(unlucky())
		is := map[int]func(error) bool{
			http.StatusUnauthorized: apierrors.IsUnauthorized, http.StatusForbidden: apierrors.IsForbidden, http.StatusTooManyRequests: apierrors.IsTooManyRequests,
		}[code]
		write := func() error {
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"}}
			return c.core.CoreV1().RESTClient().Post().MaxRetries(0).Namespace(fixture.Namespace).Resource("configmaps").Body(m).Do(ctx).Error()
		}
		Eventually(write, patience, 50*time.Millisecond).Should(Satisfy(is))
		_, err := c.core.CoreV1().RESTClient().Get().MaxRetries(0).Namespace(fixture.Namespace).Resource("configmaps").DoRaw(ctx)
		Expect(err).To(Satisfy(is))
	})
}
