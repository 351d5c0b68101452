// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// endless repeats a line.
type endless string

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

// answering is a transport with one answer.
type answering struct{ *http.Response }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a.Response, nil }

// readOf is how many MiB of an endless answer are read, at most 100.
func readOf(method, target, line string) (int64, error) {
	GinkgoHelper()
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(endless(line))}
	response, err := Bounded(answering{answer}).RoundTrip(httptest.NewRequest(method, target, nil))
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, io.LimitReader(response.Body, 100<<20))
	return n >> 20, err
}

var _ = Describe("What a cluster answers", func() {
	DescribeTable("is read so far and no further",
		func(method, target, line string, mebibytes int) {
			n, err := readOf(method, target, line)
			Expect(err).To(HaveOccurred())
			Expect(n).To(BeEquivalentTo(mebibytes))
		},
		Entry("an object", http.MethodGet, "https://a/apis/apps/v1/namespaces/a/deployments/b", "x", 4),
		Entry("the answer to a write", http.MethodPatch, "https://a/apis/apps/v1/namespaces/a/deployments/b", "x\n", 4),
		Entry("a list", http.MethodGet, "https://a/apis/apps/v1/deployments?limit=500&resourceVersion=0", "x\n", 64),
		Entry("one event of a watch", http.MethodGet, "https://a/apis/apps/v1/deployments?watch=true&resourceVersion=7", "x", 4),
	)

	It("is read for any time where it is many events", func() {
		n, err := readOf(http.MethodGet, "https://a/apis/apps/v1/deployments?watch=true&resourceVersion=7", strings.Repeat("x", 1000)+"\n")
		Expect(err).NotTo(HaveOccurred())
		Expect(n).To(BeEquivalentTo(100))
	})

	It("does not have a write repeated, whose first try may have had an effect", func() {
		for method, kept := range map[string]string{http.MethodPatch: "", http.MethodPost: "", http.MethodDelete: "", http.MethodGet: "1"} {
			answer := &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": []string{"1"}}, Body: http.NoBody}
			response, err := Bounded(answering{answer}).RoundTrip(httptest.NewRequest(method, "https://a/", nil))
			Expect(err).NotTo(HaveOccurred())
			Expect(response.Body.Close()).To(Succeed())
			Expect(response.Header.Get("Retry-After")).To(Equal(kept), method)
		}
	})

	It("does not lead the hub elsewhere", func(ctx context.Context) {
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			defer GinkgoRecover()
			Fail("the hub went there")
		}))
		DeferCleanup(elsewhere.Close)
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		}))
		DeferCleanup(server.Close)
		config, err := Kubeconfig(access("token: a", fmt.Sprintf(", certificate-authority-data: %s", pemOf(server.Certificate()))))
		Expect(err).NotTo(HaveOccurred())
		config.Host = server.URL
		code, err := ask(ctx, Registration{Config: config})
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(Equal(http.StatusFound))
	})

	DescribeTable("is not cached beyond a bound: the cluster is out of use, and says why, until it is read again", func(again func(f *federation)) {
		play(func(f *federation) {
			f.options = Cached(f.options, 50_000)
			f.start()
			f.create(Federated(2, 20))
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..10/1..10"))
			for i := range 200 {
				f.clusters[1].deploy(fmt.Sprint("flood", i))
			}
			f.settle()
			Expect(f.state("shop", "c2")).To(Equal("Unreachable TooManyObjects"))
			Expect(f.bounds("shop")).To(Equal("1..10/1..10"), "its share stays its own")
			Expect(Caches(f.running)).To(ConsistOf("c1"))
			for i := range 200 {
				Expect(f.clusters[1].core.AppsV1().Deployments(ns).Delete(context.Background(), fmt.Sprint("flood", i), metav1.DeleteOptions{})).To(Succeed())
			}
			again(f)
			f.settle()
			Expect(f.state("shop", "c2")).To(Equal("Used"))
		}, "c1", "c2")
	},
		Entry("with another access", func(f *federation) { f.rotate() }),
		Entry("because it was registered anew", func(f *federation) { f.register("c1"); f.register("c1", "c2") }),
	)

	It("does not contain the metrics of autoscalers that others have made", func() {
		play(func(f *federation) {
			f.options = Cached(f.options, 50_000)
			f.start()
			f.create(Federated(1, 10))
			for i := range 20 {
				other := another(fmt.Sprint("other", i))
				other.Name = other.Spec.ScaleTargetRef.Name
				other.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
					Metric: autoscalingv2.MetricIdentifier{Name: strings.Repeat("x", 5000)}, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType},
				}}}
				world.Create(f.clusters[0].core.AutoscalingV2().HorizontalPodAutoscalers(ns), other)
			}
			f.settle()
			Expect(f.state("shop", "c1")).To(Equal("Used"))
		}, "c1")
	})

	It("does not count once it is cached no longer, however often that begins and ends", func() {
		play(func(f *federation) {
			f.options = Cached(f.options, 50_000)
			for i := range 30 {
				f.clusters[0].deploy(fmt.Sprint("other", i))
			}
			f.start()
			for range 10 {
				f.create(Federated(1, 10))
				time.Sleep(time.Minute)
				f.remove("shop") // no object scales Deployments any more
				time.Sleep(time.Minute)
			}
			Expect(Caches(f.running)).To(ConsistOf("c1"))
		}, "c1")
	})

	It("has its version remembered for a few probes only", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(1, 10))
			time.Sleep(24 * time.Hour)
			Expect(Reads(f.running)).To(BeNumerically("<=", 16))
		}, "c1")
	})

	It("is not shown to users of the hub but in a short sentence", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(2, 20))
			f.settle()
			c := f.clusters[0]
			f.quiet(c)
			h := c.hpa("shop")
			h.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{
				Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "Failed\x1b[31m" + strings.Repeat("X", 2000),
				Message: "unable to get https://10.0.0.7:6443/apis?token=abc\x1b[2J\u202e with Bearer s3cr3t and eyJhbGciOiJSUzI1NiIsImtpZCI6IjEyMzQ1Njc4OTAifQ.e30.c2ln" + strings.Repeat(" more", 5000),
			}}
			_, err := c.core.AutoscalingV2().HorizontalPodAutoscalers(ns).UpdateStatus(context.Background(), h, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(5 * time.Second)
			s := f.object("shop").Status.Clusters[0]
			Expect(s.State).To(Equal(v1alpha1.Frozen))
			Expect(len(s.Reason)).To(BeNumerically("<=", 64))
			Expect(s.Message).To(HavePrefix("unable to get (address) with Bearer (hidden) and (hidden) more"))
			Expect(len(s.Message)).To(BeNumerically("<", 310))
			Expect(s.Reason + s.Message).NotTo(MatchRegexp(`[[:cntrl:]\x{202e}]`))
		}, "c1", "c2")
	})
})

