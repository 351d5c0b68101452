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
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
			 "spec":{"replicas":2,"selector":{"matchLabels":{"name":"p"}},"strategy":{"type":"Recreate"},"template":{"metadata":{"labels":{"name":"p"}},"spec":{"class":{"kind":"MachineClass","name":"c"}}}}}]}`
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
		Expect(err).To(MatchError(ContainSubstring("plan writes nothing")))
		_, err = machines.Update(ctx, m, metav1.UpdateOptions{})
		Expect(err).To(MatchError(ContainSubstring("plan writes nothing")))
		_, err = machines.Patch(ctx, "a", "application/merge-patch+json", []byte("{}"), metav1.PatchOptions{DryRun: []string{"All"}})
		Expect(err).To(MatchError(ContainSubstring("plan writes nothing")))
		Expect(machines.Delete(ctx, "a", metav1.DeleteOptions{})).To(MatchError(ContainSubstring("plan writes nothing")))
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

// uneven has two zones with three machines and one, which are kept even. A small pod runs on each.
func uneven() *Objects {
	GinkgoHelper()
	o := stringAt()
	for name, n := range map[string]int{"z1": 3, "z2": 1} {
		pool(o, name, n, 0, func(d *api.MachineDeployment) {
			d.Labels = map[string]string{"pool": "p"}
			d.Annotations = map[string]string{api.BalanceAnnotation: string(api.BalanceContinuous), api.AppliedReplicasAnnotation: fmt.Sprint(n)}
		})
	}
	runByReplicaSet(o.Pods...)
	for _, p := range o.Pods {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("10m")}
	}
	return o
}

// runByReplicaSet lets a ReplicaSet run pods, so that they may be evicted.
func runByReplicaSet(pods ...*corev1.Pod) {
	for _, p := range pods {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: ptr.To(true)}}
	}
}

// unread has a kind be one that may not be listed.
func unread(o *Objects, kind string) *Objects {
	o.Unread = map[string]string{kind: "no rights to list them"}
	switch kind {
	case "nodes":
		o.Nodes = nil
	case "pods":
		if o.Pods != nil {
			o.Pods, o.Own = nil, nil
		}
	case "pods of the control cluster":
		o.Own = nil
	case "poddisruptionbudgets":
		o.Budgets = nil
	case "csidrivers":
		o.Drivers = nil
	}
	return o
}

// waitingFor has a pod wait that needs a whole machine, and a volume of a class.
func waitingFor(o *Objects, class string) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "data"}}
	claim.Spec.StorageClassName, claim.Status.Phase = &class, corev1.ClaimPending
	o.Claims = append(o.Claims, claim)
	o.StorageClasses = append(o.StorageClasses, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "csi.example.com", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
	})
	o.Drivers = append(o.Drivers, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "csi.example.com"}})
	o.Pods = append(o.Pods, fixture.Pod("late", func(p *corev1.Pod) {
		p.Spec.SchedulerName, p.Status.Phase = "default-scheduler", corev1.PodPending
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *o.Nodes[0].Status.Allocatable.Cpu()
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	}))
}

var _ = Describe("A forecast of what may not be read", func() {
	It("moves machines to another zone, but not where Nodes, pods or budgets are not known", func() {
		_, text := told(*uneven(), "")
		Expect(text).To(ContainSubstring("z1: 2 of 2 machines serve"))
		for _, kind := range []string{"nodes", "pods", "poddisruptionbudgets"} {
			f, text := told(*unread(uneven(), kind), "")
			Expect(f.End.Pools).To(HaveEach(HaveField("Same", true)), kind+": "+text)
		}
	})

	It("moves none against a budget, as one that may be read shows", func() {
		o := uneven()
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "web"}}
		budget.Spec.Selector = &metav1.LabelSelector{}
		o.Budgets = append(o.Budgets, budget)
		f, text := told(*o, "")
		Expect(f.End.Pools).To(HaveEach(HaveField("Same", true)), text)
	})

	It("releases no machine for a volume whose driver is not known, nor for a pod where Nodes are not", func() {
		for kind, replicas := range map[string]int{"": 3, "csidrivers": 2, "nodes": 2} {
			o := stringAt()
			pool(o, "p", 2, 1, bounds("1:9:1"))
			waitingFor(o, "fast")
			f, text := told(*unread(o, kind), "")
			Expect(f.End.Pools[0].Replicas).To(Equal(replicas), kind+": "+text)
		}
	})

	It("drains no machine beyond replicas where budgets are not known", func() {
		for kind, serve := range map[string]int{"": 2, "poddisruptionbudgets": 3} {
			o := stringAt()
			pool(o, "p", 3, 1, func(d *api.MachineDeployment) {
				d.Spec.Replicas, d.Spec.ExcessReplicas = 2, ptr.To(int32(2))
				d.Annotations[api.AppliedExcessAnnotation], d.Annotations[api.WantedExcessAnnotation] = "2", "2"
			})
			runByReplicaSet(o.Pods...)
			f, text := told(*unread(o, kind), "")
			Expect(f.End.Pools[0].Serve).To(HaveLen(serve), kind+": "+text)
		}
	})

	DescribeTable("omits Balancers, and reports that", func(kind string, same, omitted bool) {
		o := shop(2, 2)
		o.Balancers[0].Spec.Replicas = ptr.To[int32](9)
		if !same {
			o.Pods = nil
		}
		f, _ := told(*unread(o, kind), "")
		if !omitted {
			Expect(f.End.Balancers).To(HaveLen(1))
			return
		}
		Expect(f.End.Balancers).To(BeEmpty())
		Expect(f.Notes).To(ContainElement("Balancers are omitted: the pods or autoscalers of their targets could not be read"))
	},
		Entry("where pods of both clusters are not known", "pods", true, true),
		Entry("where pods of the control cluster are not known", "pods of the control cluster", false, true),
		Entry("where autoscalers are not known", "horizontalpodautoscalers", true, true),
		Entry("but not where pods of the target cluster are not known", "pods", false, false),
	)

	DescribeTable("leaves the machines of CapacityBuffers as they are", func(kind string, gone func(*Objects)) {
		o := buffered(map[string]int{"z1": 1})
		keepBuffer(o, "web", 2, 1)
		gone(o)
		f, text := told(*unread(o, kind), "")
		Expect(short(f.End.Pools[0])).To(Equal("R1 A1 serve a reserve b leave  new 0+0"), text)
		Expect(f.End.Buffers).To(BeEmpty())
	},
		Entry("where buffers are not known", "capacitybuffers", func(o *Objects) { o.Buffers = nil }),
		Entry("where Reserves are not known", "reserves", func(o *Objects) { o.Reserves = nil }),
		Entry("where Nodes are not known", "nodes", func(*Objects) {}),
		Entry("where pods are not known", "pods", func(*Objects) {}),
	)
})
