// SPDX-License-Identifier: Apache-2.0

package distribute_test

import (
	"math"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/evenkeel/evenkeel/pkg/distribute"
)

var _ = Describe("malformed input", func() {
	one := func(t Target) []Target { return []Target{{Key: "sound", Weight: 1, Max: Unbounded}, t} }

	DescribeTable("of Distribute is an error and no answer", func(total int64, targets []Target, says string) {
		r, err := Distribute(total, targets, Options{})
		Expect(err).To(And(MatchError(ErrMalformed), MatchError(ContainSubstring(says))))
		Expect(r).To(Equal(Result{}))
	},
		Entry("total below 0", int64(-1), one(Target{Key: "a"}), "total of -1"),
		Entry("max below min", int64(9), one(Target{Key: "a", Min: 5, Max: 3}), `target "a": max 3 is below min 5`),
		Entry("max below 0 and not Unbounded", int64(9), one(Target{Key: "a", Max: -2}), `target "a": max -2`),
		Entry("min below 0", int64(9), one(Target{Key: "a", Min: -1}), `target "a": min -1`),
		Entry("weight below 0", int64(9), one(Target{Key: "a", Weight: -1}), `target "a": weight -1`),
		Entry("current below 0", int64(9), one(Target{Key: "a", Current: -1}), `target "a": current -1`),
		Entry("a key twice", int64(9), one(Target{Key: "sound"}), `target "sound": given twice`),
		Entry("a key twice, in another tier", int64(9), one(Target{Key: "sound", Tier: 3}), `target "sound": given twice`),
		Entry("minima above int64", int64(9),
			[]Target{{Key: "a", Min: math.MaxInt64, Max: Unbounded}, {Key: "b", Min: 1, Max: Unbounded}}, `target "b": the minima`),
	)

	DescribeTable("of WithFallback", func(targets []Target, health []Health, says string) {
		_, err := WithFallback(1, targets, health, Options{})
		Expect(err).To(And(MatchError(ErrMalformed), MatchError(ContainSubstring(says))))
	},
		Entry("health missing", one(Target{Key: "a"}), []Health{{}}, "health of 1 for 2 targets"),
		Entry("no health at all", one(Target{Key: "a"}), nil, "health of 0 for 2 targets"),
		Entry("usable below 0", one(Target{Key: "a"}), []Health{{}, {Blocked: true, Usable: -1}}, `target "a": usable -1`),
		Entry("failed below 0", one(Target{Key: "a"}), []Health{{}, {Blocked: true, Failed: -1}}, `target "a": failed -1`),
		Entry("a malformed target", one(Target{Key: "a", Min: -1}), []Health{{}, {}}, `target "a": min -1`),
	)

	DescribeTable("of Step", func(cur, ready, goal []int64, want, surge, unavailable int64, says string) {
		next, err := Step(cur, ready, goal, want, surge, unavailable)
		Expect(err).To(And(MatchError(ErrMalformed), MatchError(ContainSubstring(says))))
		Expect(next).To(BeNil())
	},
		Entry("ready missing", []int64{1}, []int64{}, []int64{1}, int64(1), int64(1), int64(0), "1 current, 0 ready"),
		Entry("goal missing", []int64{1}, []int64{1}, []int64{}, int64(1), int64(1), int64(0), "0 goal"),
		Entry("nothing may move", []int64{1}, []int64{1}, []int64{1}, int64(1), int64(0), int64(0), "surge 0 and unavailable 0"),
		Entry("surge below 0", []int64{1}, []int64{1}, []int64{1}, int64(1), int64(-1), int64(2), "surge -1"),
		Entry("unavailable below 0", []int64{1}, []int64{1}, []int64{1}, int64(1), int64(2), int64(-1), "unavailable -1"),
		Entry("a current count below 0", []int64{-1}, []int64{1}, []int64{1}, int64(1), int64(1), int64(0), "count of -1"),
		Entry("a ready count below 0", []int64{1}, []int64{-1}, []int64{1}, int64(1), int64(1), int64(0), "count of -1"),
		Entry("want below 0", []int64{1}, []int64{1}, []int64{1}, int64(-3), int64(1), int64(0), "count of -3"),
		Entry("a sum above int64", []int64{1, 1}, []int64{1, 1}, []int64{1, math.MaxInt64}, int64(1), int64(1), int64(0), "exceeds int64"),
	)

	It("is not what is missing or too much", func() {
		r, err := WithFallback(0, nil, nil, Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Replicas).To(BeEmpty())
		Expect(Step(nil, nil, nil, 0, 1, 0)).To(BeEmpty())
	})

	It("is not what a target that is not blocked is said to run", func() {
		_, err := WithFallback(1, one(Target{Key: "a"}), []Health{{}, {Usable: -1}}, Options{})
		Expect(err).NotTo(HaveOccurred())
	})
})
