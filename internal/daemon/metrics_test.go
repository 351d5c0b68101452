// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/flowcontrol"
	clocktesting "k8s.io/utils/clock/testing"
)

// judge is an API server that knows the tokens "reader" and "stranger", and lets the first have metrics.
type judge struct {
	asked  int
	broken error
	// limit is the client's; a request beyond it ends as one that has waited for too long.
	limit flowcontrol.PassiveRateLimiter
	saw   authorizationv1.SubjectAccessReviewSpec
}

func (j *judge) client() *fake.Clientset {
	client := fake.NewClientset()
	defer client.PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		limited := j.limit != nil && !j.limit.TryAccept()
		return limited, nil, context.DeadlineExceeded
	})
	client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		j.asked++
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		user := review.Spec.Token
		review.Status = authenticationv1.TokenReviewStatus{
			Authenticated: strings.HasPrefix(user, "reader") || user == "stranger",
			User:          authenticationv1.UserInfo{Username: user, UID: "1", Groups: []string{"people"}, Extra: map[string]authenticationv1.ExtraValue{"pod": {"p"}}},
		}
		return true, review, j.broken
	})
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		j.saw = review.Spec
		review.Status.Allowed = strings.HasPrefix(review.Spec.User, "reader")
		return true, review, nil
	})
	return client
}

func somebody() prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	machines := prometheus.NewGauge(prometheus.GaugeOpts{Name: "machines"})
	registry.MustRegister(machines)
	machines.Set(7)
	return registry
}

var _ = Describe("Secure metrics", func() {
	var (
		j     *judge
		clock *clocktesting.FakePassiveClock
		h     http.Handler
	)
	BeforeEach(func() {
		j, clock = &judge{}, clocktesting.NewFakePassiveClock(time.Now())
		j.limit = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(ReviewQPS, ReviewBurst, clock)
		h = SecureMetrics{Gatherer: somebody(), Reviews: j.client()}.handler(clock)
	})
	getFrom := func(address, authorization string) (int, string) {
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		request.RemoteAddr = address
		request.Header.Set("Authorization", authorization)
		response := httptest.NewRecorder()
		h.ServeHTTP(response, request)
		return response.Code, response.Body.String()
	}
	get := func(authorization string) (int, string) { return getFrom("10.0.0.1:40000", authorization) }

	It("are for who may get them", func() {
		code, body := get("Bearer reader")
		Expect(code).To(Equal(http.StatusOK))
		Expect(body).To(ContainSubstring("machines 7"))
		Expect(j.saw).To(Equal(authorizationv1.SubjectAccessReviewSpec{
			User: "reader", UID: "1", Groups: []string{"people"}, Extra: map[string]authorizationv1.ExtraValue{"pod": {"p"}},
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
		}))
	})

	DescribeTable("are not for others",
		func(authorization string, want, asked int) {
			code, body := get(authorization)
			Expect(code).To(Equal(want))
			Expect(body).NotTo(ContainSubstring("machines"))
			Expect(j.asked).To(Equal(asked))
		},
		Entry("who may not", "Bearer stranger", http.StatusForbidden, 1),
		Entry("whom nobody knows", "Bearer liar", http.StatusUnauthorized, 1),
		Entry("who shows nothing", "", http.StatusUnauthorized, 0),
		Entry("who shows an empty token", "Bearer ", http.StatusUnauthorized, 0),
		Entry("who shows a password", "Basic cmVhZGVyOg==", http.StatusUnauthorized, 0),
	)

	It("ask once a minute for a reader, and once in ten seconds for another", func() {
		for range 3 {
			get("Bearer reader")
			get("Bearer stranger")
		}
		Expect(j.asked).To(Equal(2))
		clock.SetTime(clock.Now().Add(11 * time.Second))
		get("Bearer reader")
		get("Bearer stranger")
		Expect(j.asked).To(Equal(3))
		clock.SetTime(clock.Now().Add(50 * time.Second))
		get("Bearer reader")
		Expect(j.asked).To(Equal(4))
	})

	It("are refused to all while the API server does not answer, and served at once when it does", func() {
		j.broken = errors.New("down")
		code, _ := get("Bearer reader")
		Expect(code).To(Equal(http.StatusServiceUnavailable))
		j.broken = nil
		code, _ = get("Bearer reader")
		Expect(code).To(Equal(http.StatusOK))
	})

	// flood asks with tokens that were never issued, each once, for a second of the clock.
	flood := func(from string) {
		for i := range 200 {
			clock.SetTime(clock.Now().Add(5 * time.Millisecond))
			getFrom(from, fmt.Sprintf("Bearer liar-%d-%d", clock.Now().UnixNano(), i))
		}
	}

	It("stay there for a reader, whatever tokens others show", func() {
		for i := range 100 {
			code, _ := get("Bearer reader")
			Expect(code).To(Equal(http.StatusOK), "after %d s", 2*i)
			flood("10.0.0.9:40000")
			flood("10.0.0.1:50000") // the reader's own address
		}
	})

	It("stay there for a reader whose token is renewed while others show theirs", func() {
		for i := range 10 {
			code, _ := get(fmt.Sprintf("Bearer reader %d", i))
			Expect(code).To(Equal(http.StatusOK), "after %d s", i)
			flood("10.0.0.9:40000")
		}
	})

	It("make the API server review a few tokens a second at most, and say so to who comes with more", func() {
		get("Bearer reader")
		before := j.asked
		for range 60 {
			flood("10.0.0.9:40000")
			flood("10.0.0.1:50000") // the reader's own address
		}
		Expect(j.asked-before).To(BeNumerically("<=", 2*(2*60*newTokensQPS+newTokensBurst)), "two classes of callers, two minutes")
		code := 0
		for i := range newTokensBurst + 1 {
			code, _ = getFrom("10.0.0.9:40000", fmt.Sprintf("Bearer one more %d", i))
		}
		Expect(code).To(Equal(http.StatusTooManyRequests))
	})

	It("remember no more callers than a few", func() {
		a := newAdmission(j.client(), clock)
		for i := range 3 * maxCallers {
			a.statusFor(context.Background(), fmt.Sprint("liar-", i), fmt.Sprint("10.0.0.", i))
			a.statusFor(context.Background(), fmt.Sprint("reader ", i), fmt.Sprint("10.0.1.", i))
			clock.SetTime(clock.Now().Add(3 * time.Second))
			for _, size := range []int{len(a.admitted), len(a.refused), len(a.addresses)} {
				Expect(size).To(BeNumerically("<=", maxCallers))
			}
		}
		Expect(a.admitted).To(HaveLen(maxCallers))
		for _, is := range a.admitted {
			Expect(is.status).To(Equal(http.StatusOK))
		}
		before := j.asked
		for i := range 10 {
			Expect(a.statusFor(context.Background(), fmt.Sprint("reader ", 3*maxCallers-1-i), "")).To(Equal(http.StatusOK))
		}
		Expect(j.asked).To(Equal(before), "the newest are kept")
	})
})

