// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"math"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
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

// event is a write of another client to the MachineDeployment.
type event func(*v1alpha1.MachineDeployment)

var (
	raised  = event(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas++; d.Generation++ })
	lowered = event(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas--; d.Generation++ })
	other   = event(func(d *v1alpha1.MachineDeployment) { d.Generation++ })
	status_ = event(func(d *v1alpha1.MachineDeployment) { d.Status.Replicas++ })
	pruned  = event(func(d *v1alpha1.MachineDeployment) { delete(d.Annotations, trigger[:len(trigger)-1]) })
)

// after has our change take effect, or not, and then the events.
func after(base *v1alpha1.MachineDeployment, c Change, effect bool, events ...event) *v1alpha1.MachineDeployment {
	live := base.DeepCopy()
	if effect {
		live = carriedOut(base, c)
	}
	for _, e := range events {
		e(live)
	}
	live.ResourceVersion = "9"
	return live
}

var _ = Describe("A patch without an answer", func() {
	raise := func() (*v1alpha1.MachineDeployment, Change) {
		c, err := NewRaise(Bounded("1:9", 3), 3, 1)
		Expect(err).NotTo(HaveOccurred())
		return Deployment("1:9", 3), c
	}
	remove := func(notes ...string) (*v1alpha1.MachineDeployment, Change) {
		c, err := NewRemoval(Bounded("1:9", 3, notes...), Members("SSS"), false, going("a"), Noon)
		Expect(err).NotTo(HaveOccurred())
		return Deployment("1:9", 3, notes...), c
	}
	// fixed is an applied excess that takes the place of the machine, so that the time is written too.
	const fixed = excess + "2,max=3"
	// dated has a time of an earlier change, so that none has to be written.
	const dated = scaled + "2026-03-01T11:00:00Z"
	const done, again, unknown = "done", "again", "unknown"
	verdict := func(ok bool, err error) string {
		switch {
		case err != nil:
			Expect(status.Code(err)).To(Equal(codes.Aborted))
			Expect(ok).To(BeFalse(), "what is unknown is not done")
			return unknown
		case ok:
			return done
		}
		return again
	}

	DescribeTable("of a raise",
		func(effect, lost bool, want string, events ...event) {
			base, c := raise()
			Expect(verdict(c.ResolveOutcome(base, after(base, c, effect, events...), lost))).To(Equal(want))
		},
		Entry("a conflict at once, with the status of another client", false, false, again, status_),
		Entry("a conflict at once, because another client wrote the same number", false, false, again, raised),
		Entry("it took effect", true, true, done),
		Entry("it took effect, and status followed", true, true, done, status_, status_),
		Entry("it did not take effect, and status moved", false, true, again, status_),
		Entry("it did not take effect, and another client wrote another field", false, true, again, other),
		Entry("it did not take effect, and another client lowered replicas", false, true, again, lowered),
		Entry("another client raised replicas to the same number: that is what was wanted", false, true, done, raised),
		Entry("it took effect, and another client wrote another field", true, true, done, other),
		Entry("it took effect, and another client raised replicas", true, true, unknown, raised),
		Entry("it took effect, and another client lowered replicas", true, true, unknown, lowered),
		Entry("it did not take effect, and two other clients wrote", false, true, unknown, other, lowered),
	)

	DescribeTable("of a removal",
		func(effect bool, want string, notes []string, events ...event) {
			base, c := remove(notes...)
			Expect(verdict(c.ResolveOutcome(base, after(base, c, effect, events...), true))).To(Equal(want))
		},
		Entry("it took effect", true, done, nil),
		Entry("it took effect with its time, and the machine terminates already", true, done, []string{fixed}, pruned, status_),
		Entry("it took effect as the first with a time, and terminates", true, done, nil, pruned),
		Entry("it took effect with a time that was there already", true, done, []string{dated}),
		Entry("it took effect, terminates, and nothing shows whose write it was", true, unknown, []string{dated}, pruned),
		Entry("it did not take effect, and another client lowered replicas: the machine is not named", false, again, []string{fixed}, lowered),
		Entry("it did not take effect, and another client lowered replicas, and ours would not show", false, unknown, []string{dated}, lowered),
		Entry("it did not take effect, and status moved", false, again, nil, status_),
		Entry("it took effect with a time that was there already, and terminates", true, unknown, []string{fixed, scaled + NoonText}, pruned),
		Entry("it took effect with its time, terminates, and another client wrote", true, done, []string{fixed}, pruned, other),
		Entry("it took effect, terminates, and another client lowered replicas", true, unknown, nil, pruned, lowered),
	)

	// counting has replicas include some of a reserve of two from now on, without a change of what was requested.
	counting := func(counted int) event {
		return func(d *v1alpha1.MachineDeployment) {
			before := d.Spec.Replicas
			a, r := pool.AppliedOf(d, d.Spec.Replicas), pool.Requested(d)
			a.Counted = counted
			if pool.Apply(d, r, a); d.Spec.Replicas != before {
				d.Generation++
			}
		}
	}
	// released has workload take a reserve machine that replicas include.
	released := event(func(d *v1alpha1.MachineDeployment) { pool.Release(d, 1) })

	DescribeTable("of a raise beside a reserve",
		func(record string, delta int32, effect bool, want string, events ...event) {
			g := Bounded("1:9", 7, record)
			c, err := NewRaise(g, g.Replicas(), delta)
			Expect(err).NotTo(HaveOccurred())
			Expect(verdict(c.ResolveOutcome(g.Deployment, after(g.Deployment, c, effect, events...), true))).To(Equal(want))
		},
		Entry("that replicas include: it took effect", included, int32(1), true, done),
		Entry("that replicas include: it took effect, and status followed", included, int32(1), true, done, status_),
		Entry("that replicas include: it did not, and status moved", included, int32(1), false, again, status_),
		Entry("that replicas include: it did not take effect, and another client lowered replicas to what is the target size", included, int32(1), false, again, lowered),
		Entry("that replicas include: it did not, and they include less of it", included, int32(1), false, again, counting(1)),
		Entry("that replicas include: it took effect, and they include none of it now", included, int32(1), true, unknown, counting(0)),
		Entry("that replicas include: it took effect, and workload took one of it", included, int32(1), true, unknown, released),
		Entry("that it takes in part: it took effect", included, int32(4), true, done),
		Entry("that it takes in part: it did not, and another client raised to the same replicas", included, int32(4), false, unknown, raised, raised),
		Entry("that replicas do not include: it took effect", excess+"2", int32(1), true, done),
		Entry("that replicas do not include: it did not, and they include as many of it", excess+"2", int32(1), false, unknown, counting(1)),
		Entry("that replicas do not include: it did not, and they include another number", excess+"2", int32(1), false, again, counting(2)),
		Entry("that replicas do not include: it took effect, and they include it now", excess+"2", int32(1), true, unknown, counting(2)),
	)

	DescribeTable("of a removal beside a reserve",
		func(record, machines string, effect bool, want string, events ...event) {
			g := Bounded("1:9", 7, record)
			c, err := NewRemoval(g, Members(machines), false, going("a"), Noon)
			Expect(err).NotTo(HaveOccurred())
			Expect(verdict(c.ResolveOutcome(g.Deployment, after(g.Deployment, c, effect, events...), true))).To(Equal(want))
		},
		Entry("that replicas include: it took effect", included, "SSSSSRR", true, done),
		Entry("that replicas include: it took effect, and workload took a machine of it", included, "SSSSSRR", true, done, released),
		Entry("that replicas include: it did not, and they include less of it", included, "SSSSSRR", false, again, counting(1)),
		Entry("of a machine of it: it did not, and status moved", excess+"1", "RSSSSSSS", false, again, status_),
		Entry("of a machine of it: it did not take effect, and another client wrote another field", excess+"1", "RSSSSSSS", false, again, other),
		Entry("of a machine without a record: it did not, and status moved", scaled+NoonText, "RSSSSSSS", false, again, status_),
		Entry("of a machine without a record: it did not take effect, and another client wrote another field", scaled+NoonText, "RSSSSSSS", false, again, other),
	)

	// grown has the reserve be one larger; replicas do not include that machine yet.
	grown := event(func(d *v1alpha1.MachineDeployment) {
		d.Annotations[v1alpha1.AppliedExcessAnnotation] = "3,max=9,counted=2,replicas=7"
	})

	It("of a raise that takes reserve machines which replicas include shows in the record of these", func() {
		g := Bounded("1:7", 7, excess+"2,max=7,counted=2,replicas=7")
		base := g.Deployment
		c, err := NewRaise(g, 5, 1)
		Expect(err).NotTo(HaveOccurred())
		Expect([]int32{c.From, c.To, c.Replicas}).To(Equal([]int32{5, 6, 7}))
		Expect(verdict(c.ResolveOutcome(base, after(base, c, true, status_), true))).To(Equal(done))
		Expect(verdict(c.ResolveOutcome(base, after(base, c, false, status_), true))).To(Equal(again))
		Expect(verdict(c.ResolveOutcome(base, after(base, c, false, grown), true))).To(Equal(again))
		taken, err := NewGroup(carriedOut(base, c))
		Expect(err).NotTo(HaveOccurred())
		Expect(taken.Replicas()).To(BeEquivalentTo(6))
		Expect(taken.Deployment.Annotations).To(HaveKeyWithValue(v1alpha1.AppliedExcessAnnotation, "1,max=7,counted=1,replicas=7"))
		once, err := NewRaise(taken, 5, 1)
		Expect(err).NotTo(HaveOccurred())
		Expect(once.IsEmpty()).To(BeTrue(), "a raise that is decided anew is not made twice")
	})

	It("of another object of that name never took effect", func() {
		base, c := raise()
		live := after(base, c, true)
		live.UID = "another"
		Expect(verdict(c.ResolveOutcome(base, live, true))).To(Equal(again))
	})

	It("is never called done where it was not, nor made twice where it was (law 5)", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			base, c := raise()
			named := rapid.Bool().Draw(t, "removal")
			if named {
				base, c = remove(rapid.SampledFrom([][]string{nil, {dated}, {scaled + NoonText}, {fixed}, {fixed, dated}, {fixed, scaled + NoonText}}).Draw(t, "notes")...)
			}
			effect := rapid.Bool().Draw(t, "took effect")
			kinds := []event{raised, lowered, other, status_, pruned}
			var events []event
			foreign := false
			for range rapid.IntRange(0, 3).Draw(t, "events") {
				n := rapid.IntRange(0, len(kinds)-1).Draw(t, "event")
				foreign = foreign || n < 2
				events = append(events, kinds[n])
			}
			if !effect && len(events) == 0 {
				return // the version has not moved
			}
			ok, err := c.ResolveOutcome(base, after(base, c, effect, events...), true)
			switch {
			case err != nil:
			case !ok && effect && (c.From != c.To):
				t.Fatal("would be made twice")
			case ok && !effect && named:
				t.Fatal("called done, and nothing is named")
			case ok && !effect && !foreign:
				t.Fatal("called done, and replicas have not changed")
			}
		})
	})
})
