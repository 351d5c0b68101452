// SPDX-License-Identifier: Apache-2.0

package page

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/internal/overview"
)

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
