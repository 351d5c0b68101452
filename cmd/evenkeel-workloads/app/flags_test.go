// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"

	"github.com/evenkeel/evenkeel/internal/daemon"
	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/test/collector"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
)

var leases = coordinationv1.SchemeGroupVersion.WithResource("leases")

// replicasOf is how many replicas a Deployment should have.
func replicasOf(server *sim.Server, deployment string) func() int64 {
	return func() int64 {
		n, _, _ := unstructured.NestedInt64(server.Get(appsv1.SchemeGroupVersion.WithResource("deployments"), fixture.Namespace, deployment).Object, "spec", "replicas")
		return n
	}
}

var _ = Describe("The binary", Serial, func() {
	It("takes the lease in --namespace, as long as --leader-elect-lease-duration, and releases it", func() {
		server := withoutMachines()
		r := start(server, balancerName, "--namespace=elsewhere", "--leader-elect-lease-duration=20s")
		Eventually(func() any { return server.Get(leases, "elsewhere", balancerName) }, eventually).ShouldNot(BeNil())
		lease := func() *unstructured.Unstructured { return server.Get(leases, "elsewhere", balancerName) }
		seconds, _, _ := unstructured.NestedInt64(lease().Object, "spec", "leaseDurationSeconds")
		Expect(seconds).To(BeEquivalentTo(20))
		r.Stop()
		Eventually(r.Ended, 5*time.Second).Should(Receive(BeNil()))
		holder, _, _ := unstructured.NestedString(lease().Object, "spec", "holderIdentity")
		Expect(holder).To(BeEmpty())
	})

	It("works without a lease with --leader-elect=false", func() {
		server := withoutMachines()
		createShop(server, 1, func(*v1alpha1.Balancer) {})
		start(server, balancerName, "--leader-elect=false")
		Eventually(replicasOf(server, "a"), eventually).Should(BeEquivalentTo(5))
		Expect(server.Objects(leases)).To(BeEmpty())
	})

	It("ends when the lease cannot be renewed for --leader-elect-renew-deadline", func() {
		server := withoutMachines()
		r := start(server, balancerName, "--leader-elect-renew-deadline=1s", "--leader-elect-retry-period=200ms")
		Eventually(r.HolderOf(balancerName), eventually).ShouldNot(BeEmpty())
		server.Trouble("leases", sim.Trouble{Reads: 1, Writes: 1, Only: []sim.Answer{sim.Forbidden}}, "workloads")
		Eventually(r.Ended, 8*time.Second).Should(Receive(MatchError(daemon.ErrLost)))
	})

	It("takes turns: the second one waits, ready, and works when the first one ends", func() {
		server := withoutMachines()
		first := start(server, balancerName)
		Eventually(first.HolderOf(balancerName), eventually).ShouldNot(BeEmpty())
		holder := first.HolderOf(balancerName)()
		second := start(server, balancerName, "--leader-elect-retry-period=200ms")
		Eventually(second.Status("/readyz"), eventually).Should(Equal(http.StatusOK))
		Expect(second.Status("/healthz")()).To(Equal(http.StatusOK))
		Expect(first.HolderOf(balancerName)()).To(Equal(holder))
		first.Stop()
		Eventually(second.HolderOf(balancerName), eventually).ShouldNot(BeElementOf("", holder))
		createShop(server, 1, func(*v1alpha1.Balancer) {})
		Eventually(replicasOf(server, "a"), eventually).Should(BeEquivalentTo(5))
	})

	It("sends no more requests than --kube-api-qps and --kube-api-burst allow", func() {
		server := withoutMachines()
		createShop(server, 1, func(*v1alpha1.Balancer) {})
		start(server, balancerName, "--kube-api-qps=1", "--kube-api-burst=1")
		Eventually(replicasOf(server, "a"), eventually).Should(BeEquivalentTo(5))
		Eventually(replicasOf(server, "b"), eventually).Should(BeEquivalentTo(4))
		var at []time.Time
		for _, w := range server.Writes() {
			if w.User == "workloads" && w.Resource == "deployments" {
				at = append(at, w.Time)
			}
		}
		Expect(at).To(HaveLen(2))
		Expect(at[1].Sub(at[0])).To(BeNumerically(">", 800*time.Millisecond))
	})

	It("serves at --bind-address and --port, with --profiling profiles, too", func() {
		r := start(withoutMachines(), balancerName, "--bind-address=127.0.0.2", "--profiling")
		elsewhere := *r
		elsewhere.URL = strings.Replace(r.URL, "127.0.0.1", "127.0.0.2", 1)
		Eventually(elsewhere.Status("/healthz"), eventually).Should(Equal(http.StatusOK))
		Expect(elsewhere.Status("/debug/pprof/")()).To(Equal(http.StatusOK))
		Expect(r.Status("/healthz")()).To(BeZero())
		plain := start(withoutMachines(), balancerName)
		Eventually(plain.Status("/healthz"), eventually).Should(Equal(http.StatusOK))
		Expect(plain.Status("/debug/pprof/")()).To(Equal(http.StatusNotFound))
	})

	It("serves metrics at --secure-metrics-address alone, with the certificate of --secure-metrics-*", func() {
		cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
		Expect(err).NotTo(HaveOccurred())
		folder := GinkgoT().TempDir()
		certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
		Expect(os.WriteFile(certFile, cert, 0o600)).To(Succeed())
		Expect(os.WriteFile(keyFile, key, 0o600)).To(Succeed())
		own, err := certutil.ParseCertsPEM(cert)
		Expect(err).NotTo(HaveOccurred())
		address := running.FreeAddress()
		r := start(withoutMachines(), balancerName, "--secure-metrics-address="+address, "--secure-metrics-cert-file="+certFile, "--secure-metrics-key-file="+keyFile)
		Eventually(r.Status("/healthz"), eventually).Should(Equal(http.StatusOK))
		Expect(r.Status("/metrics")()).To(Equal(http.StatusNotFound))
		Eventually(func(g Gomega) {
			connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
			g.Expect(err).NotTo(HaveOccurred())
			defer connection.Close()
			g.Expect(connection.ConnectionState().PeerCertificates[0].Equal(own[0])).To(BeTrue())
		}, eventually).Should(Succeed())
	})

	It("sends traces to --tracing-endpoint, as many as --tracing-samples-per-million says", func() {
		for samples, are := range map[int]bool{1_000_000: true, 0: false} {
			c, err := collector.Start()
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(c.Stop)
			server := withoutMachines()
			createShop(server, 1, func(*v1alpha1.Balancer) {})
			r := start(server, balancerName, "--tracing-endpoint="+c.Endpoint(), fmt.Sprint("--tracing-samples-per-million=", samples))
			Eventually(replicasOf(server, "a"), eventually).Should(BeEquivalentTo(5))
			r.Stop()
			Eventually(r.Ended, eventually).Should(Receive(BeNil()))
			Expect(len(c.Spans()) > 0).To(Equal(are), "%d", samples)
		}
	})

	It("says what is wrong with --kubeconfig", func(ctx SpecContext) {
		Expect(Run(ctx, parsed("--kubeconfig=/nowhere"))).To(MatchError(ContainSubstring("/nowhere")))
	})

	It("runs both --controllers in one process, with the lease of the binary", func() {
		server := sim.New(sim.Options{})
		r := start(server, "balancer,federatedhpa")
		Eventually(r.HolderOf(Name), eventually).ShouldNot(BeEmpty())
	})
})
