// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("The federated autoscaler's controller alone", Serial, func() {
	var hub, member *sim.Server
	ctx, clusters := context.Background(), []sim.Resource{
		{Group: v1alpha1.GroupName, Version: "v1alpha1", Name: "federatedhorizontalpodautoscalers", Kind: "FederatedHorizontalPodAutoscaler", Namespaced: true, Status: true, Generation: true},
		{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Name: "clusterprofiles", Kind: "ClusterProfile", Namespaced: true},
	}
	BeforeEach(func() {
		hub = sim.New(sim.Options{Resources: slices.Concat(sim.Core, clusters)})
		member = sim.New(sim.Options{Resources: slices.Concat(sim.Core, sim.Workloads)})
	})
	begin := func(flags ...string) *running.Process {
		return start(hub, federatedName, flags...)
	}
	create := func() {
		o := &v1alpha1.FederatedHorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: fixture.Namespace}}
		o.Spec.ScaleTargetRef, o.Spec.MaxReplicas = v1alpha1.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"}, 7
		_, err := versioned.NewForConfigOrDie(hub.ConfigFor("user")).AutoscalingV1alpha1().FederatedHorizontalPodAutoscalers(fixture.Namespace).Create(ctx, o, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	registerIn := func(namespace, name string) {
		GinkgoHelper()
		text, err := os.ReadFile(running.Kubeconfig(member, "hub"))
		Expect(err).NotTo(HaveOccurred())
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{federatedhpa.SecretLabel: "true"}}}
		secret.Data = map[string][]byte{"kubeconfig": text}
		_, err = kubernetes.NewForConfigOrDie(hub.ConfigFor("user")).CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	register := func(name string) { registerIn(fixture.Namespace, name) }
	autoscale := func() {
		create()
		Eventually(func() int64 {
			hpa := member.Get(autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"), fixture.Namespace, "shop")
			if hpa == nil {
				return 0
			}
			n, _, _ := unstructured.NestedInt64(hpa.Object, "spec", "maxReplicas")
			return n
		}, eventually).Should(BeEquivalentTo(7))
	}

	It("finds clusters by Secrets, and works with its own lease", func() {
		register("munich")
		r := begin("--federation-allow-in-kubeconfigs=http") // as the simulated cluster speaks
		Eventually(r.Status("/readyz"), eventually).Should(Equal(http.StatusOK))
		leases := coordinationv1.SchemeGroupVersion.WithResource("leases")
		Eventually(func() any { return hub.Get(leases, fixture.Namespace, "federatedhpa") }, eventually).ShouldNot(BeNil())
		Expect(hub.Get(leases, fixture.Namespace, Name)).To(BeNil())
		autoscale()
		Eventually(func() []*unstructured.Unstructured {
			return hub.Objects(corev1.SchemeGroupVersion.WithResource("events"))
		}, eventually).Should(ContainElement(
			HaveField("Object", And(HaveKeyWithValue("reason", "Joined"), HaveKeyWithValue("involvedObject", HaveKeyWithValue("name", "shop"))))))
	})

	It("finds the clusters of --federation-clusters-namespace", func() {
		registerIn("clusters", "munich")
		begin("--federation-allow-in-kubeconfigs=http", "--federation-clusters-namespace=clusters")
		autoscale()
	})

	It("probes clusters as often as --federation-probe-period says", func() {
		register("munich")
		var lists atomic.Int32
		member.LatencyOf(func(r sim.Request) (before, after time.Duration) {
			if r.Verb == "list" && r.Resource == "horizontalpodautoscalers" {
				lists.Add(1)
			}
			return 0, 0
		})
		begin("--federation-allow-in-kubeconfigs=http", "--federation-probe-period=100ms")
		autoscale()
		Eventually(lists.Load, 20*time.Second).Should(BeNumerically(">", 20), "by default, a probe comes every ten seconds")
	})

	It("ends after writes to clusters that are under way, and not in the middle of one", func() {
		register("munich")
		var under atomic.Bool
		member.LatencyOf(func(r sim.Request) (before, after time.Duration) {
			if r.Verb == "create" && r.Resource == "horizontalpodautoscalers" {
				under.Store(true)
				before = 50 * time.Millisecond
			}
			return before, 0
		})
		r := begin("--federation-allow-in-kubeconfigs=http")
		create()
		Eventually(under.Load, eventually).Should(BeTrue())
		r.Stop()
		Eventually(r.Ended, eventually).Should(Receive())
		Expect(member.Get(autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"), fixture.Namespace, "shop")).NotTo(BeNil())
	})

	It("leaves other namespaces than --federation-namespace alone", func() {
		register("munich")
		r := begin("--federation-allow-in-kubeconfigs=http", "--federation-namespace=other")
		Eventually(r.HolderOf("federatedhpa"), eventually).ShouldNot(BeEmpty())
		create()
		Consistently(func() int {
			return len(member.Objects(autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers")))
		}, 2*time.Second).Should(BeZero())
	})

	It("watches no more clusters than --federation-max-clusters", func() {
		register("munich")
		register("zurich")
		r := begin("--federation-allow-in-kubeconfigs=http", "--federation-max-clusters=1")
		Eventually(r.HolderOf("federatedhpa"), eventually).ShouldNot(BeEmpty())
		create()
		Eventually(func() string {
			all := ""
			for _, o := range hub.Objects(v1alpha1.SchemeGroupVersion.WithResource("federatedhorizontalpodautoscalers")) {
				all += fmt.Sprint(o.Object["status"])
			}
			return all
		}, eventually).Should(ContainSubstring("--federation-max-clusters"))
	})

	It("finds clusters by ClusterProfiles, and runs the operator's program for them", func() {
		server, authority := guarded(running.Kubeconfig(member, "hub"), "open sesame")
		file := filepath.Join(GinkgoT().TempDir(), "providers.json")
		Expect(os.WriteFile(file, []byte(`{"providers":[{"name":"shell","execConfig":{"apiVersion":"client.authentication.k8s.io/v1","command":"echo","args":
			["{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"open sesame\"}}"],"env":[],"provideClusterInfo":true}}]}`), 0o600)).To(Succeed())
		profiles := dynamic.NewForConfigOrDie(hub.ConfigFor("user")).Resource(schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles"})
		_, err := profiles.Namespace(fixture.Namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile", "metadata": map[string]any{"name": "munich"},
			"status": map[string]any{"accessProviders": []any{map[string]any{"name": "shell", "cluster": map[string]any{"server": server, "certificate-authority-data": authority}}}},
		}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		begin("--federation-registry=clusterprofiles", "--clusterprofile-provider-file="+file)
		autoscale()
	})
})

// guarded puts a server with TLS before that of a kubeconfig, which lets every client with the token through.
func guarded(kubeconfig, token string) (server, authority string) {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	behind, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	proxy := httputil.NewSingleHostReverseProxy(behind)
	proxy.FlushInterval = -1
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	DeferCleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return front.URL, base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}))
}
