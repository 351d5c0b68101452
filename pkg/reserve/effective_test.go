// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"math"
	"math/big"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/reserve"
)

var large = corev1.ResourceList{
	"cpu": resource.MustParse("3920m"), "memory": resource.MustParse("14Gi"), "nvidia.com/gpu": resource.MustParse("0"),
}

var _ = DescribeTable("An excess in machines (13)",
	func(text string, replicas, want int) {
		excess, err := machine.ParseExcess(text)
		Expect(err).NotTo(HaveOccurred())
		Expect(MachineCount(excess, replicas, large)).To(Equal(want))
	},
	Entry("a count", "2", 7, 2),
	Entry("none", "0", 7, 0),
	Entry("a percentage, rounded up", "5%", 7, 1),
	Entry("a percentage that comes out even", "25%", 8, 2),
	Entry("just above", "25%", 9, 3),
	Entry("of nothing", "50%", 0, 0),
	Entry("all of many", "100%", 200, 200),
	Entry("none of many", "0%", 1000, 0),
	Entry("the largest of the most", "1000%", math.MaxInt32, math.MaxInt32),
	Entry("cpu, rounded up", "cpu=16", 7, 5),
	Entry("cpu that comes out even", "cpu=7840m", 7, 2),
	Entry("a millicore more", "cpu=7841m", 7, 3),
	Entry("as many as cover each", "cpu=4,memory=64Gi", 7, 5),
	Entry("a percentage of what serves", "cpu=10%", 25, 3),
	Entry("a percentage beside a quantity", "cpu=10%,memory=1Gi", 25, 3),
	Entry("no percentage needs no capacity", "example.com/fpga=0%", 11, 0),
	Entry("one, though the percentage comes to less", "max(2,5%)", 11, 2),
	Entry("the percentage, once it comes to more", "max(2,5%)", 41, 3),
	Entry("the count, of no replicas", "max(1,50%)", 0, 1),
	Entry("the largest of all forms", "max(1,5%,cpu=16,memory=1Gi)", 11, 5),
	Entry("no amount needs no capacity", "nvidia.com/gpu=0", 7, 0),
	Entry("more than an int64 holds", "memory=100000000000000000000000000000", 7, math.MaxInt32),
	Entry("more than there could be", "cpu=999999999P", 7, math.MaxInt32),
)

var _ = It("An excess in resources that machines do not have is an error that names them (13)", func() {
	for _, text := range []string{"nvidia.com/gpu=1", "example.com/fpga=1", "cpu=1,example.com/fpga=1", "example.com/fpga=10%", "nvidia.com/gpu=10%", "max(1,example.com/fpga=1%)"} {
		excess, err := machine.ParseExcess(text)
		Expect(err).NotTo(HaveOccurred())
		_, err = MachineCount(excess, 3, large)
		Expect(err).To(MatchError(ErrUnknownCapacity))
		Expect(err.Error()).To(MatchRegexp("gpu|fpga"))
	}
	Expect(CapacityAdvice(large, nil)).To(HavePrefix("its machines do not offer that resource"))
	Expect(CapacityAdvice(nil, nil)).To(HavePrefix("give the MachineClass a nodeTemplate"))
})

var _ = It("An excess of more machines than a number of machines can be is the largest number (13)", func() {
	for _, text := range []string{"2147483648", "18446744073709551617"} {
		amount := resource.MustParse(text)
		Expect(MachineCount(machine.Excess{Resources: []machine.ResourceExcess{{Name: "x", Quantity: &amount}}}, 1, corev1.ResourceList{"x": resource.MustParse("1")})).To(Equal(math.MaxInt32))
	}
})

var _ = It("Amounts of different scales are compared as they are (13)", func() {
	for want, each := range map[string]string{"1.5": "1", "15": "7.5"} {
		amount := resource.MustParse(want)
		Expect(MachineCount(machine.Excess{Resources: []machine.ResourceExcess{{Name: "x", Quantity: &amount}}}, 1, corev1.ResourceList{"x": resource.MustParse(each)})).To(Equal(2))
	}
})

var _ = It("An excess that cannot be converted is an error, whatever else is known of it (13)", func() {
	bounds, err := machine.ParseBounds("1:9:example.com/fpga=1")
	Expect(err).NotTo(HaveOccurred())
	_, err = Effective(Wishes{Bounds: &bounds}, 3, large)
	Expect(err).To(MatchError(ErrUnknownCapacity))
})

var _ = It("No amount needs no capacity, and a resource that no machine has is not one that all machines have (13)", func() {
	Expect(MachineCount(machine.Excess{Resources: []machine.ResourceExcess{{Name: "example.com/fpga"}}}, 3, large)).To(BeZero())
	none := corev1.ResourceList{"cpu": resource.MustParse("-1")}
	_, err := MachineCount(machine.Excess{Resources: []machine.ResourceExcess{{Name: "cpu", Percent: ptr.To[int32](10)}}}, 3, none)
	Expect(err).To(MatchError(ErrUnknownCapacity))
})

