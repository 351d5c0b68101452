// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
)

var _ = Describe("Buffers of different sizes", func() {
	// placed are the chunks of buffers that have a place, and those that are ready, by name.
	placed := func(p plan.Plan) (text string) {
		for _, d := range p.Decisions {
			text += fmt.Sprintf("%s: %d of %d, %d ready; ", d.Buffer.Name, d.Placed, d.Chunks, d.Ready)
		}
		return text + Requests(p)
	}

	It("share the machines that a maximum leaves", func() {
		v := plan.View{Buffers: []plan.Buffer{Chunks("large", 3, "cpu=3"), Chunks("small", 9, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 5)}}
		Expect(placed(plan.New(v))).To(Equal("large: 2 of 3, 0 ready; small: 2 of 9, 0 ready; a=2"))
		for _, d := range plan.New(v).Decisions {
			Expect(d.Lack.Reason).To(Equal(reason.NoRoom))
		}
	})

	It("each have a place where they need one, whichever has one already", func() {
		for first, second := range map[string]string{"a": "b", "b": "a"} {
			v := plan.View{
				Buffers: []plan.Buffer{Chunks("older", 1, "cpu=1", InPool(first)), Chunks("younger", 1, "cpu=2", InPool(second))},
				Pools:   []plan.Pool{Site("a", "cpu=4", 9), Site("b", "cpu=4", 9)}, Reserves: []*autoscaling.Reserve{plan.NewReserve(Namespace, plan.Request{Pool: "a", Machines: 1})},
			}
			Expect(placed(plan.New(v))).To(Equal("older: 1 of 1, 0 ready; younger: 1 of 1, 0 ready; b=1"))
		}
	})

	It("are ready on as many machines as are requested for them, whoever has more there", func() {
		v := plan.View{Buffers: []plan.Buffer{Chunks("b", 8, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 4, Holds(3, reason.Complete)), Site("b", "cpu=4", 4)}}
		Expect(placed(plan.New(v))).To(Equal("b: 8 of 8, 4 ready; a=1 b=1"))
	})

	It("keep as many machines as there may be chunks of all of them, while they cannot be read", func() {
		v := plan.View{Pools: []plan.Pool{Site("a", "cpu=4", 9), Site("b", "cpu=4", 9)}}
		for name, chunks := range map[string]int32{"two": 2, "three": 3} {
			b := Chunks(name, 1, "cpu=1")
			b.Lacks, b.Object.Status.Replicas = "no right", ptr.To(chunks)
			v.Buffers = append(v.Buffers, b)
		}
		for _, pool := range []string{"a", "b"} {
			v.Reserves = append(v.Reserves, plan.NewReserve(Namespace, plan.Request{Pool: pool, Machines: 4}))
		}
		Expect(Requests(plan.New(v))).To(Equal("b=1"))
	})
})
