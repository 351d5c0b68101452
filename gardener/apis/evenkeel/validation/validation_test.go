// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"encoding/json"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/v1alpha1"
	"github.com/evenkeel/evenkeel/gardener/apis/evenkeel/validation"
)

func TestValidation(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Validation of EvenkeelConfig")
}

// workers of the Shoot: shop may grow, fixed may not, and marked has annotations.
var workers = []gardencorev1beta1.Worker{
	{Name: "shop", Minimum: 3, Maximum: 9, Zones: []string{"a", "b", "c"}},
	{Name: "fixed", Minimum: 4, Maximum: 4},
	{Name: "marked", Minimum: 1, Maximum: 5, Annotations: map[string]string{machine.PoolExcessAnnotation: "1", machine.BalanceAnnotation: "Off"}},
}

// longest is an excess of as many characters as are possible.
var longest = strings.Repeat("a", 61) + "=1," + strings.Repeat("b", 61) + "=1," + strings.Repeat("c", 61) + "=1," + strings.Repeat("d", 62) + "=1"

// validate reads the fields of a configuration as a user writes them.
func validate(text string, workers []gardencorev1beta1.Worker) field.ErrorList {
	GinkgoHelper()
	raw, err := yaml.YAMLToJSON([]byte("apiVersion: " + v1alpha1.APIVersion + "\nkind: " + v1alpha1.Kind + "\n" + text))
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Valid(raw)).To(BeTrue())
	c, err := v1alpha1.Decode(raw)
	Expect(err).NotTo(HaveOccurred())
	return validation.Validate(c, &gardencorev1beta1.ShootSpec{Provider: gardencorev1beta1.Provider{Workers: workers}}, field.NewPath("providerConfig"))
}

