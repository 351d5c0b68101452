// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan/plantest"
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

	It("is not cached beyond a bound: the cluster is out of use, and says why, until its access changes", func() {
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
			f.rotate()
			f.settle()
			Expect(f.state("shop", "c2")).To(Equal("Used"))
		}, "c1", "c2")
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

var _ = Describe("Numbers that a cluster makes up", func() {
	extremes := []int32{math.MinInt32, -1, 0, 1, 2, 7, math.MaxInt32 - 1, math.MaxInt32}

	It("break no plan of the object, and add up to numbers that its status can hold", func() {
		random := rand.New(rand.NewPCG(1, 2))
		pick := func() int32 { return extremes[random.IntN(len(extremes))] }
		for range 3000 {
			v := view(Federated(max(1, pick()), math.MaxInt32))
			v.Object.Spec.MinReplicas = ptr.To(min(*v.Object.Spec.MinReplicas, v.Object.Spec.MaxReplicas))
			for i := range 4 {
				h := &autoscalingv2.HorizontalPodAutoscaler{}
				h.Spec.MinReplicas, h.Spec.MaxReplicas = ptr.To(pick()), pick()
				h.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Target: autoscalingv2.MetricTarget{AverageValue: extreme(random)}}}}
				h.Status.CurrentReplicas, h.Status.DesiredReplicas = pick(), pick()
				h.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricStatus{Current: autoscalingv2.MetricValueStatus{AverageValue: extreme(random)}}}}
				h.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScalingLimited, Status: corev1.ConditionTrue, Reason: []string{"TooManyReplicas", "TooFewReplicas"}[random.IntN(2)]}}
				c := none(fmt.Sprint("c", i))
				c.Absent, c.Local = false, LocalOf(h)
				c.Local.Version = "100"
				c.Workload = Workload{Known: true, Exists: true, Counted: true, Ready: int64(pick())}
				v.Clusters = append(v.Clusters, c)
			}
			p := NewPlan(v)
			s := status(v, p)
			for _, n := range []int32{s.CurrentReplicas, s.DesiredReplicas, s.ReadyReplicas, s.MinReplicas, s.MaxReplicas, s.CountedReplicas} {
				Expect(n).To(BeNumerically(">=", 0), "%+v", s)
			}
			for _, o := range p.Orders {
				Expect(o.Min).To(BeNumerically("<=", o.Max))
				Expect(o.Max).To(And(BeNumerically(">=", 0), BeNumerically("<=", math.MaxInt32)))
			}
			Expect(p.Missing).To(BeNumerically(">=", 0))
		}
	})

	It("of one cluster delay no other", func() {
		v := view(Federated(2, 20), has("c1", 1, 10, 10, wants(15)), has("c2", 1, 10, 2))
		v.Clusters[1].Workload.Ready = math.MinInt64
		Expect(aims(NewPlan(v))).To(Equal("15/5"))
	})
})

func extreme(random *rand.Rand) *resource.Quantity {
	all := []string{"0", "1", "-1", "1m", "9223372036854775807", "1e18", "1E999", "-1E999", "1n"}
	q := resource.MustParse(all[random.IntN(len(all))])
	return &q
}

var _ = Describe("More clusters than an object can hold", func() {
	It("leave the lowest tiers and those that something was promised to, and are said", func() {
		v := view(Federated(1, 3000))
		for i := range 400 {
			v.Clusters = append(v.Clusters, none(fmt.Sprintf("c%03d", i)))
		}
		Prefer("c399", Tier(0))(&v.Object.Spec)
		Prefer("*", Tier(1))(&v.Object.Spec)
		v.Clusters = append(v.Clusters, has("zz", 1, 5, 5))
		p := NewPlan(v)
		s := status(v, p)
		Expect(s.Clusters).To(HaveLen(256))
		names := []string{}
		for _, c := range s.Clusters {
			names = append(names, c.Name)
		}
		Expect(names).To(ContainElements("zz", "c399", "c000", "c253"))
		Expect(names).NotTo(ContainElement("c254"))
		Expect(s.Conditions).To(ContainElement(And(HaveField("Type", "Ready"), HaveField("Reason", "TooManyClusters"))))
	})

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
})

// quiet has a cluster's own autoscaler end.
func (f *federation) quiet(c *cluster) {
	c.set(func(c *cluster) { c.still = true })
}