var _ = Describe("ServeMetrics", func() {
	// served returns whose certificate a reader of metrics is shown, again for each call.
	served := func(m SecureMetrics) func() (string, error) {
		GinkgoHelper()
		m.Gatherer, m.Reviews = somebody(), (&judge{}).client()
		free, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		address := free.Addr().String()
		Expect(free.Close()).To(Succeed())
		ctx, stop := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() { result <- ServeMetrics(ctx, address, m) }()
		DeferCleanup(func() {
			stop()
			Expect(<-result).To(Succeed())
		})
		return func() (string, error) {
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			request, _ := http.NewRequest(http.MethodGet, "https://"+address+"/metrics", nil)
			request.Header.Set("Authorization", "Bearer reader")
			response, err := client.Do(request)
			if err != nil {
				return "", err
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusOK {
				return "", errors.New(response.Status)
			}
			_, err = io.Copy(io.Discard, response.Body)
			return response.TLS.PeerCertificates[0].Subject.CommonName, err
		}
	}

	It("signs a certificate for itself where it is given none", func() {
		host, err := os.Hostname()
		Expect(err).NotTo(HaveOccurred())
		Eventually(served(SecureMetrics{})).WithTimeout(20 * time.Second).Should(HavePrefix(host))
	})

	It("shows the certificate that is there now", func() {
		m := SecureMetrics{CertFile: filepath.Join(GinkgoT().TempDir(), "crt"), KeyFile: filepath.Join(GinkgoT().TempDir(), "key")}
		write := func(host string) {
			certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(os.WriteFile(m.CertFile, certPEM, 0o600)).To(Succeed())
			Expect(os.WriteFile(m.KeyFile, keyPEM, 0o600)).To(Succeed())
		}
		write("first")
		get := served(m)
		Eventually(get).Should(HavePrefix("first"))
		write("second")
		Expect(get()).To(HavePrefix("second"))
	})

	It("says so when there is no certificate", func() {
		Expect(ServeMetrics(context.Background(), "127.0.0.1:0", SecureMetrics{CertFile: "nowhere", KeyFile: "nowhere"})).
			To(MatchError(os.ErrNotExist))
	})
})
