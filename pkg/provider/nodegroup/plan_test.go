// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"math"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

var _ = Describe("A raise", func() {
	DescribeTable("is one change of replicas",
		func(g Group, delta int, want string) {
			c, err := NewRaise(g, g.Replicas(), int32(delta))
			Expect(err).NotTo(HaveOccurred())
			Expect(c.String()).To(Equal(want))
		},
		Entry("by one", group("1:5:2", 3), 1, "3>4"),
		Entry("up to max: the reserve gives way (rule 1)", group("1:5:2", 3, excess+"2,max=5"), 2, "3>5"),
		Entry("from zero", group("0:6:2", 0), 1, "0>1"),
		Entry("from below min", group("3:6", 1), 1, "1>2"),
		Entry("without a balance mode nothing is written of it", group("1:9", 3, balanced+"Off"), 1, "3>4"),
		Entry("unsplit where growth is split", group("1:9", 3, balanced+"ScaleUp", unsplit+"3"), 2, "3>5 5"),
		Entry("where a mode has just begun: nothing is split that was there before", group("1:9", 3, balanced+"Continuous"), 2, "3>5"),
		Entry("unsplit where the mode is the default and shows by its annotation alone", group("1:9", 3, unsplit+"3"), 2, "3>5 5"),
		Entry("what is being split goes on being split", group("1:20", 9, unsplit+"3"), 2, "9>11 5"),
		Entry("where the annotation is invalid, which counts as none", group("1:9", 3, unsplit+"x"), 1, "3>4"),
		Entry("of workload alone, where replicas include the reserve", group("1:9", 7, included), 1, "5>6 of 8"),
		Entry("up to max, where workload takes the reserve that replicas include", group("1:9", 7, included), 4, "5>9"),
		Entry("of the largest number there is", group("0:2147483647", math.MaxInt32-1, unsplit+"2147483647"), 1, "2147483646>2147483647 2147483647"),
	)

	DescribeTable("is refused",
		func(g Group, delta int, want codes.Code) {
			_, err := NewRaise(g, g.Replicas(), int32(delta))
			Expect(code(err)).To(Equal(want))
		},
		Entry("by nothing", group("1:5", 3), 0, codes.InvalidArgument),
		Entry("by less than nothing", group("1:5", 3), -1, codes.InvalidArgument),
		Entry("beyond max", group("1:5", 3), 3, codes.OutOfRange),
		Entry("beyond max, where a user is already", group("1:5", 7), 1, codes.OutOfRange),
		Entry("beyond all numbers", group("1:5", 3), math.MaxInt32, codes.OutOfRange),
	)
})

// passed is the time of a change that is before machines are named at noon.
const passed = " 2026-03-01T11:59:59Z"

var _ = Describe("A raise of a group that others have raised since the caller's loop began", func() {
	DescribeTable("goes to what the caller has in mind",
		func(replicas, seen, delta int, want string) {
			c, err := NewRaise(group("1:5", int32(replicas)), int32(seen), int32(delta))
			Expect(err).NotTo(HaveOccurred())
			Expect(c.String()).To(Equal(want))
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
			c, err := NewRaise(group("1:5", replicas), seen, 2)
			Expect(err).NotTo(HaveOccurred())
			Expect(c.callerDelta).To(BeEquivalentTo(2))
		}
	})

	It("is refused where that is more than max", func() {
		_, err := NewRaise(group("1:5", 4), 3, 3)
		Expect(code(err)).To(Equal(codes.OutOfRange))
	})
})

