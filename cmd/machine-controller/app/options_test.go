// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	mcmoptions "github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/test/sim"
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

	It("limit the requests of the machine controller, and not those of the machines", func() {
		p := &process{options: parse("--kube-api-qps=7", "--kube-api-burst=9")}
		limited, machines := p.behind(&rest.Config{}), p.unlimited(&rest.Config{})
		Expect(limited).To(And(HaveField("QPS", BeEquivalentTo(7)), HaveField("Burst", 9)))
		Expect(machines.QPS).To(BeNumerically("<", 0))
	})

	It("let it read Secrets in its own namespace alone", func() {
		server := sim.New(sim.Options{})
		defer server.Close()
		var elsewhere atomic.Int64
		server.LatencyOf(func(r sim.Request) (before, after time.Duration) {
			if r.Resource == "secrets" && r.Namespace != "garden" {
				elsewhere.Add(1)
			}
			return 0, 0
		})
		p, config := &process{options: parse("--namespace=garden")}, server.Config()
		f := p.factories(clients{machine: versioned.NewForConfigOrDie(config), control: kubernetes.NewForConfigOrDie(config)})
		f.machine.Machine().V1alpha1().Machines().Informer()
		f.machine.Machine().V1alpha1().MachineClasses().Informer()
		f.control.Core().V1().Secrets().Informer()
		ctx, end := context.WithTimeout(context.Background(), time.Minute)
		f.startAll(ctx)
		Expect(f.filled(ctx)).To(BeTrue())
		end()
		f.awaitStopped()
		Expect(elsewhere.Load()).To(BeZero())
	})

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
