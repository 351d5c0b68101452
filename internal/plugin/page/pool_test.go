// SPDX-License-Identifier: Apache-2.0

package page

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/overview"
)

var _ = Describe("A zone", func() {
	zoneOf := func(replicas, excess int, bounds *overview.Bounds) overview.Zone {
		return overview.Zone{Name: "z", Replicas: replicas, Excess: excess, Applied: excess, Bounds: bounds}
	}

	It("shows replicas and excess within its bounds", func() {
		z := zoneOf(4, 2, &overview.Bounds{Min: 1, Max: 8})
		b := zoneScale(z, zoneEnd(z))
		Expect(b.Parts).To(Equal([]part{{"replicas", "0.00%", "50.00%"}, {"excess", "50.00%", "25.00%"}}))
		Expect(b.Marks).To(Equal([]mark{{"limit", "12.50%"}, {"limit", "100.00%"}}))
	})

	It("has the scale of the widest zone beside it, and tiles of the size that the largest needs", func() {
		many := zoneOf(20, 0, nil)
		many.Machines = make([]overview.Machine, 20)
		few := zoneOf(5, 0, nil)
		few.Machines = make([]overview.Machine, 5)
		p := newPool(overview.Pool{Zones: []overview.Zone{many, few}})
		Expect(p.Zones[1].Scale.Parts[0].Width).To(Equal("25.00%"))
		Expect(p.Zones[1].Tiles.Size).To(Equal(p.Zones[0].Tiles.Size))
		Expect(newPool(overview.Pool{Zones: []overview.Zone{few}}).Zones[0].Tiles.Size).To(BeNumerically(">", p.Zones[1].Tiles.Size))
	})

	It("sums up in its pool", func() {
		a, b := zoneOf(4, 2, nil), zoneOf(3, 1, nil)
		a.Count = map[overview.State]int{overview.ReserveReady: 2}
		p := newPool(overview.Pool{Zones: []overview.Zone{a, b}, Skew: 1})
		Expect([]int{p.Replicas, p.Excess, p.Ready, p.Skew}).To(Equal([]int{7, 3, 2, 1}))
	})

	It("is called what it is in, or else what it is", func() {
		Expect(newZone(overview.Pool{}, overview.Zone{Name: "pool-a"}, 0, 1).Place).To(Equal("pool-a"))
		Expect(newZone(overview.Pool{}, overview.Zone{Name: "pool-a", Zone: "a"}, 0, 1).Place).To(Equal("a"))
	})

	It("lays its machines out in rows", func() {
		t := newTiles(make([]overview.Machine, 10), nil, 10)
		Expect([]int{t.Width, t.Height}).To(Equal([]int{8*35 - 7, 2*35 - 7}))
		Expect([]int{t.Tiles[9].X, t.Tiles[9].Y}).To(Equal([]int{35, 35}))
	})

	It("has tiles however many machines there are", func() {
		for _, n := range []int{0, 1, 16, 17, 60, 61, 400, 401, 5000} {
			t := newTiles(make([]overview.Machine, n), nil, n)
			Expect(t.Tiles).To(HaveLen(n))
			Expect(t.Width).To(BeNumerically("<=", 280), "wider than a phone has room for")
		}
	})
})

var _ = Describe("A share", func() {
	It("shows what is ready, what is not, what is wanted and what it may have", func() {
		rows := newTargets(overview.Balancer{Replicas: 9, Targets: []overview.Target{
			{Name: "a", Min: 1, Max: ptr.To(8), Wanted: 6, Current: 4, Ready: 3}, {Name: "b", Min: 2, Wanted: 10, Current: 10, Ready: 10},
		}})
		Expect(rows[0].Scale.Parts).To(Equal([]part{{"room", "0.00%", "80.00%"}, {"ready", "0.00%", "30.00%"}, {"unready", "30.00%", "10.00%"}}))
		Expect(rows[0].Scale.Marks).To(Equal([]mark{{"wanted", "60.00%"}}))
		Expect([]string{rows[0].Range, rows[1].Range}).To(Equal([]string{"1 to 8", "from 2"}))
	})

	It("lets no maximum that is never reached make all bars short", func() {
		rows := newTargets(overview.Balancer{Replicas: 4, Targets: []overview.Target{{Max: ptr.To(1 << 30), Wanted: 4, Current: 4, Ready: 4}}})
		Expect(rows[0].Scale.Parts[1]).To(Equal(part{"ready", "0.00%", "100.00%"}))
	})

	DescribeTable("shows what is wrong with a cluster",
		func(c overview.Cluster, why string) { Expect(clusterTrouble(c)).To(Equal(why)) },
		Entry("nothing", overview.Cluster{Reachable: true}, ""),
		Entry("limited", overview.Cluster{Reachable: true, Limited: true}, "needs more replicas, but is at its maximum"),
		Entry("refused", overview.Cluster{Reachable: true, State: "Refused", Why: "no right to list pods"}, "no right to list pods"),
		Entry("stuck at its limit", overview.Cluster{Reachable: true, Limited: true, Why: "requested replicas do not become ready"}, "requested replicas do not become ready"),
		Entry("out of reach, which makes all else old", overview.Cluster{Limited: true}, "unreachable: these numbers are not up to date"),
	)

	It("stays within its bar whatever the numbers are", func() {
		b := newBar(0)
		b.addPart("ready", -5, 7)
		b.addMark("wanted", 12)
		Expect(b.Parts).To(Equal([]part{{"ready", "0.00%", "100.00%"}}))
		Expect(b.Marks).To(Equal([]mark{{"wanted", "100.00%"}}))
	})
})
