// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/internal/plugin/dryrun"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// asked is a server that has nothing but one MachineDeployment, and remembers what it was asked for.
type asked struct {
	mu       sync.Mutex
	requests []string
	// secret is a resource that may not be read, beside those that never may.
	secret string
}

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.requests = append(a.requests, r.Method+" "+r.URL.Path)
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	body := `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`
	switch {
	case a.secret != "" && strings.HasSuffix(r.URL.Path, "/"+a.secret):
		w.WriteHeader(http.StatusForbidden)
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
	case strings.HasSuffix(r.URL.Path, "/machinedeployments"):
		body = `{"kind":"MachineDeploymentList","apiVersion":"machine.sapcloud.io/v1alpha1","metadata":{"resourceVersion":"1"},"items":[
			{"kind":"MachineDeployment","apiVersion":"machine.sapcloud.io/v1alpha1","metadata":{"name":"p","namespace":"default","uid":"p","resourceVersion":"1"},
			 "spec":{"replicas":2,"selector":{"matchLabels":{"name":"p"}},"template":{"metadata":{"labels":{"name":"p"}},"spec":{"class":{"name":"c"}}}}}]}`
	case strings.HasSuffix(r.URL.Path, "/resourcequotas"):
		body = `{"kind":"ResourceQuotaList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[
			{"kind":"ResourceQuota","apiVersion":"v1","metadata":{"name":"q","namespace":"shop"},"status":{"hard":{"cpu":"1"}}}]}`
	case strings.HasSuffix(r.URL.Path, "/balancers"), strings.HasSuffix(r.URL.Path, "/capacitybuffers"):
		w.WriteHeader(http.StatusNotFound)
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	case strings.HasSuffix(r.URL.Path, "/csidrivers"), strings.HasSuffix(r.URL.Path, "/reserves"), strings.HasSuffix(r.URL.Path, "/podtemplates"):
		w.WriteHeader(http.StatusForbidden)
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
	case strings.HasSuffix(r.URL.Path, "/secrets"):
		w.WriteHeader(http.StatusForbidden)
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no secrets for you","code":403}`
	case strings.Contains(r.URL.Path, "gardener"):
		w.WriteHeader(http.StatusNotFound)
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	}
	_, _ = w.Write([]byte(body))
}

