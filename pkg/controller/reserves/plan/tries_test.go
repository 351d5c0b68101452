// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	. "github.com/evenkeel/evenkeel/test/builders/reserves"
)

// shortAfter is a view in which a plan has been carried out, and at most so many machines can be created in each MachineDeployment.
func shortAfter(v View, most []int) View {
	v = after(v)
	for i := range v.Pools {
		if n := most[i]; v.Pools[i].Exist > n {
			Holds(n, n, reason.CannotBeMade)(&v.Pools[i])
		}
	}
	return v
}

var _ = It("A MachineDeployment keeps its try beyond its share, too, where another one stands in (laws 4 and 9)", func() {
	v := View{Now: Monday, Pools: append(two(), Site("c", 1)), Reserves: []*v1alpha1.Reserve{Wish("r", Replicas(6))}}
	play := func(a, b int) string {
		for range 8 {
			v = shortAfter(v, []int{a, b, 9})
		}
		Expect(New(v).Requests).To(BeEmpty())
		return spread(New(v).Decisions[0])
	}
	Expect(play(9, 9)).To(Equal("a=2 b=2 c=2"))
	Expect(play(0, 2)).To(Equal("a=1* b=3* c=4"), "else b is complete with 2, and asked for 3 again")
	Expect(play(0, 9)).To(Equal("a=1* b=3 c=3"))
	Expect(play(9, 9)).To(Equal("a=2 b=2 c=2"))
})

var _ = It("Plans come to rest wherever machines cannot be created, and request all that can be (laws 4 and 9)", func() {
	rapid.Check(GinkgoTB(), func(t *rapid.T) {
		v, most, room := View{Now: Monday}, []int{}, 0
		for i := range rapid.IntRange(1, 4).Draw(t, "pools") {
			above := rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(t, "room")
			v.Pools = append(v.Pools, Site(string(rune('a'+i)), 1, Bounds("0:"+string(rune('1'+above)))))
			most = append(most, rapid.SampledFrom([]int{0, 1, 2, 3, 9}).Draw(t, "most"))
			room += min(above, most[i])
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "reserves") {
			v.Reserves = append(v.Reserves, Wish("r"+string(rune('0'+i)), Replicas(rapid.Int32Range(0, 9).Draw(t, "count"))))
			if i > 0 {
				Names(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3, rapid.ID).Draw(t, "names")...)(v.Reserves[i])
			}
		}
		for range 40 {
			v = shortAfter(v, most)
		}
		rest := text(New(v))
		for range 8 {
			if v = shortAfter(v, most); text(New(v)) != rest {
				t.Fatalf("%v: %s\nand then %s", most, rest, text(New(v)))
			}
		}
		ready, d := 0, New(v).Decisions[0]
		for _, p := range d.Parts {
			ready += p.Ready
		}
		if want := min(d.Desired, room); ready < want {
			t.Fatalf("%v: %d ready instead of %d: %s", most, ready, want, rest)
		}
	})
})
