// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

func TestSettings(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Settings")
}

func parsed(arguments ...string) *Similar {
	GinkgoHelper()
	s, flags := &Similar{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.AddFlags(flags)
	Expect(flags.Parse(arguments)).To(Succeed())
	return s
}

var _ = Describe("What is similar", func() {
	It("is by default what cluster-autoscaler has", func() {
		o := parsed().Options()
		Expect(o).To(Equal(similar.Defaults()))
		Expect(parsed().Validate()).To(Succeed())
	})

	It("has every option in a flag", func() {
		o := parsed("--memory-difference-ratio=0.1", "--max-allocatable-difference-ratio=0.2", "--max-free-difference-ratio=0.3",
			"--balancing-ignore-label=a,b", "--balancing-label=c", "--similar-pool-label=d", "--similar-pool-label=e").Options()
		Expect(o).To(Equal(similar.Options{
			MemoryRatio: 0.1, AllocatableRatio: 0.2, FreeRatio: 0.3, IgnoredLabels: []string{"a", "b"}, BalancingLabels: []string{"c"}, PoolLabels: []string{"d", "e"},
		}))
	})

	It("adds what is known of a cloud to what is given", func() {
		aws := parsed("--similar-cloud=aws", "--balancing-ignore-label=mine").Options()
		Expect(aws.IgnoredLabels).To(Equal(append([]string{"mine"}, similar.AWSLabels()...)))
		Expect(aws.PoolLabels).To(BeEmpty())
		azure := parsed("--similar-cloud=azure", "--similar-pool-label=mine").Options()
		Expect(azure.IgnoredLabels).To(Equal(similar.AzureLabels()))
		Expect(azure.PoolLabels).To(Equal(append([]string{"mine"}, similar.AzurePoolLabels()...)))
	})

	It("is refused where it makes no sense", func() {
		Expect(parsed("--similar-cloud=moon").Validate()).To(MatchError(ContainSubstring("--similar-cloud")))
		Expect(parsed("--similar-cloud=aws", "--balancing-label=a").Validate()).To(HaveOccurred())
	})
})

var _ = DescribeTable("A reserve is counted by a flag",
	func(mode string, gardener bool, labels map[string]string, wanted v1alpha1.Accounting) {
		d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
		Expect(CheckAccounting(mode)).To(Succeed())
		Expect(Accounting(mode, gardener, d)).To(Equal(wanted))
	},
	Entry(nil, AccountingInclusive, false, nil, v1alpha1.AccountingInclusive),
	Entry(nil, AccountingAdditive, true, map[string]string{pool.WorkerPoolLabel: "p"}, v1alpha1.AccountingAdditive),
	Entry(nil, AccountingAuto, true, map[string]string{pool.WorkerPoolLabel: "p"}, v1alpha1.AccountingInclusive),
	Entry(nil, AccountingAuto, true, nil, v1alpha1.AccountingAdditive),
	Entry(nil, AccountingAuto, false, map[string]string{pool.WorkerPoolLabel: "p"}, v1alpha1.AccountingAdditive),
)

var _ = DescribeTable("Pods that prevent a drain need not", func(want pool.EvictionRule, arguments ...string) {
	e, flags := &Eviction{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	e.AddFlags(flags)
	Expect(flags.Parse(arguments)).To(Succeed())
	Expect(e.Rule()).To(Equal(want))
},
	Entry("but do by default", pool.EvictionRule{}),
	Entry("if they are the system's", pool.EvictionRule{SystemPods: true}, "--skip-nodes-with-system-pods=false"),
	Entry("if they have local storage", pool.EvictionRule{LocalStorage: true}, "--skip-nodes-with-local-storage=false"),
)

var _ = DescribeTable("How many Nodes may be not ready", func(valid bool, arguments ...string) {
	u, flags := &Unready{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	u.AddFlags(flags)
	Expect(flags.Parse(arguments)).To(Succeed())
	Expect(u.Validate() == nil).To(Equal(valid))
},
	Entry("is valid by default", true),
	Entry("may be none", true, "--max-total-unready-percentage=0", "--ok-total-unready-count=0"),
	Entry("may be all", true, "--max-total-unready-percentage=100"),
	Entry("is a number", false, "--max-total-unready-percentage=NaN"),
	Entry("is not more than all", false, "--max-total-unready-percentage=100.5"),
	Entry("is not a negative percentage", false, "--max-total-unready-percentage=-1"),
	Entry("is not a negative count", false, "--ok-total-unready-count=-1"),
)

var _ = Describe("Published settings", func() {
	// set has all flags that are published, most of them as words.
	set := func(arguments ...string) *pflag.FlagSet {
		GinkgoHelper()
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		new(Similar).AddFlags(flags)
		flags.StringArray("nodes", nil, "")
		for _, name := range Names() {
			if flags.Lookup(name) == nil {
				flags.String(name, "default", "")
			}
		}
		Expect(flags.Parse(arguments)).To(Succeed())
		return flags
	}
	publication := func(arguments ...string) *corev1.ConfigMap {
		GinkgoHelper()
		config, err := Publication("garden", "me", "v0.1.0", set(arguments...))
		Expect(err).NotTo(HaveOccurred())
		return config
	}

	It("become the flags of who reads them, lists with commas in their items included", func() {
		reader := set()
		Expect(Adopt(reader, publication("--nodes=1:9:cpu=16,memory=64Gi:garden.a", "--nodes=0:3:garden.b", "--similar-cloud=azure", "--balancing-ignore-label=a,b"))).To(BeEmpty())
		Expect(reader.GetStringArray("nodes")).To(Equal([]string{"1:9:cpu=16,memory=64Gi:garden.a", "0:3:garden.b"}))
		Expect(reader.GetStringSlice("balancing-ignore-label")).To(Equal([]string{"a", "b"}))
		Expect(reader.GetString("similar-cloud")).To(Equal("azure"))
		Expect(reader.GetString("safety-up")).To(Equal("default"))
	})

	It("do not take the place of what the reader says", func() {
		reader := set("--similar-cloud=aws", "--nodes=1:2:garden.c")
		Expect(Adopt(reader, publication("--similar-cloud=azure", "--nodes=1:9:garden.a"))).To(BeEmpty())
		Expect(reader.GetString("similar-cloud")).To(Equal("aws"))
		Expect(reader.GetStringArray("nodes")).To(Equal([]string{"1:2:garden.c"}))
	})

	It("may be of another version, or of a stranger, and set nothing but these flags", func() {
		reader := set()
		reader.String("kubeconfig", "mine", "")
		config := publication()
		config.Data[flagsKey] = `{"kubeconfig": ["theirs"], "later": ["x"], "similar-cloud": ["aws"]}`
		Expect(Adopt(reader, config)).To(Equal([]string{"kubeconfig", "later"}))
		Expect(reader.GetString("kubeconfig")).To(Equal("mine"))
		for _, text := range []string{"", "no JSON", `{"memory-difference-ratio": ["x"]}`, `{"similar-cloud": []}`, `{"a":["` + strings.Repeat("x", mostBytes) + `"]}`} {
			config.Data[flagsKey] = text
			_, err := Adopt(set(), config)
			Expect(err).To(MatchError(ContainSubstring(ConfigMap)))
		}
	})
})
