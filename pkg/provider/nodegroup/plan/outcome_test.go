// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
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
