// SPDX-License-Identifier: Apache-2.0

package page

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/internal/overview"
)

var _ = Describe("The timeline", func() {
	of := func(samples ...sample) history {
		return history{since: noon.Add(-time.Hour), past: samples, now: samples[len(samples)-1]}
	}
	ago := func(steps int) time.Time { return noon.Add(-time.Duration(steps) * step) }

	It("runs at right angles from one step to the next, and leaves gaps where nothing was seen", func() {
		t := newTimeline(of(
			sample{at: ago(5), replicas: 10}, sample{at: ago(4), replicas: 10}, sample{at: ago(3), replicas: 5},
			sample{at: ago(0), replicas: 10},
		), noon)
		Expect(t.Strips[0].Lines).To(Equal([]line{{"line replicas", "M354 0H356V50H357M359 0H360"}}))
	})

	It("draws areas above zero", func() {
		t := newTimeline(of(sample{at: ago(1), ready: 2, excess: 4}, sample{at: ago(0), ready: 4, excess: 4}), noon)
		Expect(t.Strips[1].Lines).To(Equal([]line{
			{"area ready", "M358 100V50H359V0H360V100Z"}, {"line excess", "M358 0H360"},
		}))
		Expect(t.Strips[1].Now).To(Equal("4 of 4"))
	})

	It("shows that pods are unknown, and draws none", func() {
		t := newTimeline(of(sample{at: ago(1), waiting: -1}, sample{at: ago(0), waiting: -1}), noon)
		Expect(t.Strips[2].Now).To(Equal("unknown"))
		Expect(t.Strips[2].Lines).To(Equal([]line{{"area waiting", ""}}))
	})

	It("draws no step that is older than an hour or newer than now", func() {
		for _, s := range window(of(sample{at: ago(steps)}, sample{at: ago(-1)}), noon, steps) {
			Expect(s).To(BeNil())
		}
	})

	DescribeTable("reaches back as far as anything was seen, in few steps",
		func(since time.Duration, minutes int, axis string) {
			t := newTimeline(history{since: noon.Add(-since)}, noon)
			Expect(t.Steps).To(Equal(minutes * 6))
			Expect(t.Axis).To(And(HaveLen(5), HaveEach(Not(BeEmpty())), HaveExactElements(axis, Not(BeEmpty()), Not(BeEmpty()), Not(BeEmpty()), "now")))
		},
		Entry("at first", time.Duration(0), 8, "8 min ago"),
		Entry("as long as the first step is in it", 8*time.Minute-step, 8, "8 min ago"),
		Entry("then further", 8*time.Minute, 20, "20 min ago"),
		Entry("until it is an hour", 20*time.Minute, 60, "60 min ago"),
		Entry("for ever", 100*time.Hour, 60, "60 min ago"),
	)

	DescribeTable("shows when it began to look, until that is an hour ago",
		func(since time.Duration, short bool) {
			Expect(newTimeline(history{since: noon.Add(-since)}, noon).Short).To(Equal(short))
		},
		Entry("now", time.Duration(0), true),
		Entry("almost an hour", 59*time.Minute, true),
		Entry("an hour", time.Hour, false),
	)

	It("is there in numbers, the newest first", func() {
		t := newTimeline(of(
			sample{at: noon.Add(-10 * time.Minute), replicas: 1, excess: 2, ready: 3, waiting: 4},
			sample{at: noon.Add(-7 * time.Minute), replicas: 9}, sample{at: noon, replicas: 5},
		), noon.Add(3*time.Second))
		Expect(t.Table).To(Equal([]entry{{At: noon, Replicas: 5}, {noon.Add(-10 * time.Minute), 1, 2, 3, 4}}))
	})
})

var _ = Describe("The last hour", func() {
	waiting := func(at time.Time, pods int) overview.Overview {
		o := world(at, 3, 2)
		o.PodsWaiting = pods
		return o
	}

	It("begins with the first overview", func() {
		h := history{}.record(world(noon, 3, 2)).record(world(noon.Add(time.Minute), 4, 1))
		Expect(h.since).To(Equal(noon))
		Expect(h.past).To(Equal([]sample{
			{at: noon, replicas: 3, excess: 2, ready: 2},
			{at: noon.Add(time.Minute), replicas: 4, excess: 1, ready: 1},
		}))
	})

	It("keeps of a step what is newest, and the worst of what lasts a moment", func() {
		few := waiting(noon.Add(2*time.Second), 9)
		few.Pools[0].Zones[0].Count[overview.ReserveReady] = 0
		h := history{}.record(waiting(noon, 1)).record(few).record(waiting(noon.Add(4*time.Second), 0))
		Expect(h.past).To(Equal([]sample{{at: noon, replicas: 3, excess: 2, ready: 0, waiting: 9}}))
		Expect(h.now).To(Equal(sample{at: noon, replicas: 3, excess: 2, ready: 2}))
	})

	It("forgets what is older than an hour", func() {
		h := history{}.record(world(noon, 1, 0)).record(world(noon.Add(time.Minute), 2, 0)).record(world(noon.Add(time.Hour), 3, 0))
		Expect(h.past).To(HaveLen(2))
		Expect(h.past[0].at).To(Equal(noon.Add(time.Minute)))
		Expect(h.since).To(Equal(noon), "what was forgotten was seen all the same")
	})

	It("leaves what it was alone", func() {
		before := history{}.record(world(noon, 1, 0))
		before.record(world(noon.Add(time.Second), 7, 0))
		Expect(before.past[0].replicas).To(Equal(1))
	})

	It("is bounded, in order and ends with what is newest, whatever it is told", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			h, at := history{}, noon
			for _, ms := range rapid.SliceOfN(rapid.IntRange(0, 20_000), 1, 800).Draw(t, "apart") {
				at = at.Add(time.Duration(ms) * time.Millisecond)
				h = h.record(world(at, rapid.IntRange(0, 9).Draw(t, "replicas"), 1))
			}
			if len(h.past) > steps || h.past[len(h.past)-1].at != at.Truncate(step) || at.Sub(h.past[0].at) > span {
				t.Fatalf("%d steps from %s to %s at %s", len(h.past), h.past[0].at, h.past[len(h.past)-1].at, at)
			}
			for i := 1; i < len(h.past); i++ {
				if !h.past[i-1].at.Before(h.past[i].at) {
					t.Fatalf("step %d is at %s, after %s", i, h.past[i].at, h.past[i-1].at)
				}
			}
		})
	})
})