var _ = Describe("Validation", func() {
	It("reports the first of very many errors", func() {
		names := strings.Repeat("{name: nope, excess: 1}, ", 10_000)
		Expect(len(validate("pools: ["+strings.TrimSuffix(names, ", ")+"]", workers))).To(And(BeNumerically(">=", 20), BeNumerically("<", 30)))
	})

	DescribeTable("accepts", func(text string) { Expect(validate(text, workers)).To(BeEmpty()) },
		Entry("no pools", ""),
		Entry("a count", "pools: [{name: shop, excess: 2}]"),
		Entry("a count as text", "pools: [{name: shop, excess: '2'}]"),
		Entry("all that the worker may have", "pools: [{name: shop, excess: 9}]"),
		Entry("a percentage", "pools: [{name: shop, excess: 5%}]"),
		Entry("resources", "pools: [{name: shop, excess: 'cpu=16,memory=64Gi'}]"),
		Entry("the larger of two", "pools: [{name: shop, excess: 'max(1,5%)'}]"),
		Entry("no reserve", "pools: [{name: shop, excess: 0}]"),
		Entry("no reserve where there is no room for one", "pools: [{name: fixed, excess: 0}]"),
		Entry("the bounds of the worker", "pools: [{name: shop, bounds: '3:9:4'}]"),
		Entry("narrower bounds", "pools: [{name: shop, bounds: '4:7:10%'}]"),
		Entry("balance alone", "pools: [{name: fixed, balance: Continuous}]"),
		Entry("balance beside excess", "pools: [{name: shop, excess: 1, balance: ScaleUp}]"),
		Entry("several pools", "pools: [{name: shop, excess: 1}, {name: fixed, excess: 0}]"),
		Entry("additive accounting", "accounting: Additive"),
		Entry("the fork", "autoscaler: fork"),
		Entry("the unmodified cluster-autoscaler", "autoscaler: upstream"),
		Entry("capacity buffers on a pool with a reserve", "capacityBuffers: true\npools: [{name: shop, excess: 1}]"),
		Entry("capacity buffers on a pool without another reserve", "capacityBuffers: true\npools: [{name: shop, excess: 0}]"),
		Entry("capacity buffers within bounds", "capacityBuffers: true\npools: [{name: shop, bounds: '4:7:0'}]"),
		Entry("no capacity buffers", "capacityBuffers: false"),
	)

	DescribeTable("refuses, with what to write,", func(text, at, message string) {
		Expect(validate(text, workers)).To(ConsistOf(And(HaveField("Field", "providerConfig."+at), HaveField("Detail", ContainSubstring(message)))))
	},
		Entry("a pool without a name", "pools: [{excess: 2}]", "pools[0].name", "write one of shop, fixed, marked"),
		Entry("an unknown pool", "pools: [{name: shop, excess: 1}, {name: shpo, excess: 2}]", "pools[1].name", "write one of shop, fixed, marked"),
		Entry("a pool twice", "pools: [{name: shop, excess: 2}, {name: shop, excess: 2}]", "pools[1].name", "write each pool once"),
		Entry("a pool that requests nothing", "pools: [{name: shop}]", "pools[0].excess", "write excess, for example 2 or 10%, or remove the pool"),
		Entry("excess and bounds", "pools: [{name: shop, excess: 2, bounds: '3:9:2'}]", "pools[0]", "write excess, or bounds"),
		Entry("a negative excess", "pools: [{name: shop, excess: -1}]", "pools[0].excess", `write a count ("2")`),
		Entry("an excess with a space", "pools: [{name: shop, excess: '5 %'}]", "pools[0].excess", "without spaces"),
		Entry("an excess that is no number", "pools: [{name: shop, excess: some}]", "pools[0].excess", `a percentage of replicas ("5%")`),
		Entry("an empty excess", "pools: [{name: shop, excess: ''}]", "pools[0].excess", `write a count ("2")`),
		Entry("a resource without an amount", "pools: [{name: shop, excess: 'cpu='}]", "pools[0].excess", `resources ("cpu=16,memory=64Gi"`),
		Entry("a maximum of one amount", "pools: [{name: shop, excess: 'max(1)'}]", "pools[0].excess", `the largest of these ("max(1,5%)")`),
		Entry("an excess that leaves no characters for minimum and maximum", "pools: [{name: shop, excess: '"+longest+"'}]", "pools[0].excess", "at most 256 characters"),
		Entry("an excess beyond the maximum", "pools: [{name: shop, excess: 10}]", "pools[0].excess", "write at most 9, or raise the maximum"),
		Entry("one of several amounts beyond the maximum", "pools: [{name: shop, excess: 'max(10,5%)'}]", "pools[0].excess", "write at most 9"),
		Entry("an excess where minimum and maximum are equal", "pools: [{name: fixed, excess: 1}]", "pools[0].excess", "raise the maximum, or write 0"),
		Entry("a percentage where minimum and maximum are equal", "pools: [{name: fixed, excess: 10%}]", "pools[0].excess", "raise the maximum, or write 0"),
		Entry("bounds that are none", "pools: [{name: shop, bounds: '3-9'}]", "pools[0].bounds", "write min:max or min:max:excess"),
		Entry("bounds in the wrong order", "pools: [{name: shop, bounds: '9:3:1'}]", "pools[0].bounds", "min must not be above max"),
		Entry("bounds without an excess", "pools: [{name: shop, bounds: '3:9'}]", "pools[0].bounds", "write minimum, maximum and excess, for example 3:9:1"),
		Entry("bounds with a wrong excess", "pools: [{name: shop, bounds: '3:9:many'}]", "pools[0].bounds", "excess is a count"),
		Entry("bounds above the worker's maximum", "pools: [{name: shop, bounds: '3:10:1'}]", "pools[0].bounds", "the worker has minimum 3 and maximum 9"),
		Entry("bounds below the worker's minimum", "pools: [{name: shop, bounds: '2:9:1'}]", "pools[0].bounds", "write bounds within these, for example 3:9:1"),
		Entry("an excess beyond the bounds", "pools: [{name: shop, bounds: '3:6:7'}]", "pools[0].bounds", "write at most 6"),
		Entry("bounds that leave no room", "pools: [{name: shop, bounds: '6:6:1'}]", "pools[0].bounds", "minimum and maximum in the bounds are both 6"),
		Entry("an unknown balance", "pools: [{name: shop, balance: Always}]", "pools[0].balance", "write Off, ScaleUp or Continuous"),
		Entry("an excess in two places", "pools: [{name: marked, excess: 1}]", "pools[0]", "remove the annotation, or the pool from providerConfig"),
		Entry("a balance in two places", "pools: [{name: marked, balance: ScaleUp}]", "pools[0]", "evenkeel.machine.sapcloud.io/balance"),
		Entry("an unknown accounting", "accounting: inclusive", "accounting", "write Additive or Inclusive"),
		Entry("an unknown autoscaler", "autoscaler: karpenter", "autoscaler", "write fork or upstream"),
	)

	DescribeTable("accepts capacity buffers where an annotation of a worker has", func(key, value string) {
		bounded := []gardencorev1beta1.Worker{{Name: "shop", Minimum: 3, Maximum: 9, Annotations: map[string]string{key: value}}}
		Expect(validate("capacityBuffers: true", bounded)).To(BeEmpty())
	},
		Entry("bounds", machine.BoundsAnnotation, "3:9:1"),
		Entry("an excess", machine.PoolExcessAnnotation, "0"),
	)

	DescribeTable("refuses capacity buffers without bounds of any pool, with", func(pools string, annotations map[string]string) {
		unbounded := []gardencorev1beta1.Worker{{Name: "shop", Minimum: 3, Maximum: 9, Annotations: annotations}}
		Expect(validate("capacityBuffers: true\n"+pools, unbounded)).To(ConsistOf(And(
			HaveField("Field", "providerConfig.capacityBuffers"), HaveField("Detail", ContainSubstring("write excess for a pool, 0 if it keeps nothing else in reserve")))))
	},
		Entry("no pool", "", nil),
		Entry("a pool that is balanced alone", "pools: [{name: shop, balance: ScaleUp}]", nil),
		Entry("bounds of a worker that cannot be read", "", map[string]string{machine.BoundsAnnotation: "3-9", machine.PoolExcessAnnotation: "1"}),
	)

	It("accepts capacity buffers beside the unmodified cluster-autoscaler, for which all pools have bounds", func() {
		unbounded := []gardencorev1beta1.Worker{{Name: "shop", Minimum: 3, Maximum: 9}}
		Expect(validate("capacityBuffers: true\nautoscaler: upstream", unbounded)).To(BeEmpty())
	})

	DescribeTable("refuses the unmodified cluster-autoscaler, with what to write,", func(change func(*gardencorev1beta1.ShootSpec), messages ...string) {
		shoot := &gardencorev1beta1.ShootSpec{Kubernetes: gardencorev1beta1.Kubernetes{Version: "1.35.0"}, Provider: gardencorev1beta1.Provider{Workers: []gardencorev1beta1.Worker{{Name: "shop"}}}}
		c, err := v1alpha1.Decode(nil)
		Expect(err).NotTo(HaveOccurred())
		c.Autoscaler = v1alpha1.AutoscalerUpstream
		Expect(validation.Validate(c, shoot, field.NewPath("providerConfig"))).To(BeEmpty())
		change(shoot)
		errs := validation.Validate(c, shoot, field.NewPath("providerConfig"))
		Expect(errs).To(HaveLen(1))
		Expect(errs[0].Field).To(Equal("providerConfig.autoscaler"))
		for _, message := range messages {
			Expect(errs[0].Detail).To(ContainSubstring(message))
		}
		c.Autoscaler = v1alpha1.AutoscalerFork
		Expect(validation.Validate(c, shoot, field.NewPath("providerConfig"))).To(BeEmpty())
	},
		Entry("in an older Kubernetes", func(s *gardencorev1beta1.ShootSpec) { s.Kubernetes.Version = "1.34.9" }, "the Shoot has Kubernetes 1.34.9", "update the Shoot, or write fork"),
		Entry("beside settings of a worker", func(s *gardencorev1beta1.ShootSpec) {
			s.Provider.Workers[0].ClusterAutoscaler = &gardencorev1beta1.ClusterAutoscalerOptions{}
		}, "the worker shop", "remove them, or write fork"),
		Entry("beside bounds of a worker that cannot be read", func(s *gardencorev1beta1.ShootSpec) {
			s.Provider.Workers[0].Annotations = map[string]string{machine.BoundsAnnotation: "3-9"}
		}, "the worker shop", "write min:max or min:max:excess"),
		Entry("with the taint of the reserve among those of Nodes that start", func(s *gardencorev1beta1.ShootSpec) {
			s.Kubernetes.ClusterAutoscaler = &gardencorev1beta1.ClusterAutoscaler{StartupTaints: []string{machine.ReserveTaintKey}}
		}, "remove the taint from spec.kubernetes.clusterAutoscaler"),
		Entry("with the taint of the reserve among those that are ignored", func(s *gardencorev1beta1.ShootSpec) {
			s.Kubernetes.ClusterAutoscaler = &gardencorev1beta1.ClusterAutoscaler{IgnoreTaints: []string{machine.ReserveTaintKey}}
		}, machine.ReserveTaintKey),
	)

	It("refuses pools of a Shoot without workers", func() {
		Expect(validate("pools: [{name: shop, excess: 1}]", nil)).To(ConsistOf(HaveField("Detail", ContainSubstring("remove the pool"))))
	})

	It("reports everything at once", func() {
		Expect(validate("pools: [{name: shop, excess: x, balance: x}, {name: none}]\naccounting: x\nautoscaler: x", workers)).To(HaveLen(5))
	})
})