var _ = DescribeTable("Which excess counts, and what bounds leave of it (13)",
	func(share *int32, bounds string, field *int32, replicas int, want EffectiveExcess) {
		w := Wishes{Share: share, Field: field}
		if bounds != "" {
			b, err := machine.ParseBounds(bounds)
			Expect(err).NotTo(HaveOccurred())
			w.Bounds = &b
		}
		Expect(Effective(w, replicas, large)).To(Equal(want))
	},
	Entry("none", nil, "", nil, 3, EffectiveExcess{0, 0, Unbounded}),
	Entry("the field", nil, "", ptr.To[int32](2), 3, EffectiveExcess{2, 2, Unbounded}),
	Entry("the field within bounds that leave it to the field", nil, "1:4", ptr.To[int32](2), 3, EffectiveExcess{2, 1, 4}),
	Entry("bounds before the field", nil, "1:9:1", ptr.To[int32](2), 3, EffectiveExcess{1, 1, 9}),
	Entry("an explicit zero in bounds", nil, "1:9:0", ptr.To[int32](2), 3, EffectiveExcess{0, 0, 9}),
	Entry("a share before both", ptr.To[int32](3), "1:9:1", ptr.To[int32](2), 3, EffectiveExcess{3, 3, 9}),
	Entry("a share of none", ptr.To[int32](0), "1:9:1", ptr.To[int32](2), 3, EffectiveExcess{0, 0, 9}),
	Entry("a share within max", ptr.To[int32](3), "1:4", nil, 3, EffectiveExcess{3, 1, 4}),
	Entry("at max", nil, "1:5:2", nil, 5, EffectiveExcess{2, 0, 5}),
	Entry("above max", nil, "1:5:2", nil, 7, EffectiveExcess{2, 0, 5}),
	Entry("a percentage of replicas", nil, "1:10:20%", nil, 6, EffectiveExcess{2, 2, 10}),
	Entry("resources", nil, "1:10:cpu=16", nil, 6, EffectiveExcess{5, 4, 10}),
	Entry("max 0", nil, "0:0:1", nil, 0, EffectiveExcess{1, 0, 0}),
	Entry("a field below 0", nil, "", ptr.To[int32](-1), 0, EffectiveExcess{0, 0, Unbounded}),
)

var _ = DescribeTable("What a Reserve requests counts if it is more (13)",
	func(own Wishes, requested, replicas int, want EffectiveExcess) {
		own.Requested = &machine.RequestedExcess{Reserve: "a", Machines: int32(requested)}
		Expect(Effective(own, replicas, large)).To(Equal(want))
	},
	Entry("than nothing", Wishes{}, 2, 3, EffectiveExcess{2, 2, Unbounded}),
	Entry("than the field", Wishes{Field: ptr.To[int32](1)}, 2, 3, EffectiveExcess{2, 2, Unbounded}),
	Entry("but not less than the field", Wishes{Field: ptr.To[int32](3)}, 2, 3, EffectiveExcess{3, 3, Unbounded}),
	Entry("than a share", Wishes{Share: ptr.To[int32](1), Field: ptr.To[int32](9)}, 2, 3, EffectiveExcess{2, 2, Unbounded}),
	Entry("within max", Wishes{Bounds: &machine.Bounds{Min: 1, Max: 4}}, 2, 3, EffectiveExcess{2, 1, 4}),
	Entry("not above max", Wishes{Bounds: &machine.Bounds{Min: 1, Max: 4}}, 2, 5, EffectiveExcess{2, 0, 4}),
	Entry("none", Wishes{Field: ptr.To[int32](1)}, 0, 3, EffectiveExcess{1, 1, Unbounded}),
	Entry("the largest there is", Wishes{Bounds: &machine.Bounds{Max: math.MaxInt32}}, math.MaxInt32, 3, EffectiveExcess{math.MaxInt32, math.MaxInt32 - 3, math.MaxInt32}),
)

var _ = It("Resources are covered, and by no machine more than needed (13)", func() {
	quantity := rapid.StringMatching(`[1-9][0-9]{0,2}(m|k|M|G|T|Ki|Mi|Gi)?`)
	rapid.Check(GinkgoT(), func(t *rapid.T) {
		want, each := resource.MustParse(quantity.Draw(t, "want")), resource.MustParse(quantity.Draw(t, "each"))
		n, err := MachineCount(machine.Excess{Resources: []machine.ResourceExcess{{Name: "x", Quantity: &want}}}, 1, corev1.ResourceList{"x": each})
		if err != nil {
			t.Fatal(err)
		}
		milli := func(q resource.Quantity, times int) *big.Int {
			return new(big.Int).Mul(big.NewInt(q.MilliValue()), big.NewInt(int64(times)))
		}
		covered := milli(each, n).Cmp(milli(want, 1)) >= 0
		if n < math.MaxInt32 && !covered || milli(each, n-1).Cmp(milli(want, 1)) >= 0 {
			t.Fatalf("%s of %s are %d machines", want.String(), each.String(), n)
		}
	})
})
