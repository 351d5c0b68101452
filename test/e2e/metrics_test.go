// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// metrics is an API server of its own, behind the cluster's: it serves the external metrics and the CPU usage of pods
// that a spec sets.
type metrics struct {
	mu sync.Mutex
	// external are values by name, cpu the millicores of a running pod by namespace.
	external map[string]int64
	cpu      map[string]int64
}

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// serveMetrics registers the server until the container of specs ends. A cluster has one server of each
// API, so only one container of those that call this may run beside others; the rest have to be Serial.
func serveMetrics(ctx context.Context, apis dynamic.Interface) *metrics {
	GinkgoHelper()
	m := &metrics{external: map[string]int64{}, cpu: map[string]int64{}}
	mux := http.NewServeMux()
	for _, group := range []string{"external.metrics.k8s.io", "metrics.k8s.io"} {
		mux.HandleFunc("GET /apis/"+group+"/v1beta1", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, "APIResourceList", "v1", "groupVersion", group+"/v1beta1", "resources", []any{})
		})
	}
	mux.HandleFunc("GET /apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{metric}", m.answerExternal)
	mux.HandleFunc("GET /apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods", m.answerPods)
	server := httptest.NewTLSServer(mux)
	DeferCleanup(server.Close)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "metrics"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}
	_, err := kube.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.CoreV1().Services(namespace).Delete(ctx, service.Name, metav1.DeleteOptions{})).To(Succeed())
	})
	for _, group := range []string{"external.metrics.k8s.io", "metrics.k8s.io"} {
		register(ctx, apis.Resource(apiServices), group, port)
	}
	return m
}

func register(ctx context.Context, apis dynamic.ResourceInterface, group string, port int) {
	GinkgoHelper()
	name := "v1beta1." + group
	_, err := apis.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"group": group, "version": "v1beta1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": namespace, "name": "metrics", "port": int64(port)},
		},
	}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(apis.Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
	Eventually(func() ([]any, error) {
		api, err := apis.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		conditions, _, err := unstructured.NestedSlice(api.Object, "status", "conditions")
		return conditions, err
	}).WithContext(ctx).WithTimeout(time.Minute).Should(ContainElement(And(HaveKeyWithValue("type", "Available"), HaveKeyWithValue("status", "True"))))
}

func (m *metrics) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

func (m *metrics) answerExternal(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("metric")
	m.mu.Lock()
	value := m.external[name]
	m.mu.Unlock()
	answer(w, "ExternalMetricValueList", "external.metrics.k8s.io/v1beta1", "items", []any{map[string]any{
		"metricName": name, "metricLabels": map[string]any{}, "timestamp": time.Now().UTC().Format(time.RFC3339), "value": fmt.Sprint(value)}})
}

func (m *metrics) answerPods(w http.ResponseWriter, r *http.Request) {
	namespace := r.PathValue("namespace")
	m.mu.Lock()
	cpu := m.cpu[namespace]
	m.mu.Unlock()
	pods, err := kube.CoreV1().Pods(namespace).List(r.Context(), metav1.ListOptions{LabelSelector: r.URL.Query().Get("labelSelector")})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	items := []any{}
	for _, pod := range pods.Items {
		if pod.Status.Phase == corev1.PodRunning {
			items = append(items, map[string]any{
				"metadata":  map[string]any{"name": pod.Name, "namespace": namespace},
				"timestamp": time.Now().UTC().Format(time.RFC3339), "window": "1ms",
				"containers": []any{map[string]any{"name": "main", "usage": map[string]any{"cpu": fmt.Sprintf("%dm", cpu), "memory": "1Mi"}}},
			})
		}
	}
	answer(w, "PodMetricsList", "metrics.k8s.io/v1beta1", "items", items)
}

// answer is an object of a kind with some more fields.
func answer(w http.ResponseWriter, kind, apiVersion string, fields ...any) {
	object := map[string]any{"kind": kind, "apiVersion": apiVersion, "metadata": map[string]any{}}
	for i := 0; i < len(fields); i += 2 {
		object[fields[i].(string)] = fields[i+1]
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object) // to a client that has gone, otherwise
}
