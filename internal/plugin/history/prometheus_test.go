// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/demand"
	"github.com/evenkeel/evenkeel/internal/plugin/history"
)

// metered is a pod as kube-state-metrics shows it, from its creation until a time.
type metered struct {
	name                  string
	created, until, ended time.Duration // before noon
	started               time.Duration // before noon; 0 for one that is not known to have started
	daemon                bool
	node                  string
	// waited is one that was seen before it was bound: its container has a series without a Node, and another with it.
	waited bool
	// namespace is "shop" unless set. Such a pod has no UID, as kube-state-metrics showed pods once.
	namespace string
	// restarted is one that runs on although one of its containers has ended.
	restarted bool
}

// server answers as Prometheus does, for the queries that are asked. It keeps the requests.
type server struct {
	*httptest.Server
	pods     []metered
	queries  []string
	requests []*http.Request
}

func newServer(pods ...metered) *server {
	s := &server{pods: pods}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer GinkgoRecover()
		Expect(r.ParseForm()).To(Succeed())
		Expect(r.URL.Path).To(Equal("/api/v1/query_range"))
		s.requests, s.queries = append(s.requests, r), append(s.queries, r.PostForm.Get("query"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, strings.Join(s.series(r), ","))
	}))
	DeferCleanup(s.Close)
	return s
}

// series are those that a request asks for.
func (s *server) series(r *http.Request) (all []string) {
	seconds := func(name string) float64 {
		n, err := strconv.ParseFloat(r.PostForm.Get(name), 64)
		Expect(err).NotTo(HaveOccurred())
		return n
	}
	start, end, step := seconds("start"), seconds("end"), seconds("step")
	Expect((end-start)/step).To(BeNumerically("<", 11_000), "Prometheus refuses more")
	for _, p := range s.pods {
		var values []string
		for at := start; at <= end; at += step {
			// max_over_time looks back for one step.
			if p.exists(at-step, at) {
				if value, has := p.value(r.PostForm.Get("query")); has {
					values = append(values, fmt.Sprintf(`[%.3f,"%v"]`, at, value))
				}
			}
		}
		if len(values) > 0 {
			all = append(all, fmt.Sprintf(`{"metric":{%s},"values":[%s]}`, p.labels(), strings.Join(values, ",")))
		}
	}
	return all
}

func (p metered) labels() string {
	if p.namespace != "" {
		return fmt.Sprintf(`"namespace":%q,"pod":%q`, p.namespace, p.name)
	}
	return fmt.Sprintf(`"namespace":"shop","pod":%q,"uid":"uid-%s"`, p.name, p.name)
}

func ago(d time.Duration) float64 { return float64(noon.Add(-d).Unix()) }

func (p metered) exists(after, until float64) bool {
	return ago(p.created) <= until && ago(p.until) > after
}

// value is what a query is about.
func (p metered) value(query string) (value string, has bool) {
	switch {
	case strings.Contains(query, "kube_pod_created{"):
		return strconv.FormatFloat(ago(p.created), 'g', -1, 64), true
	case strings.Contains(query, "kube_pod_start_time{"):
		return strconv.FormatFloat(ago(p.started), 'g', -1, 64), p.started > 0
	case strings.Contains(query, "kube_pod_completion_time{"):
		return strconv.FormatFloat(ago(p.ended), 'g', -1, 64), p.ended > 0 && !(p.restarted && strings.Contains(query, `) and max by (namespace, pod, uid) (max_over_time(kube_pod_status_phase{phase=~"Succeeded|Failed",`))
	case strings.Contains(query, `resource="cpu"`):
		return p.requested(query, 1), true
	case strings.Contains(query, `resource="memory"`):
		return p.requested(query, 1<<30), true
	case strings.Contains(query, "kube_pod_owner{"):
		return "1", p.daemon
	case strings.Contains(query, "kube_pod_info{"):
		return "1", strings.Contains(query, `node=~"`+p.node)
	}
	Fail("an unknown query: " + query)
	return "", false
}

// requested is the sum over the series of the container, or over its largest one.
func (p metered) requested(query string, amount float64) string {
	if p.waited && !strings.HasPrefix(query, "sum by (namespace, pod, uid) (max by (namespace, pod, uid, container) (max_over_time(") {
		amount *= 2
	}
	return strconv.FormatFloat(amount, 'g', -1, 64)
}

// traced is what the server tells of the two days before noon.
func (s *server) traced(changes ...func(*history.Prometheus)) (demand.Trace, []string, error) {
	p := history.Prometheus{URL: s.URL, Step: time.Minute}
	for _, change := range changes {
		change(&p)
	}
	return p.Trace(GinkgoT().Context(), noon.AddDate(0, 0, -2), noon)
}

