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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/evenkeel/evenkeel/internal/settings"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	mdplan "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
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
		Entry("a controller that is part of another one", "machinetaint is part of mcm", "--controllers=mcm,machinetaint"),
		Entry("another one", "federatedhpa runs in the binary evenkeel-workloads", "--controllers=federatedhpa"),
		Entry("no controller", "no controller is enabled", "--controllers=-mcm"),
		Entry("no accounting", `--reserve-accounting: "Inclusive" is invalid: use auto, additive or inclusive`, "--reserve-accounting=Inclusive"),
		Entry("a reserve that workload may use", "NoSchedule is missing", "--reserve-taint-effects=NoExecute"),
		Entry("an unknown effect", `--reserve-taint-effects: "PreferNoSchedule" is invalid`, "--reserve-taint-effects=NoSchedule,PreferNoSchedule"),
		Entry("an effect twice", `--reserve-taint-effects: "NoSchedule" is invalid`, "--reserve-taint-effects=NoSchedule,NoSchedule"),
		Entry("no patience with a surplus", "--surplus-patience: 0s is invalid", "--surplus-patience=0s"),
		Entry("a negative patience with machines that boot", "--reserve-boot-patience: -1s is invalid", "--reserve-boot-patience=-1s"),
		Entry("no image that waits", "--preparation-image must not be empty", "--preparation-image="),
		Entry("no machine that pulls", "--preparation-pulls: use a value above 0", "--preparation-pulls=0"),
		Entry("no machine that pulls from a registry", "--preparation-pulls-per-registry: use a value above 0", "--preparation-pulls-per-registry=0"),
		Entry("no time to pull", "--preparation-patience: use a value above 0", "--preparation-patience=0s"),
		Entry("less than no bytes", "--preparation-bytes: -1 is invalid", "--preparation-bytes=-1"),
		Entry("no address", `--bind-address: "here"`, "--bind-address=here"),
		Entry("no address of a collector", "--tracing-endpoint", "--tracing-endpoint=here"),
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

	It("let patience with machines that boot, and bytes of images, have no limit", func() {
		Expect(parsed("--reserve-boot-patience=0s", "--preparation-bytes=0").Validate()).To(Succeed())
	})

	It("of the stock binary count for the controller of MachineDeployments", func() {
		p := &process{options: parsed("--concurrent-syncs=7", "--safety-up=5", "--safety-down=3", "--autoscaler-scaledown-annotation-during-rollout=false")}
		o := p.machineOptions(&accounting{})
		Expect(o.Workers).To(Equal(7))
		Expect(o.Settings).To(Equal(mdplan.Settings{SafetyUp: 5, SafetyDown: 3}))
		p.options = parsed()
		Expect(p.machineOptions(&accounting{}).Settings.ProtectInRollout).To(BeTrue(), "by default")
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
const eventually = time.Minute

var client = http.Client{Timeout: 2 * time.Second}

var _ = It("reports why a controller could not be built, unless the process is ending", func() {
	ctx, cancel := context.WithCancel(context.Background())
	Expect(unlessEnding(ctx, io.EOF)).To(MatchError(io.EOF))
	cancel()
	Expect(unlessEnding(ctx, io.EOF)).To(Succeed())
})

var _ = Describe("Flags of the balance controller", func() {
	It("leave replicas alone by default", func() {
		s, err := parsed().Balance.settings("default")
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Mode).To(Equal(v1alpha1.BalanceOff))
		Expect(s.Enabled).To(BeTrue(), "annotations have effect")
		Expect(s.Bounds).To(BeEmpty())
		Expect(s.PoolLabels).To(Equal([]string{"worker.gardener.cloud/pool"}))
	})

	It("take bounds as cluster-autoscaler does, repeated, with commas in an excess", func() {
		o := parsed("--nodes=1:10:2:default.pool-z1", "--nodes=1:10:cpu=16,memory=64Gi:default.pool-z2", "--nodes=0:3:default.pool.z3")
		Expect(o.Validate()).To(Succeed())
		s, err := o.Balance.settings("default")
		Expect(err).NotTo(HaveOccurred())
		var texts []string
		for _, name := range []string{"pool-z1", "pool-z2", "pool.z3"} {
			texts = append(texts, s.Bounds[name].String())
		}
		Expect(texts).To(Equal([]string{"1:10:2", "1:10:cpu=16,memory=64Gi", "0:3:0"}))
	})

	It("decide what is similar", func() {
		s, err := parsed("--similar-pool-label=team", "--memory-difference-ratio=0.5", "--balancing-ignore-label=mine").Balance.settings("default")
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Similar.PoolLabels).To(Equal([]string{"team"}))
		Expect(s.Similar.MemoryRatio).To(Equal(0.5))
		Expect(s.Similar.IgnoredLabels).To(ContainElement("mine"))
		Expect(parsed("--balancing-label=team").Balance.Similar.Options().BalancingLabels).To(Equal([]string{"team"}))
	})

	It("limit Nodes that are not ready as cluster-autoscaler does, for the controller of MachineDeployments, too", func() {
		Expect(parsed().Unready.UnreadyLimits).To(Equal(pool.UnreadyLimits{Count: 3, Percentage: 45}))
		p := &process{options: parsed("--max-total-unready-percentage=12.5", "--ok-total-unready-count=7")}
		want := pool.UnreadyLimits{Count: 7, Percentage: 12.5}
		zones, err := p.zoneSettings()
		Expect(err).NotTo(HaveOccurred())
		Expect(zones.Unready).To(Equal(want))
		Expect(p.options.Reserve.settings(p, &accounting{}).Unready).To(Equal(want))
	})

	It("leave it to other flags which pods may be evicted, and whether reserves are given up, as for the controller of MachineDeployments", func() {
		p := &process{options: parsed("--skip-nodes-with-local-storage=false", "--drain-reserve")}
		zones, err := p.zoneSettings()
		Expect(err).NotTo(HaveOccurred())
		reserves := p.options.Reserve.settings(p, &accounting{})
		Expect([]pool.EvictionRule{zones.Eviction, reserves.Eviction}).To(HaveEach(pool.EvictionRule{LocalStorage: true}))
		Expect([]bool{zones.Drain, reserves.Drain}).To(HaveEach(true))
	})

	DescribeTable("are refused where they make no sense",
		func(mention string, arguments ...string) {
			Expect(parsed(arguments...).Validate()).To(MatchError(ContainSubstring(mention)))
		},
		Entry("an unknown mode", "--balance-mode", "--balance-mode=On"),
		Entry("a negative patience", "--balance-boot-patience", "--balance-boot-patience=-1s"),
		Entry("a ratio beyond 1", "--memory-difference-ratio", "--memory-difference-ratio=2"),
		Entry("labels that exclude each other", "--balancing-label", "--balancing-label=a", "--balancing-ignore-label=b"),
		Entry("bounds of another namespace", "namespace", "--nodes=1:2:3:other.pool"),
		Entry("bounds that are no bounds", "min must not be above max", "--nodes=3:2:default.pool"),
		Entry("a percentage beyond 100", "--max-total-unready-percentage", "--max-total-unready-percentage=100.1"),
		Entry("a percentage below 0", "--max-total-unready-percentage", "--max-total-unready-percentage=-1"),
		Entry("a percentage that is no number", "--max-total-unready-percentage", "--max-total-unready-percentage=NaN"),
		Entry("a negative number of Nodes", "--ok-total-unready-count", "--ok-total-unready-count=-1"),
		Entry("bounds twice", "twice", "--nodes=1:2:default.pool", "--nodes=1:3:default.pool"),
	)
})

