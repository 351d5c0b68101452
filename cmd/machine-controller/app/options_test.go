// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"

	mcmoptions "github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

func parse(arguments ...string) *Options {
	GinkgoHelper()
	options := NewOptions()
	Expect(options.Flags().Parse(append([]string{"--control-kubeconfig=here"}, arguments...))).To(Succeed())
	return options
}

var _ = Describe("Flags", func() {
	It("are those of a stock machine-controller, with the same defaults", func() {
		stock, ours := pflag.NewFlagSet("stock", pflag.ContinueOnError), NewOptions().Flags()
		mcmoptions.NewMCServer().AddFlags(stock)
		count := 0
		stock.VisitAll(func(flag *pflag.Flag) {
			count++
			Expect(ours.Lookup(flag.Name)).NotTo(BeNil(), flag.Name)
			Expect(ours.Lookup(flag.Name).DefValue).To(Equal(flag.DefValue), flag.Name)
		})
		Expect(count).To(BeNumerically(">", 30))
	})

	It("are explained", func() {
		var text strings.Builder
		flags := NewOptions().Flags()
		PrintUsage(&text, flags)
		flags.VisitAll(func(flag *pflag.Flag) { Expect(text.String()).To(ContainSubstring("--" + flag.Name)) })
	})

	It("are valid by default", func() { Expect(parse().Validate()).To(Succeed()) })

	DescribeTable("are refused", func(hint string, arguments ...string) {
		Expect(parse(arguments...).Validate()).To(MatchError(ContainSubstring(hint)))
	},
		Entry("no namespace", "--namespace", "--namespace="),
		Entry("no address", `"here"`, "--bind-address=here"),
		Entry("no port", "port", "--port=70000"),
		Entry("another lock", "endpoints", "--leader-elect-resource-lock=endpoints"),
		Entry("a lease shorter than its renewal", "longer", "--leader-elect-lease-duration=5s"),
		Entry("a lease that is longer than its renewal only by a part of a second, which a Lease does not keep", "longer", "--leader-elect-lease-duration=10900ms"),
		Entry("no cluster at all", "--control-kubeconfig", "--control-kubeconfig=", "--target-kubeconfig=none"),
	)

	It("accept a lease that is never taken", func() {
		Expect(parse("--leader-elect=false", "--leader-elect-lease-duration=5s").Validate()).To(Succeed())
	})

	DescribeTable("decide where health is served", func(pod bool, expected string, arguments ...string) {
		if pod {
			GinkgoT().Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
		} else {
			GinkgoT().Setenv("KUBERNETES_SERVICE_HOST", "")
		}
		Expect(parse(arguments...).endpoint()).To(Equal(expected))
	},
		Entry("loopback by default", false, "127.0.0.1:10259"),
		Entry("every address of a pod", true, "0.0.0.0:10259"),
		Entry("where the stock flag says", false, "10.1.1.1:1", "--address=10.1.1.1", "--port=1"),
		Entry("where ours says", true, "127.0.0.1:10259", "--bind-address=127.0.0.1", "--address=10.1.1.1"),
	)
})
