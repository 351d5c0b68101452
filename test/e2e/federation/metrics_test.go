// SPDX-License-Identifier: Apache-2.0

package federation

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
)

// metrics is a member's source of external metrics: by name, how many replicas' worth of load there is.
type metrics struct {
	mu     sync.Mutex
	values map[string]int64
}

func (m *metrics) set(name string, replicas int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[name] = replicas
}

const externalMetrics = "/apis/external.metrics.k8s.io/v1beta1"

func (m *member) serveMetrics(ctx context.Context) *metrics {
	GinkgoHelper()
	source := &metrics{values: map[string]int64{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+externalMetrics, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "external.metrics.k8s.io/v1beta1", "resources": []any{}})
	})
	mux.HandleFunc("GET "+externalMetrics+"/namespaces/{namespace}/{metric}", func(w http.ResponseWriter, r *http.Request) {
		source.mu.Lock()
		value, known := source.values[r.PathValue("metric")]
		source.mu.Unlock()
		items := []any{}
		if known {
			items = append(items, map[string]any{"metricName": r.PathValue("metric"), "metricLabels": map[string]any{}, "timestamp": time.Now().UTC().Format(time.RFC3339), "value": fmt.Sprint(value)})
		}
		answer(w, map[string]any{"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1", "metadata": map[string]any{}, "items": items})
	})
	server := httptest.NewTLSServer(mux)
	DeferCleanup(server.Close)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "metrics"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}
	_, err := m.core.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	apis := m.dynamic.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	_, err = apis.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1beta1.external.metrics.k8s.io"},
		"spec": map[string]any{
			"group": "external.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": namespace, "name": "metrics", "port": int64(server.Listener.Addr().(*net.TCPAddr).Port)},
		},
	}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return source
}

func answer(w http.ResponseWriter, object map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object) // to a client that has gone, otherwise
}
