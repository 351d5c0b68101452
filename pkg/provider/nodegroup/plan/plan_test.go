// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"math"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	. "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	. "github.com/evenkeel/evenkeel/test/builders/nodegroup"
)

var _ = Describe("A raise", func() {
	DescribeTable("is one change of replicas",
		func(g Group, delta int, want string) {
			c, err := NewRaise(g, g.Replicas(), int32(delta))
			Expect(err).NotTo(HaveOccurred())
			Expect(inWords(c)).To(Equal(want))
			Expect(c.IsEmpty()).To(BeFalse())
		},
		Entry("by one", Bounded("1:5:2", 3), 1, "3>4"),
		Entry("up to max: the reserve gives way (rule 1)", Bounded("1:5:2", 3, excess+"2,max=5"), 2, "3>5"),
		Entry("from zero", Bounded("0:6:2", 0), 1, "0>1"),
		Entry("from below min", Bounded("3:6", 1), 1, "1>2"),
		Entry("without a balance mode nothing is written of it", Bounded("1:9", 3, balanced+"Off"), 1, "3>4"),
		Entry("unsplit where growth is split", Bounded("1:9", 3, balanced+"ScaleUp", unsplit+"3"), 2, "3>5 5"),
		Entry("where a mode has just begun: nothing is split that was there before", Bounded("1:9", 3, balanced+"Continuous"), 2, "3>5"),
		Entry("unsplit where the mode is the default and shows by its annotation alone", Bounded("1:9", 3, unsplit+"3"), 2, "3>5 5"),
		Entry("at once, where none of the growth has been split yet", Bounded("1:9", 3, unsplit+"0"), 2, "3>5 2"),
		Entry("what is being split keeps being split", Bounded("1:20", 9, unsplit+"3"), 2, "9>11 5"),
		Entry("where the annotation is invalid, which counts as none", Bounded("1:9", 3, unsplit+"x"), 1, "3>4"),
		Entry("of workload alone, where replicas include the reserve", Bounded("1:9", 7, included), 1, "5>6 of 8"),
		Entry("up to max, where workload takes the reserve that replicas include", Bounded("1:9", 7, included), 4, "5>9"),
		Entry("of the largest number there is", Bounded("0:2147483647", math.MaxInt32-1, unsplit+"2147483647"), 1, "2147483646>2147483647 2147483647"),
	)

	DescribeTable("is refused",
		func(g Group, delta int, want codes.Code) {
			_, err := NewRaise(g, g.Replicas(), int32(delta))
			Expect(status.Code(err)).To(Equal(want))
		},
		Entry("by nothing", Bounded("1:5", 3), 0, codes.InvalidArgument),
		Entry("by less than nothing", Bounded("1:5", 3), -1, codes.InvalidArgument),
		Entry("beyond max", Bounded("1:5", 3), 3, codes.OutOfRange),
		Entry("beyond max, where a user is already", Bounded("1:5", 7), 1, codes.OutOfRange),
		Entry("beyond all numbers", Bounded("1:5", 3), math.MaxInt32, codes.OutOfRange),
	)
})

// passed is the time of a change that is before machines are named at noon.
const passed = " 2026-03-01T11:59:59Z"

var _ = Describe("A raise of a group that others have raised since the caller's loop began", func() {
	DescribeTable("results in the number that the caller intends",
		func(replicas, seen, delta int, want string) {
			c, err := NewRaise(Bounded("1:5", int32(replicas)), int32(seen), int32(delta))
			Expect(err).NotTo(HaveOccurred())
			Expect(inWords(c)).To(Equal(want))
		},
		Entry("by a part of it", 4, 3, 2, "4>5"),
		Entry("by all of it", 4, 3, 1, "4>4"),
		Entry("by more", 5, 3, 1, "5>5"),
		Entry("beyond max by hand", 7, 3, 1, "7>7"),
		Entry("beyond max by hand, and as far as it asks for", 7, 5, 2, "7>7"),
		Entry("lowered instead: it counts from there", 2, 3, 1, "2>3"),
	)

	It("changes what the caller has in mind by all that it asked for", func() {
		for seen, replicas := range map[int32]int32{3: 3, 2: 3, 1: 3} {
			c, err := NewRaise(Bounded("1:5", replicas), seen, 2)
			Expect(err).NotTo(HaveOccurred())
			Expect(c.CallerDelta).To(BeEquivalentTo(2))
		}
	})

	It("is refused where that is more than max", func() {
		_, err := NewRaise(Bounded("1:5", 4), 3, 3)
		Expect(status.Code(err)).To(Equal(codes.OutOfRange))
	})
})