var _ = Describe("A removal", func() {
	DescribeTable("is one change of replicas and names",
		func(g Group, machines, leave, want string) {
			c, err := NewRemoval(g, members(machines), spread(members(machines)), going(leave), noon)
			Expect(err).NotTo(HaveOccurred())
			Expect(c.String()).To(Equal(want))
		},
		Entry("of one", group("1:5", 3), "SSS", "b", "3>2 b~"+noonText+passed),
		Entry("of several, sorted", group("1:5", 3), "SSS", "cb", "3>1 b~"+noonText+",c~"+noonText+passed),
		Entry("at the cap, with an applied excess that keeps the sum (trap 6)", group("1:5:2", 5, excess+"2,max=5"), "SSSSS", "a", "5>4 a~"+noonText+" "+noonText),
		Entry("where the reserve gives room to fewer machines than go, the number says it", group("1:5:2", 4, excess+"2,max=5"), "SSSSR", "ab", "4>2 a~"+noonText+",b~"+noonText+passed),
		Entry("after others that are on their way", group("1:5", 3, trigger+"x~2026-03-01T11:00:00Z"), "SSS", "a",
			"3>2 x~2026-03-01T11:00:00Z,a~"+noonText+passed),
		Entry("later than the last time, which says it for machines named until then", group("1:5", 3, scaled+"2026-03-01T11:59:59Z"), "SSS", "a", "3>2 a~"+noonText),
		Entry("within the second of the last time", group("1:5", 3, scaled+noonText), "SSS", "a", "3>2 a~2026-03-01T12:00:01Z"),
		Entry("by a clock that is behind the last one", group("1:5", 3, scaled+"2026-03-01T12:00:09Z"), "SSS", "a",
			"3>2 a~2026-03-01T12:00:10Z"),
		Entry("at the cap, by a clock that is behind", group("1:5:2", 5, excess+"2,max=5", scaled+"2026-03-01T12:00:09Z"), "SSSSS", "a",
			"5>4 a~2026-03-01T12:00:09Z 2026-03-01T12:00:09Z"),
		Entry("after a time that nobody can read", group("1:5", 3, scaled+"soon"), "SSS", "a", "3>2 a~"+noonText+passed),
		Entry("of one that leaves already: nothing", group("1:5", 2), "SSL", "c", "2>2"),
		Entry("of one that terminates: nothing", group("1:5", 2), "SST", "c", "2>2"),
		Entry("of one that is gone: nothing", group("1:5", 2), "SS", "", "2>2"),
		Entry("twice for the same: the second half only", group("1:5", 3), "SSSL", "cd", "3>2 c~"+noonText+passed),
		Entry("of one in reserve: it goes, replicas stay", group("1:5", 3), "SSSR", "d", "3>3 d~"+noonText+" "+noonText),
		Entry("of one in reserve at min", group("3:5", 3), "SSSR", "d", "3>3 d~"+noonText+" "+noonText),
		Entry("of one in reserve below min", group("4:5", 3), "SSSR", "d", "3>3 d~"+noonText+" "+noonText),
		Entry("of both kinds", group("1:5", 3), "SSSR", "cd", "3>2 c~"+noonText+",d~"+noonText+passed),
		Entry("where growth is split", group("1:9", 5, unsplit+"5"), "SSSSS", "a", "5>4 a~"+noonText+passed+" 4"),
		Entry("while growth is being split", group("1:9", 8, unsplit+"5"), "SSSSS", "a", "8>7 a~"+noonText+passed+" 4"),
		Entry("while growth is being split, where replicas would reach max and the machines do not", group("1:9:2", 8, unsplit+"5", excess+"2,max=9"), "SSSSSRR", "a",
			"8>7 a~"+noonText+passed+" 4"),
		Entry("where what may be acted on is out of date", group("1:9", 3, unsplit+"5"), "SSS", "a", "3>2 a~"+noonText+passed+" 2"),
		Entry("of one, where replicas include the reserve", group("1:9", 7, included), "SSSSSRR", "a", "5>4 of 6 a~"+noonText+passed),
		Entry("of one in reserve that replicas include", group("1:9", 7, included), "SSSSSRR", "f", "5>5 f~"+noonText+" "+noonText),
		Entry("beside an old machine that leaves", group("1:5", 2), "SSL", "a", "2>1 a~"+noonText+passed),
	)

	DescribeTable("is refused whole",
		func(g Group, machines, leave string) {
			c, err := NewRemoval(g, members(machines), spread(members(machines)), going(leave), noon)
			Expect(code(err)).To(Equal(codes.FailedPrecondition))
			Expect(c.IsEmpty()).To(BeTrue())
		},
		Entry("below min", group("3:5", 3), "SSS", "a"),
		Entry("below min by the last of several", group("2:5", 3), "SSS", "ab"),
		Entry("of a preserved machine", group("1:5", 3), "SSP", "ac"),
		Entry("of a preserved machine in reserve", group("1:5", 2), "SSQ", "ac"),
		Entry("during a rollout", group("1:5", 3), "SSO", "a"),
	)
})

var _ = It("The error for a removal below min contains the number of machines and the min", func() {
	_, err := NewRemoval(group("2:5", 3), members("SSS"), false, going("ab"), noon)
	Expect(err).To(MatchError(ContainSubstring("remove 2 of the 3 machines of pool: min is 2")))
})