// trip is a connection.
type trip func(*http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

var _ = Describe("The clients of a forecast", func() {
	var server *asked
	var c Clients
	var config *rest.Config
	BeforeEach(func() {
		server = &asked{}
		running := httptest.NewServer(server)
		DeferCleanup(running.Close)
		config = &rest.Config{Host: running.URL}
		var err error
		c, err = NewClients(config, config)
		Expect(err).NotTo(HaveOccurred())
	})

	It("read all there is, ask for nothing else, and say what is missing", func(ctx context.Context) {
		o, err := c.Read(ctx, fixture.Namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(o.Deployments).To(ConsistOf(HaveField("Spec.Replicas", BeEquivalentTo(2))))
		Expect(o.Missing).To(Equal([]string{"balancers: not installed in this cluster", "csidrivers: no rights to list them", "reserves: no rights to list them"}))
		Expect(o.Unread).To(Equal(map[string]string{"csidrivers": "no rights to list them", "reserves": "no rights to list them"}), "what is not installed has no objects")
		f, err := New(ctx, o, o, settings(), c.BalancerClients())
		Expect(err).NotTo(HaveOccurred())
		Expect(f.End.Pools).To(ConsistOf(HaveField("New.Serve", 2)))
		Expect(f.Notes).To(ContainElement("balancers: not installed in this cluster"))
		Expect(server.requests).To(HaveEach(HavePrefix("GET ")))
		Expect(len(server.requests)).To(BeNumerically(">", 12))
	})

	Describe("of a Gardener's cluster", func() {
		// within has the server answer what it is asked about a Gardener's kinds.
		within := func(answer http.HandlerFunc) Clients {
			GinkgoHelper()
			running := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "gardener") {
					answer(w, r)
					return
				}
				server.ServeHTTP(w, r)
			}))
			DeferCleanup(running.Close)
			config := &rest.Config{Host: running.URL}
			c, err := NewClients(config, config)
			Expect(err).NotTo(HaveOccurred())
			return c
		}

		It("report that bounds may be missing, because Workers may not be read", func(ctx context.Context) {
			c := within(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				body := `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"extensions.gardener.cloud/v1alpha1","resources":[]}`
				if !strings.HasSuffix(r.URL.Path, "/v1alpha1") {
					w.WriteHeader(http.StatusForbidden)
					body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
				}
				_, _ = w.Write([]byte(body))
			})
			o, err := c.Read(ctx, fixture.Namespace)
			Expect(err).NotTo(HaveOccurred())
			Expect(o.Garden).To(BeTrue())
			Expect(o.Missing).To(ContainElements("clusters: no rights to list them", "workers: no rights to list them"))
		})

		It("report that it is not known whether it is one", func(ctx context.Context) {
			o, err := within(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }).Read(ctx, fixture.Namespace)
			Expect(err).NotTo(HaveOccurred())
			Expect(o.Missing).To(ContainElement(HavePrefix("workers: ")))
		})

		It("do not wait for the answer whether it is one when they are interrupted", func(ctx context.Context) {
			ctx, interrupt := context.WithCancel(ctx)
			defer interrupt()
			release, begun := make(chan struct{}), time.Now()
			c := within(func(http.ResponseWriter, *http.Request) {
				interrupt()
				<-release
			})
			DeferCleanup(func() { close(release) })
			_, _ = c.Read(ctx, fixture.Namespace) // an error, if a list was not complete yet
			Expect(ctx.Err()).To(HaveOccurred())
			Expect(time.Since(begun)).To(BeNumerically("<", 30*time.Second), "the request itself ends after 32")
		})
	})

	It("give each page a time limit of its own, so that a large cluster is read over a slow connection", func(ctx context.Context) {
		var limits []time.Time
		running := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next := ""
			if r.URL.Query().Get("continue") == "" && strings.HasSuffix(r.URL.Path, "/nodes") {
				next = "more"
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":%q},"items":[]}`, next)
		}))
		DeferCleanup(running.Close)
		config := &rest.Config{Host: running.URL}
		config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
			return trip(func(r *http.Request) (*http.Response, error) {
				if limit, set := r.Context().Deadline(); set && strings.HasSuffix(r.URL.Path, "/nodes") {
					limits = append(limits, limit)
				}
				return inner.RoundTrip(r)
			})
		})
		c, err := NewClients(config, config)
		Expect(err).NotTo(HaveOccurred())
		_, err = c.Read(ctx, fixture.Namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(limits).To(HaveLen(2))
		Expect(limits[1]).To(BeTemporally(">", limits[0]))
	})

	DescribeTable("predict nothing for MachineDeployments whose machines may not be read",
		func(ctx context.Context, secret string) {
			server.secret = secret
			_, err := c.Read(ctx, fixture.Namespace)
			Expect(err).To(MatchError(ContainSubstring("list " + secret + ": ")))
		},
		Entry(nil, "machinesets"), Entry(nil, "machines"),
	)

	It("predict nothing where there is nothing that may be read", func(ctx context.Context) {
		server.secret = "machinedeployments"
		_, err := c.Read(ctx, fixture.Namespace)
		Expect(err).To(MatchError(ContainSubstring("list machinedeployments: ")), "there are no Balancers either")
	})

	It("predict nothing from a part of a kind", func(ctx context.Context) {
		running := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/pods") {
				server.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			body := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"more"},"items":[{"metadata":{"name":"a","namespace":"default"}}]}`
			if r.URL.Query().Get("continue") != "" {
				w.WriteHeader(http.StatusForbidden)
				body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
			}
			_, _ = w.Write([]byte(body))
		}))
		DeferCleanup(running.Close)
		config := &rest.Config{Host: running.URL}
		c, err := NewClients(config, config)
		Expect(err).NotTo(HaveOccurred())
		o, err := c.Read(ctx, fixture.Namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(o.Pods).To(BeEmpty())
		Expect(o.Unread).To(HaveKey("pods"))
	})

	It("do not take workloads for gone that may not be read", func(ctx context.Context) {
		running := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case strings.HasSuffix(r.URL.Path, "/balancers"):
				_, _ = w.Write([]byte(`{"kind":"BalancerList","apiVersion":"balancer.x-k8s.io/v1alpha1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"shop","namespace":"default"},
					"spec":{"targets":[{"name":"a","scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"a"}}]}}]}`))
			case strings.HasSuffix(r.URL.Path, "/apis/apps/v1"):
				_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[{"name":"deployments","kind":"Deployment","namespaced":true,"verbs":["list"]},
					{"name":"deployments/scale","kind":"Scale","namespaced":true,"verbs":["get"]}]}`))
			default:
				server.ServeHTTP(w, r)
			}
		}))
		DeferCleanup(running.Close)
		config := &rest.Config{Host: running.URL}
		c, err := NewClients(config, config)
		Expect(err).NotTo(HaveOccurred())
		o, err := c.Read(ctx, fixture.Namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(o.Workloads).To(HaveLen(1))
		server.secret = "deployments"
		o, err = c.Read(ctx, fixture.Namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(o.Workloads).To(BeEmpty())
	})

	It("read what buffers refer to, if there are buffers of Evenkeel, and say what they may not read", func(ctx context.Context) {
		o := Objects{Target: true, Buffers: []*v1beta1.CapacityBuffer{{Spec: v1beta1.CapacityBufferSpec{PodTemplateRef: &v1beta1.LocalObjectRef{Name: "a"}}}}}
		_, err := c.ReadReferences(ctx, o)
		Expect(err).NotTo(HaveOccurred())
		Expect(server.requests).To(BeEmpty())
		o.Buffers[0].Spec.ProvisioningStrategy = ptr.To(v1beta1.StrategyReserved)
		o, err = c.ReadReferences(ctx, o)
		Expect(err).NotTo(HaveOccurred())
		Expect(server.requests).To(ConsistOf("GET /api/v1/podtemplates", "GET /api/v1/resourcequotas"))
		Expect(o.References.Objects["ResourceQuota"]).To(ConsistOf(HaveField("Status.Hard", HaveKey(corev1.ResourceName("cpu")))))
		Expect(o.References.Unread).To(Equal(map[string]string{"PodTemplate": "the podtemplates of the target cluster could not be read: no rights to list them"}))
		Expect(o.Missing).To(Equal([]string{"podtemplates: no rights to list them"}))
		Expect(o.References.Scales).To(BeNil())
		o.Buffers[0].Spec = v1beta1.CapacityBufferSpec{ProvisioningStrategy: ptr.To(v1beta1.StrategyReserved), ScalableRef: &v1beta1.ScalableRef{APIGroup: "x", Kind: "Y", Name: "y"}}
		o, err = c.ReadReferences(ctx, o)
		Expect(err).NotTo(HaveOccurred())
		Expect(o.References.Scales).NotTo(BeNil())
	})

	It("leave out quotas that may not be read, and say so", func(ctx context.Context) {
		server.secret = "resourcequotas"
		b := &v1beta1.CapacityBuffer{Spec: v1beta1.CapacityBufferSpec{ProvisioningStrategy: ptr.To(v1beta1.StrategyReserved), PodTemplateRef: &v1beta1.LocalObjectRef{Name: "a"}}}
		o, err := c.ReadReferences(ctx, Objects{Target: true, Buffers: []*v1beta1.CapacityBuffer{b}})
		Expect(err).NotTo(HaveOccurred())
		Expect(o.References.Unread).NotTo(HaveKey("ResourceQuota"), "chunks are counted without them")
		Expect(o.Missing).To(ContainElement("resourcequotas: no rights to list them"))
	})

	It("report at once that clusters may not be read, and read none where there is no federated autoscaler", func(ctx context.Context) {
		garden := Fleet{Namespace: "garden"}
		Expect(c.Federate(ctx, config, garden, nil)).To(BeEmpty())
		Expect(server.requests).To(BeEmpty())
		_, _, err := c.Federate(ctx, config, garden, []*autoscaling.FederatedHorizontalPodAutoscaler{{}})
		Expect(err).To(MatchError(ContainSubstring("list the clusters' Secrets in namespace garden: no secrets for you")))
	})

	It("cannot write", func(ctx context.Context) {
		machines := c.Control.Resource(api.SchemeGroupVersion.WithResource("machines")).Namespace(fixture.Namespace)
		m := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine", "metadata": map[string]any{"name": "a"}}}
		_, err := machines.Create(ctx, m, metav1.CreateOptions{})
		Expect(err).To(MatchError(ContainSubstring("a forecast writes nothing")))
		_, err = machines.Update(ctx, m, metav1.UpdateOptions{})
		Expect(err).To(MatchError(ContainSubstring("a forecast writes nothing")))
		_, err = machines.Patch(ctx, "a", "application/merge-patch+json", []byte("{}"), metav1.PatchOptions{DryRun: []string{"All"}})
		Expect(err).To(MatchError(ContainSubstring("a forecast writes nothing")))
		Expect(machines.Delete(ctx, "a", metav1.DeleteOptions{})).To(MatchError(ContainSubstring("a forecast writes nothing")))
		Expect(server.requests).To(BeEmpty())
	})
})

var _ = It("A forecast does not take machines for empty if pods could not be read", func() {
	o := stringAt()
	pool(o, "p", 3, 1, func(d *api.MachineDeployment) {
		d.Spec.Replicas, d.Spec.ExcessReplicas = 2, ptr.To(int32(2))
		d.Annotations[api.AppliedExcessAnnotation], d.Annotations[api.WantedExcessAnnotation] = "2", "2"
	})
	o.Pods, o.Unread = nil, map[string]string{"pods": "no rights to list them"}
	_, text := told(*o, "")
	Expect(text).NotTo(ContainSubstring("into reserve"))
})
