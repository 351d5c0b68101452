// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"math"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

var _ = DescribeTable("The applied excess of a MachineDeployment with seven replicas is", func(text string, want pool.Applied) {
	d := excess(7, text)
	if text == "" {
		d.Annotations = nil
	}
	Expect(pool.AppliedOf(d, 7)).To(Equal(want))
},
	Entry("none, and without a bound, if nothing is recorded", "", pool.Applied{Max: pool.Unbounded}),
	Entry("none, and without a bound, if the record is invalid", "some", pool.Applied{Max: pool.Unbounded}),
	Entry("none, if more is counted than there is", "1,counted=2,replicas=7", pool.Applied{Max: pool.Unbounded}),
	Entry("what is recorded, without a bound", "2", pool.Applied{Excess: 2, Max: pool.Unbounded}),
	Entry("what is recorded, for a bound", "2,max=8", pool.Applied{Excess: 2, Max: 8}),
	Entry("what is recorded, for a bound of zero", "2,max=0", pool.Applied{Excess: 2}),
	Entry("counted in part", "3,max=9,counted=2,replicas=7", pool.Applied{Excess: 3, Max: 9, Counted: 2}),
	Entry("counted as before, where replicas were raised", "3,counted=2,replicas=6", pool.Applied{Excess: 3, Max: pool.Unbounded, Counted: 2}),
	Entry("absorbed in part, where replicas were lowered by one", "3,counted=2,replicas=8", pool.Applied{Excess: 3, Max: pool.Unbounded, Counted: 1, Absorbed: 1}),
	Entry("absorbed as far as it was counted, where replicas were lowered by more", "3,counted=2,replicas=10", pool.Applied{Excess: 3, Max: pool.Unbounded, Absorbed: 2}),
)

var _ = DescribeTable("Applying an excess to four machines for workload", func(before string, a pool.Applied, replicas int, after string) {
	d := excess(4, before)
	pool.Apply(d, 4, a)
	Expect(d.Spec.Replicas).To(BeEquivalentTo(replicas))
	if after == "" {
		Expect(d.Annotations).NotTo(HaveKey(machine.AppliedExcessAnnotation))
	} else {
		Expect(d.Annotations).To(HaveKeyWithValue(machine.AppliedExcessAnnotation, after))
	}
	Expect(d.Annotations).NotTo(HaveKey(machine.AppliedReplicasAnnotation))
},
	Entry("records it", "1", pool.Applied{Excess: 2, Max: pool.Unbounded}, 4, "2"),
	Entry("records the max that it is for", "1", pool.Applied{Excess: 2, Max: 5}, 4, "2,max=5"),
	Entry("counts it within replicas", "1", pool.Applied{Excess: 3, Max: 9, Counted: 2}, 6, "3,max=9,counted=2,replicas=6"),
	Entry("removes the record with the excess", "2,max=5", pool.Applied{Max: pool.Unbounded}, 4, ""),
	Entry("removes the record with the excess, whatever max is", "2,max=5", pool.Applied{Max: 5}, 4, ""),
	Entry("leaves a record as it is, if its values are the same", "2,max=2147483647", pool.Applied{Excess: 2, Max: pool.Unbounded}, 4, "2,max=2147483647"),
	Entry("leaves a record that cannot be read, if there is no excess", "some", pool.Applied{Max: pool.Unbounded}, 4, "some"),
)

var _ = DescribeTable("Workload that is set where replicas include two reserve machines", func(text string, r, replicas int, after string) {
	d := excess(5, text)
	pool.SetWorkload(d, int32(r))
	Expect(d.Spec.Replicas).To(BeEquivalentTo(replicas))
	Expect(d.Annotations).To(HaveKeyWithValue(machine.AppliedExcessAnnotation, after))
},
	Entry("raises replicas up to max", "2,max=6,counted=2,replicas=5", 4, 6, "2,max=6,counted=2,replicas=6"),
	Entry("takes one of the reserve at max", "2,max=6,counted=2,replicas=5", 5, 6, "1,max=6,counted=1,replicas=6"),
	Entry("takes the reserve, and leaves a record that there is none", "2,max=6,counted=2,replicas=5", 6, 6, "0"),
	Entry("grows beyond max without any of it", "2,max=6,counted=2,replicas=5", 8, 8, "0"),
	Entry("lowers replicas to the reserve alone", "2,max=6,counted=2,replicas=5", 0, 2, "2,max=6,counted=2,replicas=2"),
	Entry("does not take from a reserve that exceeds max already", "2,max=3,counted=2,replicas=5", 3, 5, "2,max=3,counted=2,replicas=5"),
)

var _ = DescribeTable("A count is written to the API as", func(n int, want int32) {
	Expect(pool.ClampInt32(n)).To(Equal(want))
},
	Entry("zero, if it is below that", -1, int32(0)),
	Entry("the maximum, if it is above that", math.MaxInt32+1, int32(math.MaxInt32)),
	Entry("itself, if the API can hold it", math.MaxInt32, int32(math.MaxInt32)),
)

var _ = It("Growth by one machine that is still to be split over zones is no workload yet", func() {
	d := newWorld().deployment
	pool.Resize(d, 3, 1)
	Expect(d.Spec.Replicas).To(BeEquivalentTo(4))
	Expect(d.Annotations).To(Equal(map[string]string{machine.AppliedReplicasAnnotation: "3"}))
	Expect([]int32{pool.Workload(d, d.Spec.Replicas), pool.Requested(d)}).To(Equal([]int32{3, 4}))
})

var _ = It("A reserve that is all that replicas have is not taken for workload of zero machines", func() {
	d := excess(2, "2,max=2,counted=2,replicas=2")
	pool.Resize(d, 0, 0)
	Expect(d.Spec.Replicas).To(BeEquivalentTo(2))
	Expect(d.Annotations).To(HaveKeyWithValue(machine.AppliedExcessAnnotation, "2,max=2,counted=2,replicas=2"))
})

var _ = DescribeTable("Replicas include reserve machines", func(a pool.Applied, do bool) {
	Expect(a.Included()).To(Equal(do))
},
	Entry("that are counted", pool.Applied{Counted: 1}, true),
	Entry("that a client has just taken out of them", pool.Applied{Absorbed: 1}, true),
	Entry("not if all are beyond them", pool.Applied{Excess: 1}, false),
)