var _ = Describe("A removal", func() {
	DescribeTable("is one change of replicas and names",
		func(g Group, machines, leave, want string) {
			c, err := NewRemoval(g, Members(machines), spread(Members(machines)), going(leave), Noon)
			Expect(err).NotTo(HaveOccurred())
			Expect(inWords(c)).To(Equal(want))
		},
		Entry("of one", Bounded("1:5", 3), "SSS", "b", "3>2 b~"+NoonText+passed),
		Entry("of several, sorted", Bounded("1:5", 3), "SSS", "cb", "3>1 b~"+NoonText+",c~"+NoonText+passed),
		Entry("at the cap, with an applied excess that keeps the sum (trap 6)", Bounded("1:5:2", 5, excess+"2,max=5"), "SSSSS", "a", "5>4 a~"+NoonText+" "+NoonText),
		Entry("where the reserve gives room to fewer machines than are deleted, the number is enough", Bounded("1:5:2", 4, excess+"2,max=5"), "SSSSR", "ab", "4>2 a~"+NoonText+",b~"+NoonText+passed),
		Entry("after others that are on their way", Bounded("1:5", 3, trigger+"x~2026-03-01T11:00:00Z"), "SSS", "a",
			"3>2 x~2026-03-01T11:00:00Z,a~"+NoonText+passed),
		Entry("later than the last time, which counts for machines named until then", Bounded("1:5", 3, scaled+"2026-03-01T11:59:59Z"), "SSS", "a", "3>2 a~"+NoonText),
		Entry("within the second of the last time", Bounded("1:5", 3, scaled+NoonText), "SSS", "a", "3>2 a~2026-03-01T12:00:01Z"),
		Entry("by a clock that is behind the last one", Bounded("1:5", 3, scaled+"2026-03-01T12:00:09Z"), "SSS", "a",
			"3>2 a~2026-03-01T12:00:10Z"),
		Entry("at the cap, by a clock that is behind", Bounded("1:5:2", 5, excess+"2,max=5", scaled+"2026-03-01T12:00:09Z"), "SSSSS", "a",
			"5>4 a~2026-03-01T12:00:09Z 2026-03-01T12:00:09Z"),
		Entry("after a time that cannot be parsed", Bounded("1:5", 3, scaled+"soon"), "SSS", "a", "3>2 a~"+NoonText+passed),
		Entry("of one that leaves already: nothing", Bounded("1:5", 2), "SSL", "c", "2>2"),
		Entry("of one that terminates: nothing", Bounded("1:5", 2), "SST", "c", "2>2"),
		Entry("of one that is gone: nothing", Bounded("1:5", 2), "SS", "", "2>2"),
		Entry("twice for the same: the second half only", Bounded("1:5", 3), "SSSL", "cd", "3>2 c~"+NoonText+passed),
		Entry("of one in reserve: it is deleted, replicas stay", Bounded("1:5", 3), "SSSR", "d", "3>3 d~"+NoonText+" "+NoonText),
		Entry("of one in reserve at min", Bounded("3:5", 3), "SSSR", "d", "3>3 d~"+NoonText+" "+NoonText),
		Entry("of one in reserve below min", Bounded("4:5", 3), "SSSR", "d", "3>3 d~"+NoonText+" "+NoonText),
		Entry("of both kinds", Bounded("1:5", 3), "SSSR", "cd", "3>2 c~"+NoonText+",d~"+NoonText+passed),
		Entry("where growth is split", Bounded("1:9", 5, unsplit+"5"), "SSSSS", "a", "5>4 a~"+NoonText+passed+" 4"),
		Entry("while growth is being split", Bounded("1:9", 8, unsplit+"5"), "SSSSS", "a", "8>7 a~"+NoonText+passed+" 4"),
		Entry("while growth is being split, of the only machine there may be", Bounded("0:9", 3, unsplit+"1"), "S", "a", "3>2 a~"+NoonText+passed+" 0"),
		Entry("while growth is being split, where replicas would reach max and the machines do not", Bounded("1:9:2", 8, unsplit+"5", excess+"2,max=9"), "SSSSSRR", "a",
			"8>7 a~"+NoonText+passed+" 4"),
		Entry("where what may be acted on is out of date", Bounded("1:9", 3, unsplit+"5"), "SSS", "a", "3>2 a~"+NoonText+passed+" 2"),
		Entry("of one, where replicas include the reserve", Bounded("1:9", 7, included), "SSSSSRR", "a", "5>4 of 6 a~"+NoonText+passed),
		Entry("of one in reserve that replicas include", Bounded("1:9", 7, included), "SSSSSRR", "f", "5>5 f~"+NoonText+" "+NoonText),
		Entry("beside an old machine that leaves", Bounded("1:5", 2), "SSL", "a", "2>1 a~"+NoonText+passed),
	)

	DescribeTable("is refused whole",
		func(g Group, machines, leave string) {
			c, err := NewRemoval(g, Members(machines), spread(Members(machines)), going(leave), Noon)
			Expect(status.Code(err)).To(Equal(codes.FailedPrecondition))
			Expect(c.IsEmpty()).To(BeTrue())
		},
		Entry("below min", Bounded("3:5", 3), "SSS", "a"),
		Entry("below min by the last of several", Bounded("2:5", 3), "SSS", "ab"),
		Entry("of a preserved machine", Bounded("1:5", 3), "SSP", "ac"),
		Entry("of a preserved machine in reserve", Bounded("1:5", 2), "SSQ", "ac"),
		Entry("during a rollout", Bounded("1:5", 3), "SSO", "a"),
	)
})

