// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"crypto/tls"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("Secure metrics", Serial, func() {
	It("are served apart from the health of the process, and not without a token", func() {
		server := sim.New(sim.Options{})
		kubeconfig := running.Kubeconfig(server, "mcm")
		address := running.FreeAddress()
		r := start(server, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig=none", "--secure-metrics-address="+address)
		Eventually(r.Status("/healthz"), eventually).Should(Equal(http.StatusOK))
		Expect(r.Status("/metrics")()).To(Equal(http.StatusNotFound))
		stranger := http.Client{Timeout: client.Timeout, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		Eventually(func() (int, error) {
			response, err := stranger.Get("https://" + address + "/metrics")
			if err != nil {
				return 0, err
			}
			return response.StatusCode, response.Body.Close()
		}, eventually).Should(Equal(http.StatusUnauthorized))
		r.Stop()
		Eventually(r.Ended, eventually).Should(Receive(BeNil()))
	})

	It("are served beside the health of the process where nothing else is asked for, as the stock binary does", func() {
		server := sim.New(sim.Options{})
		r := start(server, "--control-kubeconfig="+running.Kubeconfig(server, "mcm"), "--target-kubeconfig=none")
		Eventually(r.Status("/metrics"), eventually).Should(Equal(http.StatusOK))
		r.Stop()
		Eventually(r.Ended, eventually).Should(Receive(BeNil()))
	})

	DescribeTable("refuse flags that make no sense",
		func(mention string, arguments ...string) {
			Expect(parsed(arguments...).Validate()).To(MatchError(ContainSubstring(mention)))
		},
		Entry("no port", "--secure-metrics-address", "--secure-metrics-address=127.0.0.1"),
		Entry("half a certificate", "belong together", "--secure-metrics-address=127.0.0.1:1", "--secure-metrics-key-file=a"),
		Entry("a certificate for nothing", "needs --secure-metrics-address", "--secure-metrics-cert-file=a", "--secure-metrics-key-file=a"),
	)
})
