// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Options", func() {
	It("are valid by default", func() {
		Expect(parsed().Validate()).To(Succeed())
	})

	It("are explained", func() {
		var help bytes.Buffer
		PrintUsage(&help, NewOptions().Flags())
		Expect(help.String()).To(And(ContainSubstring("--kubeconfig"), ContainSubstring("--balancer-kinds"), ContainSubstring("--federation-registry"), ContainSubstring("-v, --v")))
		Expect(Version()).To(HavePrefix("evenkeel evenkeel-workloads "))
	})

	DescribeTable("are refused with a word about each mistake",
		func(mention string, arguments ...string) {
			Expect(parsed(arguments...).Validate()).To(MatchError(ContainSubstring(mention)))
		},
		Entry("an unknown controller", `unknown controller "mcm"; known: balancer, federatedhpa`, "--controllers=balancer,mcm"),
		Entry("no controller", "--controllers must not be empty", "--controllers="),
		Entry("no kind", "is not a kind", "--balancer-kinds=.apps"),
		Entry("no address", `--bind-address: "here"`, "--bind-address=here"),
		Entry("no address of a collector", "--tracing-endpoint", "--tracing-endpoint=here"),
		Entry("no namespace", "--namespace", "--namespace="),
		Entry("the second of two mistakes", "--namespace", "--controllers=mcm", "--namespace="),
		Entry("a lease shorter than its renewal", "--leader-elect-lease-duration", "--leader-elect-lease-duration=5s"),
		Entry("half a certificate", "belong together", "--secure-metrics-address=127.0.0.1:1", "--secure-metrics-key-file=a"),
		Entry("no clusters", "use 1 or more", "--federation-max-clusters=0"),
		Entry("leave for what is not known", `"exec" is unknown`, "--federation-allow-in-kubeconfigs=http,exec"),
		Entry("no such registry", "use secrets or clusterprofiles", "--federation-registry=karmada"),
		Entry("programs for what is no profile", "needs --federation-registry=clusterprofiles", "--clusterprofile-provider-file=/dev/null"),
		Entry("no file of programs", "no such file", "--federation-registry=clusterprofiles", "--clusterprofile-provider-file=/nowhere"),
		Entry("a file of something else", "read providers", "--federation-registry=clusterprofiles", "--clusterprofile-provider-file=federatedhpa.go"),
		Entry("no time to answer", "use at least 100ms", "--federation-request-timeout=0s"),
		Entry("no time between probes", "use at least 100ms", "--federation-probe-period=-1s"),
	)

	DescribeTable("name the lease",
		func(want string, arguments ...string) {
			Expect(parsed(arguments...).leaseName()).To(Equal(want))
		},
		Entry("of the binary by default", Name),
		Entry("of the only controller", "balancer", "--controllers=balancer"),
		Entry("of the only controller", "federatedhpa", "--controllers=federatedhpa"),
		Entry("of the binary with both", Name, "--controllers=federatedhpa,balancer"),
	)

	DescribeTable("say where to serve",
		func(inPod bool, want string, arguments ...string) {
			host := ""
			if inPod {
				host = "10.0.0.1"
			}
			GinkgoT().Setenv("KUBERNETES_SERVICE_HOST", host)
			Expect(parsed(arguments...).endpoint()).To(Equal(want))
		},
		Entry("on loopback", false, "127.0.0.1:10262"),
		Entry("to the kubelet, in a pod", true, "0.0.0.0:10262"),
		Entry("where a flag says", true, "[::1]:99", "--bind-address=::1", "--port=99"),
	)
})
