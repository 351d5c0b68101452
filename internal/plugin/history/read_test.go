// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/plugin/history"
)

// trip is a connection.
type trip func(*http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

var _ = It("Each page has a time limit of its own, so that a large cluster is read over a slow connection", func() {
	var limits []time.Time
	running := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, next := "EventList", ""
		if strings.HasSuffix(r.URL.Path, "/pods") {
			kind = "PodList"
		}
		if r.URL.Query().Get("continue") == "" && kind == "PodList" {
			next = "more"
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind":%q,"apiVersion":"v1","metadata":{"resourceVersion":"1","continue":%q},"items":[]}`, kind, next)
	}))
	DeferCleanup(running.Close)
	config := &rest.Config{Host: running.URL}
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return trip(func(r *http.Request) (*http.Response, error) {
			if limit, set := r.Context().Deadline(); set && strings.HasSuffix(r.URL.Path, "/pods") {
				limits = append(limits, limit)
			}
			return inner.RoundTrip(r)
		})
	})
	_, _, err := history.Read(GinkgoT().Context(), kubernetes.NewForConfigOrDie(config))
	Expect(err).NotTo(HaveOccurred())
	Expect(limits).To(HaveLen(2))
	Expect(limits[1]).To(BeTemporally(">", limits[0]))
})