var _ = It("The error for a removal below min contains the number of machines and the min", func() {
	_, err := NewRemoval(Bounded("2:5", 3), Members("SSS"), false, going("ab"), Noon)
	Expect(err).To(MatchError(ContainSubstring("remove 2 of the 3 machines of pool: min is 2")))
})

var _ = Describe("A change of the target size", func() {
	It("is by as much for the caller", func() {
		c, err := NewRemoval(Bounded("1:5", 3), Members("SSS"), false, going("ab"), Noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(c.CallerDelta).To(BeEquivalentTo(-2))
		Expect(NewWithdrawal(Bounded("1:9", 5), Members("SSS"), -2).CallerDelta).To(BeEquivalentTo(-2))
	})

	It("of nothing writes nothing, also where growth is split", func() {
		c := NewWithdrawal(Bounded("1:9", 3, unsplit+"3"), Members("SSS"), -1)
		Expect(c.IsEmpty()).To(BeTrue())
		Expect(c.Annotations).To(BeEmpty())
	})
})

var _ = Describe("A reminder", func() {
	DescribeTable("writes the time that makes machines go whatever the number is",
		func(want string, notes ...string) {
			c := NewReminder(Bounded("1:9", 3, notes...), going("a"), Noon)
			Expect(inWords(c)).To(Equal(want))
			Expect(c.IsEmpty()).To(Equal(want == "3>3"))
		},
		Entry("of one that is overdue", "3>3 "+NoonText, trigger+"a~2026-03-01T11:59:50Z"),
		Entry("not before", "3>3", trigger+"a~2026-03-01T11:59:51Z"),
		Entry("not for one that is gone or deleted", "3>3", trigger+"b~2026-03-01T11:00:00Z"),
		Entry("not twice", "3>3", trigger+"a~2026-03-01T11:00:00Z", scaled+"2026-03-01T11:00:00Z"),
		Entry("again for one that was named since", "3>3 "+NoonText, trigger+"a~2026-03-01T11:00:01Z", scaled+"2026-03-01T11:00:00Z"),
		Entry("not where there are none", "3>3"),
		Entry("not for what cannot be parsed", "3>3", trigger+"a~soon,a"),
	)
})

var _ = Describe("A withdrawal", func() {
	DescribeTable("takes back what does not exist",
		func(g Group, machines string, delta int, want string) {
			Expect(inWords(NewWithdrawal(g, Members(machines), int32(delta)))).To(Equal(want))
		},
		Entry("all of it", Bounded("1:9", 5), "SSS", -2, "5>3"),
		Entry("no more than asked for", Bounded("1:9", 5), "SSS", -1, "5>4"),
		Entry("clamped: a placeholder is a machine (trap 5)", Bounded("1:9", 4), "SSSS", -1, "4>4"),
		Entry("clamped: one missing of two", Bounded("1:9", 5), "SSSS", -2, "5>4"),
		Entry("where the reserve is missing too, that is not replicas' (trap 5)", Bounded("1:9:2", 4, excess+"2,max=9"), "SSSS", -1, "4>4"),
		Entry("nothing while the reserve has not given way yet: a machine that serves would go", Bounded("1:9:2", 5, excess+"2,max=9"), "SSSSRRR", -1, "5>5"),
		Entry("what the reserve leaves over", Bounded("1:9:2", 5, excess+"2,max=9"), "SSSRR", -2, "5>3"),
		Entry("not what leaves", Bounded("1:9", 3), "SSSL", -1, "3>3"),
		Entry("beside one that terminates, which machine-controller-manager does not count", Bounded("1:9", 4), "SSST", -2, "4>3"),
		Entry("not below min", Bounded("3:9", 4), "S", -3, "4>3"),
		Entry("nothing at min", Bounded("3:9", 3), "S", -3, "3>3"),
		Entry("nothing for more than nothing", Bounded("1:9", 5), "S", 1, "5>5"),
		Entry("the most there can be", Bounded("0:9", 5), "", math.MinInt32, "5>0"),
		Entry("where growth is split", Bounded("1:9", 5, unsplit+"5"), "SSS", -2, "5>3 3"),
		Entry("growth that waits to be split: no machine is missing", Bounded("1:9", 7, unsplit+"5"), "SSSSS", -2, "7>5 5"),
		Entry("machines that are missing first, then growth that waits", Bounded("1:9", 8, unsplit+"5"), "SSSS", -3, "8>5 4"),
		Entry("growth that waits, where too many serve already", Bounded("1:9", 7, unsplit+"5"), "SSSSSS", -3, "7>5 5"),
	)
})