var _ = Describe("Instant release", func() {
	It("is on, for Kubernetes' scheduler and Gardener's, unless it is switched off", func() {
		o := parsed()
		Expect(o.Release).To(Equal(ReleaseOptions{Enabled: true, Schedulers: []string{"default-scheduler", "bin-packing-scheduler"}, Cutoff: -10, Patience: 30 * time.Second}))
		Expect(parsed("--instant-release=false").Release.Enabled).To(BeFalse())
		Expect(parsed("--release-schedulers=mine").Release.Schedulers).To(Equal([]string{"mine"}))
	})

	It("prefers the smallest of similar MachineDeployments, by the flags of the balance controller", func() {
		o := parsed("--balancing-label=team", "--pool-label=pool")
		s := o.Release.settings(&o.Balance)
		Expect(s.Even).To(BeTrue())
		Expect(s.Similar.BalancingLabels).To(Equal([]string{"team"}))
		Expect(s.PoolLabels).To(Equal([]string{"pool"}))
		o = parsed("--balance-similar-node-groups=false")
		Expect(o.Release.settings(&o.Balance).Even).To(BeFalse())
	})

	It("waits for each kind that pods name, and for no other", func() {
		kind := func(r schema.GroupVersionResource) sim.Resource {
			return sim.Resource{Group: r.Group, Version: r.Version, Name: r.Resource, Kind: "Kind", Namespaced: true}
		}
		for _, served := range []schema.GroupVersionResource{target.PodGroupsResource, target.SlicesResource} {
			storm.Bubble(suite, func() {
				server := sim.New(sim.Options{Resources: []sim.Resource{kind(served)}})
				defer server.Close()
				within := func(asked func(context.Context) bool) bool {
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					defer cancel()
					return asked(ctx)
				}
				o := parsed()
				release := o.Release.options(&process{options: o}, kubernetes.NewForConfigOrDie(server.Config()), nil)
				Expect(within(release.PodGroupsServed)).To(Equal(served == target.PodGroupsResource))
				Expect(within(release.DevicesServed)).To(Equal(served == target.SlicesResource))
			})
		}
	})

	It("refuses a patience that is none", func() {
		Expect(parsed("--release-patience=0s").Validate()).To(MatchError(ContainSubstring("--release-patience")))
	})
})