var _ = Describe("A change of the target size", func() {
	It("is by as much for the caller", func() {
		c, err := NewRemoval(group("1:5", 3), members("SSS"), false, going("ab"), noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(c.callerDelta).To(BeEquivalentTo(-2))
		Expect(NewWithdrawal(group("1:9", 5), members("SSS"), -2).callerDelta).To(BeEquivalentTo(-2))
	})

	It("of nothing writes nothing, also where growth is split", func() {
		c := NewWithdrawal(group("1:9", 3, unsplit+"3"), members("SSS"), -1)
		Expect(c.IsEmpty()).To(BeTrue())
		Expect(c.Annotations).To(BeEmpty())
	})

	It("removes an annotation that is to be empty", func() {
		c := Change{Annotations: map[string]string{"a": "", "b": "c"}}
		d := group("1:9", 3).Deployment
		d.ResourceVersion, d.UID = "7", "u"
		Expect(c.mergePatch(d)).To(MatchJSON(`{"metadata":{"resourceVersion":"7","uid":"u","annotations":{"a":null,"b":"c"}}}`))
	})
})

var _ = Describe("A reminder", func() {
	DescribeTable("writes the time that makes machines go whatever the number is",
		func(want string, notes ...string) {
			c := NewReminder(group("1:9", 3, notes...), going("a"), noon)
			Expect(c.String()).To(Equal(want))
			Expect(c.IsEmpty()).To(Equal(want == "3>3"))
		},
		Entry("of one that is overdue", "3>3 "+noonText, trigger+"a~2026-03-01T11:59:50Z"),
		Entry("not before", "3>3", trigger+"a~2026-03-01T11:59:51Z"),
		Entry("not for one that is gone or deleted", "3>3", trigger+"b~2026-03-01T11:00:00Z"),
		Entry("not twice", "3>3", trigger+"a~2026-03-01T11:00:00Z", scaled+"2026-03-01T11:00:00Z"),
		Entry("again for one that was named since", "3>3 "+noonText, trigger+"a~2026-03-01T11:00:01Z", scaled+"2026-03-01T11:00:00Z"),
		Entry("not where there are none", "3>3"),
		Entry("not for what nobody can read", "3>3", trigger+"a~soon,a"),
	)
})

var _ = Describe("A withdrawal", func() {
	DescribeTable("takes back what does not exist",
		func(g Group, machines string, delta int, want string) {
			Expect(NewWithdrawal(g, members(machines), int32(delta)).String()).To(Equal(want))
		},
		Entry("all of it", group("1:9", 5), "SSS", -2, "5>3"),
		Entry("no more than asked for", group("1:9", 5), "SSS", -1, "5>4"),
		Entry("clamped: a placeholder is a machine (trap 5)", group("1:9", 4), "SSSS", -1, "4>4"),
		Entry("clamped: one missing of two", group("1:9", 5), "SSSS", -2, "5>4"),
		Entry("where the reserve is missing too, that is not replicas' (trap 5)", group("1:9:2", 4, excess+"2,max=9"), "SSSS", -1, "4>4"),
		Entry("nothing while the reserve has not given way yet: a machine that serves would go", group("1:9:2", 5, excess+"2,max=9"), "SSSSRRR", -1, "5>5"),
		Entry("what the reserve leaves over", group("1:9:2", 5, excess+"2,max=9"), "SSSRR", -2, "5>3"),
		Entry("not what leaves", group("1:9", 3), "SSSL", -1, "3>3"),
		Entry("beside one that terminates, which machine-controller-manager does not count", group("1:9", 4), "SSST", -2, "4>3"),
		Entry("not below min", group("3:9", 4), "S", -3, "4>3"),
		Entry("nothing at min", group("3:9", 3), "S", -3, "3>3"),
		Entry("nothing for more than nothing", group("1:9", 5), "S", 1, "5>5"),
		Entry("the most there can be", group("0:9", 5), "", math.MinInt32, "5>0"),
		Entry("where growth is split", group("1:9", 5, unsplit+"5"), "SSS", -2, "5>3 3"),
		Entry("growth that waits to be split: no machine is missing", group("1:9", 7, unsplit+"5"), "SSSSS", -2, "7>5 5"),
		Entry("machines that are missing first, then growth that waits", group("1:9", 8, unsplit+"5"), "SSSS", -3, "8>5 4"),
		Entry("growth that waits, where too many serve already", group("1:9", 7, unsplit+"5"), "SSSSSS", -3, "7>5 5"),
	)
})

// drawn is a group with machines at random.
func drawn(t *rapid.T) (Group, []Member) {
	lo := rapid.Int32Range(0, 4).Draw(t, "min")
	hi := rapid.Int32Range(lo, 8).Draw(t, "max")
	notes := []string{}
	if rapid.Bool().Draw(t, "excess") {
		notes = append(notes, excess+rapid.SampledFrom([]string{"2", "3,max=5", "1,max=9", "x"}).Draw(t, "applied"))
	}
	if rapid.Bool().Draw(t, "split") {
		notes = append(notes, unsplit+rapid.SampledFrom([]string{"0", "3", "9"}).Draw(t, "may be acted on"))
	}
	g, err := NewGroup(deployment(v1alpha1.Bounds{Min: lo, Max: hi}.String(), rapid.Int32Range(0, 10).Draw(t, "replicas"), notes...))
	if err != nil {
		t.Fatal(err)
	}
	text := rapid.StringOfN(rapid.SampledFrom([]rune("SSSSRRLTPO")), 0, 9, -1).Draw(t, "machines")
	return g, members(text)
}

var _ = Describe("Laws of changes", func() {
	It("6: no raise passes max, nothing falls below min, and what is refused changes nothing", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			g, all := drawn(t)
			raised, err := NewRaise(g, g.Replicas(), rapid.Int32Range(-2, 9).Draw(t, "delta"))
			if err != nil && !raised.IsEmpty() || err == nil && (raised.To > g.Bounds.Max || raised.To <= raised.From) {
				t.Fatalf("raise %v: %v", raised, err)
			}
			leave := going(rapid.StringOfN(rapid.SampledFrom([]rune("abcdefghi")), 0, 9, -1).Draw(t, "leave"))
			removed, err := NewRemoval(g, all, spread(all), leave, noon)
			if err != nil && !removed.IsEmpty() || removed.To > removed.From || removed.To < removed.From && removed.To < g.Bounds.Min {
				t.Fatalf("removal %v: %v", removed, err)
			}
			back := NewWithdrawal(g, all, -rapid.Int32Range(-1, 9).Draw(t, "back"))
			if back.To > back.From || back.To < back.From && back.To < g.Bounds.Min {
				t.Fatalf("withdrawal %v", back)
			}
		})
	})

	It("7: a removal carried out is nothing the second time, and lowers replicas by those that served", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			g, all := drawn(t)
			leave := going(rapid.StringOfN(rapid.SampledFrom([]rune("abcdefghi")), 0, 9, -1).Draw(t, "leave"))
			c, err := NewRemoval(g, all, spread(all), leave, noon)
			if err != nil {
				return
			}
			serving := int32(0)
			for i := range all {
				if leave[all[i].Name()] {
					if all[i].Serves() {
						serving++
					}
					all[i].Gone = true
				}
			}
			if c.From-c.To != serving {
				t.Fatalf("%v for %d that served", c, serving)
			}
			d := carriedOut(g.Deployment, c)
			for name := range leave {
				if _, there := pool.Named(d)[name]; !there && strings.Contains(c.String(), name+"~") {
					t.Fatalf("%s is not named by %v", name, c)
				}
			}
			again, err := NewRemoval(Group{Deployment: d, Bounds: g.Bounds}, all, spread(all), leave, noon.Add(time.Hour))
			if err != nil || !again.IsEmpty() {
				t.Fatalf("again: %v %v", again, err)
			}
		})
	})

	It("8: a withdrawal leaves machine-controller-manager no machine too many", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			g, all := drawn(t)
			c := NewWithdrawal(g, all, -99)
			if c.IsEmpty() {
				return
			}
			lowered := carriedOut(g.Deployment, c)
			counted := 0
			for _, m := range all {
				if m.Counted() {
					counted++
				}
			}
			before, after := pool.Visible(g.Deployment), pool.Visible(lowered)
			if after < counted && after < before {
				t.Fatalf("%d machines, %d wanted after %v", counted, after, c)
			}
		})
	})

	It("write no more than they decided", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			g, all := drawn(t)
			before := g.Deployment.DeepCopy()
			_, _ = NewRaise(g, g.Replicas(), 1)
			_, _ = NewRemoval(g, all, spread(all), going("abc"), noon)
			_ = NewWithdrawal(g, all, -3)
			if !equality.Semantic.DeepEqual(before, g.Deployment) {
				t.Fatal("the MachineDeployment was changed")
			}
		})
	})
})

// carriedOut is a MachineDeployment after a change.
func carriedOut(d *v1alpha1.MachineDeployment, c Change) *v1alpha1.MachineDeployment {
	d = d.DeepCopy()
	if c.From != c.To {
		if d.Spec.Replicas != c.Replicas {
			d.Generation++
		}
		d.Spec.Replicas = c.Replicas
	}
	for key, value := range c.Annotations {
		if d.Annotations[key] = value; value == "" {
			delete(d.Annotations, key)
		}
	}
	return d
}
