// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
)

var _ = Describe("Serve", func() {
	var (
		endpoints Endpoints
		sick      error
		base      string
	)
	get := func(path string) (int, string) {
		GinkgoHelper()
		response, err := http.Get(base + path)
		Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		return response.StatusCode, string(body)
	}

	BeforeEach(func() {
		registry := prometheus.NewRegistry()
		machines := prometheus.NewGauge(prometheus.GaugeOpts{Name: "machines"})
		registry.MustRegister(machines)
		machines.Set(7)
		sick = nil
		endpoints = Endpoints{
			Healthy: map[string]Check{"controller": func() error { return sick }},
			Ready:   map[string]Check{"caches": func() error { return errors.New("still filling") }},
			Metrics: registry,
		}
	})

	JustBeforeEach(func() {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		base = "http://" + listener.Addr().String()
		ctx, stop := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() { result <- serveUntil(ctx, listener, endpoints.handler()) }()
		DeferCleanup(func() {
			stop()
			Expect(<-result).To(Succeed())
			_, err := http.Get(base + "/healthz")
			Expect(err).To(HaveOccurred(), "nothing may answer once serve has returned")
		})
	})

	It("says it is healthy, then what is wrong", func() {
		code, _ := get("/healthz")
		Expect(code).To(Equal(http.StatusOK))
		sick = errors.New("stopped")
		code, body := get("/healthz")
		Expect(code).To(Equal(http.StatusInternalServerError))
		Expect(body).To(ContainSubstring("controller: stopped"))
	})

	It("is not ready while a check fails, though healthy", func() {
		code, body := get("/readyz")
		Expect(code).To(Equal(http.StatusInternalServerError))
		Expect(body).To(ContainSubstring("caches: still filling"))
	})

	It("lets no client be slow or idle for as long as it likes", func() {
		server := newServer(endpoints.handler())
		for _, limit := range []time.Duration{server.ReadHeaderTimeout, server.ReadTimeout, server.WriteTimeout, server.IdleTimeout} {
			Expect(limit).To(And(BeNumerically(">", 0), BeNumerically("<=", 2*time.Minute)))
		}
		Expect(server.WriteTimeout).To(BeNumerically(">", 2*reviewTimeout), "an answer may wait for two reviews")
	})

	It("shows metrics", func() {
		code, body := get("/metrics")
		Expect(code).To(Equal(http.StatusOK))
		Expect(body).To(ContainSubstring("machines 7"))
	})

	It("keeps profiles to itself unless asked", func() {
		code, _ := get("/debug/pprof/")
		Expect(code).To(Equal(http.StatusNotFound))
	})

	When("profiling is on", func() {
		BeforeEach(func() { endpoints.Profiling = true })
		It("serves profiles", func() {
			code, _ := get("/debug/pprof/")
			Expect(code).To(Equal(http.StatusOK))
		})
	})

	It("says so when the address is taken", func() {
		taken := base[len("http://"):]
		Expect(Serve(context.Background(), taken, endpoints)).To(MatchError(ContainSubstring(taken)))
	})
})
