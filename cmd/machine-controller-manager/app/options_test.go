// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"time"

	mcmoptions "github.com/gardener/machine-controller-manager/cmd/machine-controller-manager/app/options"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

func parsed(arguments ...string) *Options {
	o := NewOptions()
	ExpectWithOffset(1, o.Flags().Parse(arguments)).To(Succeed())
	return o
}

var _ = Describe("Flags", func() {
	It("include every flag of the stock binary, by name, default, type and shorthand", func() {
		stock := pflag.NewFlagSet("stock", pflag.ContinueOnError)
		mcmoptions.NewMCMServer().AddFlags(stock)
		ours := NewOptions().Flags()
		count := 0
		stock.VisitAll(func(want *pflag.Flag) {
			count++
			have := ours.Lookup(want.Name)
			Expect(have).NotTo(BeNil(), want.Name)
			Expect(have.DefValue).To(Equal(want.DefValue), want.Name)
			Expect(have.Value.Type()).To(Equal(want.Value.Type()), want.Name)
			Expect(have.Shorthand).To(Equal(want.Shorthand), want.Name)
			Expect(have.NoOptDefVal).To(Equal(want.NoOptDefVal), want.Name)
		})
		Expect(count).To(BeNumerically(">", 20))
	})

	It("include what the stock binary itself lists, which is built for this", func() {
		stock := GinkgoT().TempDir() + "/stock"
		out, err := exec.Command("go", "build", "-o", stock, "github.com/gardener/machine-controller-manager/cmd/machine-controller-manager").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		help, _ := exec.Command(stock, "--help").CombinedOutput()
		names := regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`).FindAllSubmatch(help, -1)
		Expect(len(names)).To(BeNumerically(">", 20))
		ours := NewOptions().Flags()
		for _, name := range names {
			Expect(ours.Lookup(string(name[1]))).NotTo(BeNil(), string(name[1]))
		}
	})

	It("may be written with underscores", func() {
		Expect(parsed("--safety_up=5").SafetyOptions.SafetyUp).To(BeEquivalentTo(5))
	})

	It("are explained", func() {
		var help bytes.Buffer
		PrintUsage(&help, NewOptions().Flags())
		Expect(help.String()).To(And(ContainSubstring("--controllers"), ContainSubstring("--bind-address"), ContainSubstring("--safety-up")))
		Expect(Version()).To(HavePrefix("evenkeel machine-controller-manager "))
	})
})

var _ = Describe("Options", func() {
	It("are valid by default", func() {
		Expect(parsed().Validate()).To(Succeed())
	})

	DescribeTable("are refused with a word about each mistake",
		func(mention string, arguments ...string) {
			Expect(parsed(arguments...).Validate()).To(MatchError(ContainSubstring(mention)))
		},
		Entry("an unknown controller", `unknown controller "balancr"; known: mcm`, "--controllers=*,-balancr"),
		Entry("a controller of another binary", "balancer runs in the binary evenkeel-workloads", "--controllers=*,balancer"),
		Entry("another one", "federatedhpa runs in the binary evenkeel-workloads", "--controllers=federatedhpa"),
		Entry("no controller", "no controller is enabled", "--controllers=-mcm"),
		Entry("no accounting", `--reserve-accounting: "Inclusive" is invalid: use auto, additive or inclusive`, "--reserve-accounting=Inclusive"),
		Entry("no address", `--bind-address: "here"`, "--bind-address=here"),
		Entry("a lock that is gone from Kubernetes", "--leader-elect-resource-lock", "--leader-elect-resource-lock=configmaps"),
		Entry("a lease shorter than its renewal", "--leader-elect-lease-duration", "--leader-elect-lease-duration=5s"),
		Entry("a lease that is longer than its renewal only by a part of a second, which a Lease does not keep", "--leader-elect-lease-duration", "--leader-elect-lease-duration=10900ms"),
		Entry("no namespace", "--namespace", "--namespace="),
		Entry("what the stock binary refuses", "concurrent syncs", "--concurrent-syncs=0"),
		Entry("no cluster at all", "--control-kubeconfig", "--target-kubeconfig=none"),
		Entry("the second of two mistakes", "--namespace", "--concurrent-syncs=0", "--namespace="),
	)

	It("do not mind the lease if there is no election", func() {
		Expect(parsed("--leader-elect=false", "--leader-elect-lease-duration=5s").Validate()).To(Succeed())
	})

	DescribeTable("name the lease",
		func(want string, arguments ...string) {
			Expect(parsed(arguments...).leaseName()).To(Equal(want))
		},
		Entry("of the stock binary by default", name),
		Entry("of the stock binary with its controllers", name, "--controllers=mcm"),
		Entry("another one without these, which may work beside them", machinesLease, "--controllers=nodegroup,release,balance,reserves"),
		Entry("where they are left out", machinesLease, "--controllers=*,-mcm"),
	)

	DescribeTable("say where to serve",
		func(inPod bool, want string, arguments ...string) {
			old, was := os.LookupEnv("KUBERNETES_SERVICE_HOST")
			DeferCleanup(func() {
				if was {
					Expect(os.Setenv("KUBERNETES_SERVICE_HOST", old)).To(Succeed())
				} else {
					Expect(os.Unsetenv("KUBERNETES_SERVICE_HOST")).To(Succeed())
				}
			})
			Expect(os.Unsetenv("KUBERNETES_SERVICE_HOST")).To(Succeed())
			if inPod {
				Expect(os.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")).To(Succeed())
			}
			Expect(parsed(arguments...).endpoint()).To(Equal(want))
		},
		Entry("on loopback", false, "127.0.0.1:10258"),
		Entry("to the kubelet, in a pod", true, "0.0.0.0:10258"),
		Entry("where the stock flag says", false, "0.0.0.0:10258", "--address=0.0.0.0"),
		Entry("where our flag says, above all", true, "[::1]:99", "--address=0.0.0.0", "--bind-address=::1", "--port=99"),
	)
})

var _ = Describe("Picking controllers", func() {
	DescribeTable("is done as in kube-controller-manager",
		func(list []string, want ...string) {
			all := controllers
			DeferCleanup(func() { controllers = all })
			controllers = []controller{{name: "a"}, {name: "b"}, {name: "c"}}
			picked, err := pickControllers(list)
			Expect(err).NotTo(HaveOccurred())
			names := []string{}
			for _, c := range picked {
				names = append(names, c.name)
			}
			Expect(names).To(Equal(want))
		},
		Entry("all", []string{"*"}, "a", "b", "c"),
		Entry("one", []string{"b"}, "b"),
		Entry("all but one", []string{"*", "-b"}, "a", "c"),
		Entry("all but one, in the other order", []string{"-b", "*"}, "a", "c"),
		Entry("the first word counts", []string{"b", "-b", "c", "-a", "a"}, "b", "c"),
	)
})

// eventually is how long a test waits for what takes milliseconds.
const eventually = 20 * time.Second

var client = http.Client{Timeout: 2 * time.Second}

var _ = It("reports why a controller could not be built, unless the process is ending", func() {
	ctx, cancel := context.WithCancel(context.Background())
	Expect(unlessEnding(ctx, io.EOF)).To(MatchError(io.EOF))
	cancel()
	Expect(unlessEnding(ctx, io.EOF)).To(Succeed())
})