// large is a pod of one CPU and 1Gi.
func large(before, lasts time.Duration) demand.Pods {
	p := created(before, lasts)
	p.Memory = 1 << 30
	return p
}

var _ = Describe("Prometheus", func() {
	It("tells when pods were created, what they requested, and when they ended", func() {
		trace, notes, err := newServer(
			metered{name: "runs", created: 30 * time.Hour, until: -time.Hour},
			metered{name: "deleted", created: 20 * time.Hour, until: 10 * time.Hour},
			metered{name: "completed", created: 9 * time.Hour, until: time.Hour, ended: 8 * time.Hour},
			metered{name: "short", created: 59 * time.Minute, until: 58*time.Minute + 30*time.Second},
			metered{name: "old", created: 90 * 24 * time.Hour, until: -time.Hour},
			metered{name: "daemon", created: time.Hour, until: -time.Hour, daemon: true},
		).traced()
		Expect(err).NotTo(HaveOccurred())
		Expect(notes).To(HaveExactElements(ContainSubstring("within 1m0s")))
		Expect(trace).To(HaveLen(5))
		Expect(trace[0]).To(Equal(large(90*24*time.Hour, 0)))
		Expect(trace[1]).To(Equal(large(30*time.Hour, 0)))
		Expect(trace[3]).To(Equal(large(9*time.Hour, time.Hour)))
		for i, within := range map[int]time.Duration{2: 10 * time.Hour, 4: 30 * time.Second} {
			Expect(trace[i].Lasts).To(BeNumerically("~", within, time.Minute))
		}
	})

	It("counts the requests of a pod once, though its container has a series from before it was bound", func() {
		trace, _, err := newServer(metered{name: "waited", created: time.Hour, until: -time.Hour, waited: true}).traced()
		Expect(err).NotTo(HaveOccurred())
		Expect(trace).To(HaveExactElements(large(time.Hour, 0)))
	})

	It("counts pods of the same name in two namespaces", func() {
		trace, _, err := newServer(
			metered{name: "db-0", namespace: "shop", created: 2 * time.Hour, until: -time.Hour},
			metered{name: "db-0", namespace: "elsewhere", created: time.Hour, until: -time.Hour},
		).traced()
		Expect(err).NotTo(HaveOccurred())
		Expect(trace).To(HaveExactElements(large(2*time.Hour, 0), large(time.Hour, 0)))
	})

	It("shows how long pods ran, without the time in which they waited", func() {
		trace, _, err := newServer(
			metered{name: "completed", created: 9 * time.Hour, started: 8*time.Hour + 30*time.Minute, until: time.Hour, ended: 8 * time.Hour},
			metered{name: "deleted", created: 5 * time.Hour, started: 4 * time.Hour, until: 3 * time.Hour},
		).traced()
		Expect(err).NotTo(HaveOccurred())
		Expect(trace).To(HaveLen(2))
		Expect(trace[0]).To(Equal(large(9*time.Hour, 30*time.Minute)))
		Expect(trace[1].Lasts).To(BeNumerically("~", time.Hour, time.Minute))
	})

	It("takes no pod for ended while only one of its containers has", func() {
		trace, _, err := newServer(metered{name: "restarted", created: 9 * time.Hour, until: -time.Hour, ended: 8 * time.Hour, restarted: true}).traced()
		Expect(err).NotTo(HaveOccurred())
		Expect(trace).To(HaveExactElements(large(9*time.Hour, 0)))
	})

	It("sees short-lived pods also where the step does not divide the time of a request", func() {
		trace, _, err := newServer(
			metered{name: "runs", created: time.Hour, until: -time.Hour},
			metered{name: "short", created: 6*time.Hour + 8*time.Minute, until: 6*time.Hour + 4*time.Minute},
		).traced(func(p *history.Prometheus) { p.Step = 50 * time.Minute })
		Expect(err).NotTo(HaveOccurred())
		Expect(trace).To(HaveLen(2))
		Expect(trace[0].Lasts).To(And(BeNumerically(">", 0), BeNumerically("<=", 50*time.Minute)))
	})

	It("includes only pods on the given Nodes", func() {
		s := newServer(metered{name: "a", created: time.Hour, until: -time.Hour, node: "pool-z1"}, metered{name: "b", created: time.Hour, until: -time.Hour, node: "other"})
		trace, _, err := s.traced(func(p *history.Prometheus) { p.Nodes = "pool-z1-.*%s" })
		Expect(err).NotTo(HaveOccurred())
		Expect(trace).To(HaveExactElements(large(time.Hour, 0)))
		Expect(s.queries).To(ContainElement(ContainSubstring(`kube_pod_info{node=~"pool-z1-.*%s",}`)))
	})

	It("is asked with a token and matchers, for some hours at a time", func() {
		s := newServer(metered{name: "a", created: time.Hour, until: -time.Hour})
		_, _, err := s.traced(func(p *history.Prometheus) { p.Token, p.Matchers = "secret", `namespace="shop"` })
		Expect(err).NotTo(HaveOccurred())
		Expect(s.requests).To(HaveLen(8 * 6))
		for i, r := range s.requests {
			Expect(r.Header.Get("Authorization")).To(Equal("Bearer secret"))
			Expect(s.queries[i]).To(ContainSubstring(`namespace="shop"}`))
		}
	})

	It("is an error if no pod is known", func() {
		_, _, err := newServer().traced()
		Expect(err).To(MatchError(ContainSubstring("check that it scrapes kube-state-metrics")))
	})

	DescribeTable("is an error if the server answers otherwise",
		func(answer http.HandlerFunc, says string) {
			s := httptest.NewServer(answer)
			DeferCleanup(s.Close)
			_, _, err := history.Prometheus{URL: s.URL, Step: time.Minute}.Trace(GinkgoT().Context(), noon.Add(-time.Hour), noon)
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("an error", answered(http.StatusBadRequest, `{"status":"error","errorType":"bad_data","error":"parse error: unexpected end of input"}`), "query Prometheus: bad_data: parse error"),
		Entry("another server's error", answered(http.StatusUnauthorized, "<html>"), "query Prometheus: 401 Unauthorized"),
		Entry("a page", answered(http.StatusOK, "<html>"), "read the answer of Prometheus: invalid character"),
		Entry("another type", answered(http.StatusOK, `{"status":"success","data":{"resultType":"vector","result":[]}}`), `type "vector"`),
		Entry("a sample without value", answered(http.StatusOK, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1]]}]}}`), "sample [1] is invalid"),
		Entry("a sample at no time", answered(http.StatusOK, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1e300,"1"]]}]}}`), "is invalid"),
		Entry("a redirect, which would take the token along", http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound).ServeHTTP, "the server redirects"),
		Entry("more than is read", func(w http.ResponseWriter, _ *http.Request) {
			page := strings.Repeat(" ", 1<<20)
			for range 65 {
				if _, err := io.WriteString(w, page); err != nil {
					return
				}
			}
		}, "larger than 64 MiB"),
	)

	It("leaves out pods with values that no pod can have", func() {
		values := func(value string) string { return fmt.Sprintf(`[[%.0f,%q]]`, ago(0), value) }
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer GinkgoRecover()
			Expect(r.ParseForm()).To(Succeed())
			value := "1"
			switch query := r.PostForm.Get("query"); {
			case strings.Contains(query, "kube_pod_created"):
				value = strconv.FormatFloat(ago(time.Minute), 'f', 0, 64)
			case strings.Contains(query, `"cpu"`):
				value = "+Inf"
			case strings.Contains(query, "kube_pod_owner"), strings.Contains(query, "completion"):
				fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
				return
			}
			fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"a"},"values":%s}]}}`, values(value))
		}))
		DeferCleanup(s.Close)
		trace, notes, err := history.Prometheus{URL: s.URL, Step: time.Minute}.Trace(GinkgoT().Context(), noon.Add(-time.Hour), noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(trace).To(BeEmpty())
		Expect(notes).To(ContainElement("omitted: 1 pod with invalid values"))
	})

	It("ends when it is interrupted", func() {
		ctx, cancel := context.WithCancel(GinkgoT().Context())
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body) // the server notices the end of a request after its body alone
			cancel()
			if err == nil {
				<-r.Context().Done()
			}
		}))
		DeferCleanup(s.Close)
		_, _, err := history.Prometheus{URL: s.URL, Step: time.Minute}.Trace(ctx, noon.Add(-time.Hour), noon)
		Expect(err).To(MatchError(context.Canceled))
	})

	DescribeTable("is not asked for what it cannot answer", func(step, span time.Duration, says string) {
		_, _, err := history.Prometheus{URL: "http://127.0.0.1:1", Step: step}.Trace(GinkgoT().Context(), noon.Add(-span), noon)
		Expect(err).To(MatchError(ContainSubstring(says)))
	},
		Entry("no step", time.Duration(0), time.Hour, "step 0s: use 1s to 6h0m0s"),
		Entry("too many steps", time.Second, time.Hour, "step 1s: use at least 2s"),
		Entry("too large a step", 7*time.Hour, time.Hour, "use 1s to 6h0m0s"),
		Entry("too long a time", time.Minute, demand.MaxSpan+time.Hour, "is too long"),
	)
})

// answered is a server that always answers the same.
func answered(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}