var _ = Describe("Published settings", func() {
	It("are written once, by each leader in its turn, and repaired", func() {
		ctx, client := context.Background(), fake.NewClientset()
		configs := client.CoreV1().ConfigMaps("garden")
		written := func() (n int) {
			for _, action := range client.Actions() {
				if action.GetVerb() != "get" {
					n++
				}
			}
			return n
		}
		first, err := settings.Publication("garden", "first", "v1", parsed("--similar-cloud=azure").flags)
		Expect(err).NotTo(HaveOccurred())
		for range 3 {
			Expect(publish(ctx, configs, first)).To(Succeed())
		}
		Expect(written()).To(Equal(1))
		second, err := settings.Publication("garden", "second", "v1", parsed("--similar-cloud=aws").flags)
		Expect(err).NotTo(HaveOccurred())
		Expect(publish(ctx, configs, second)).To(Succeed())
		Expect(publish(ctx, configs, second)).To(Succeed())
		Expect(written()).To(Equal(2))
		is, err := configs.Get(ctx, settings.ConfigMap, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(is.Annotations).To(HaveKeyWithValue(settings.Holder, "second"))
		Expect(is.Data).To(Equal(second.Data))
		third, err := settings.Publication("garden", "third", "v1", parsed("--similar-cloud=aws").flags)
		Expect(err).NotTo(HaveOccurred())
		Expect(publish(ctx, configs, third)).To(Succeed())
		Expect(configs.Get(ctx, settings.ConfigMap, metav1.GetOptions{})).To(HaveField("Annotations", HaveKeyWithValue(settings.Holder, "third")), "with the same flags")
		Expect(configs.Delete(ctx, settings.ConfigMap, metav1.DeleteOptions{})).To(Succeed())
		Expect(publish(ctx, configs, second)).To(Succeed())
		Expect(configs.Get(ctx, settings.ConfigMap, metav1.GetOptions{})).To(HaveField("Data", second.Data))
	})

	It("are written again each time that they were deleted", func() {
		storm.Bubble(suite, func() {
			server := sim.New(sim.Options{})
			defer server.Close()
			configs := kubernetes.NewForConfigOrDie(server.ConfigFor("user")).CoreV1().ConfigMaps("garden")
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan error)
			p := &process{options: parsed("--namespace=garden"), control: server.Config()}
			go func() { ended <- p.publishSettings(ctx) }()
			time.Sleep(time.Second)
			for range 3 {
				Expect(configs.Delete(ctx, settings.ConfigMap, metav1.DeleteOptions{})).To(Succeed())
				time.Sleep(publishEvery)
			}
			stop()
			Expect(<-ended).To(Succeed())
		})
	})

	It("are those of processes whose plans a forecast shows", func() {
		for list, publishes := range map[string]bool{"*": true, "mcm": true, "nodegroup": false, "release": true, "balance": true} {
			picked, err := pickControllers([]string{list})
			Expect(err).NotTo(HaveOccurred())
			Expect((&process{controllers: picked}).publishes()).To(Equal(publishes), list)
		}
	})
})