var _ = Describe("What users of the hub write", func() {
	It("is not cached but for what is read, and stays as they wrote it", func() {
		play(func(f *federation) {
			f.start()
			o := Federated(2, 20)
			o.Labels, o.Annotations = map[string]string{"team": "a"}, map[string]string{"note": strings.Repeat("x", 200_000)}
			f.create(o)
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..10/1..10"))
			Expect(Objects(f.running)).To(ConsistOf(And(HaveField("Annotations", BeEmpty()), HaveField("Labels", BeEmpty()), HaveField("ManagedFields", BeEmpty()))))
			stored := f.object("shop")
			Expect(stored.Finalizers).NotTo(BeEmpty())
			Expect(stored.Annotations).To(Equal(o.Annotations))
			Expect(stored.Labels).To(Equal(o.Labels))
		}, "c1", "c2")
	})

	It("stops the object where it grows beyond a bound, changes nothing in clusters, and goes on when it is smaller", func() {
		play(func(f *federation) {
			f.start()
			f.create(Federated(2, 20))
			f.settle()
			f.change("shop", func(s *Spec) {
				s.MaxReplicas = 40
				s.Metrics = []runtime.RawExtension{{Raw: fmt.Appendf(nil, `{"type":"Resource","x":%q}`, strings.Repeat("x", 64<<10))}}
			})
			f.settle()
			Expect(f.condition("shop", "Ready")).To(Equal("False TooLarge"))
			Expect(f.bounds("shop")).To(Equal("1..10/1..10"))
			Expect(f.object("shop").Spec.Metrics).To(HaveLen(1), "what the user wrote stays")
			Expect(Objects(f.running)).To(ConsistOf(HaveField("Spec.Metrics", BeEmpty())))
			f.change("shop", func(s *Spec) { s.Metrics = nil })
			f.settle()
			Expect(f.bounds("shop")).To(Equal("1..20/1..20"))
		}, "c1", "c2")
	})
})

var _ = Describe("More clusters than an object can hold", func() {
	It("are not watched by the hub, one by one as room is made", func() {
		play(func(f *federation) {
			f.options.MaxClusters = 2
			f.start()
			f.create(Federated(1, 12))
			f.settle()
			Expect(f.maxima("shop")).To(Equal("6/6/-"))
			Expect(f.state("shop", "c3")).To(Equal("Unreachable TooManyClusters"))
			f.rotate()
			f.settle()
			Expect(f.maxima("shop")).To(Equal("6/6/-"))
			f.change("shop", func(s *Spec) { s.Unreachable = &v1alpha1.Unreachable{Released: []string{"c1"}} })
			f.register("c2", "c3")
			f.settle()
			Expect(f.state("shop", "c3")).To(Equal("Used"))
		}, "c1", "c2", "c3")
	})

	It("are not watched in place of those that were replaced, as long as requests to these do not end", func() {
		play(func(f *federation) {
			f.options.MaxClusters = 2
			f.start()
			f.create(Federated(1, 12))
			f.settle()
			var hangs atomic.Bool
			hangs.Store(true)
			defer hangs.Store(false)
			f.onRequest(func(*http.Request) error {
				for hangs.Load() {
					time.Sleep(time.Second) // beyond its deadline, as a program that gives no credentials
				}
				return nil
			})
			time.Sleep(time.Minute)
			f.rotate()
			time.Sleep(time.Minute)
			Expect(Caches(f.running)).To(BeEmpty())
			Expect(f.state("shop", "c1")).To(Equal("Unreachable TooManyClusters"))
			hangs.Store(false)
			f.settle()
			Expect(f.state("shop", "c1")).To(Equal("Used"))
			Expect(f.maxima("shop")).To(Equal("6/6"))
		}, "c1", "c2")
	})
})

// quiet has a cluster's own autoscaler end.
func (f *federation) quiet(c *cluster) {
	c.set(func(c *cluster) { c.still = true })
}
