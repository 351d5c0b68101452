// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
)

// reserved is the Reserve of a MachineDeployment.
func reserved(pool string, machines int) []*autoscaling.Reserve {
	return []*autoscaling.Reserve{plan.NewReserve(Namespace, plan.Request{Pool: pool, Machines: machines})}
}

// evenly has chunks spread over the machines of all pools.
func evenly(b *plan.Buffer) {
	b.Template.Template.Labels = map[string]string{"app": "web"}
	b.Template.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: "pool", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: metav1.SetAsLabelSelector(map[string]string{"app": "web"}),
	}}
}

// evenlyIfPossible has chunks spread over the machines of all pools, but not at any price.
func evenlyIfPossible(b *plan.Buffer) {
	evenly(b)
	b.Template.Template.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.ScheduleAnyway
}

var _ = DescribeTable("Why chunks have no place",
	func(want string, b plan.Buffer, pools ...plan.Pool) {
		d := plan.New(plan.View{Buffers: []plan.Buffer{b}, Pools: pools}).Decisions[0]
		Expect(d.Lack.Reason + ": " + d.Lack.Message).To(Equal(want))
	},
	Entry("there is no pool", reason.NoPools+": there is no room for 1 of 1 chunk: no MachineDeployment has bounds with a maximum and machines whose size is known", Chunks("b", 1, "cpu=1")),
	Entry("the pool that is named does not exist", reason.PoolNotFound+`: there is no room for 2 of 2 chunks: no MachineDeployment or worker pool with the name "x" can hold chunks`,
		Chunks("b", 2, "cpu=1", InPool("x")), Site("a", "cpu=4", 9)),
	Entry("no pool is named, and all belong to workers", reason.DoesNotFit+": there is no room for 1 of 1 chunk: a chunk fits no empty machine", Chunks("b", 1, "cpu=9"), Site("a", "cpu=4", 9, worker("w"))),
	Entry("the maximum is reached", reason.NoRoom+": there is no room for 3 of 7 chunks: raise max in the bounds of a, or ask for fewer chunks", Chunks("b", 7, "cpu=1"), Site("a", "cpu=4", 4)),
	Entry("the maximum is reached, for chunks with an affinity", reason.NoRoom+": there is no room for 2 of 3 chunks: raise max in the bounds of a, or ask for fewer chunks", Chunks("b", 3, "cpu=1", apart), Site("a", "cpu=4", 4)),
	Entry("affinity keeps them away", reason.DoesNotFit+": there is no room for 1 of 2 chunks: affinity or topology spread keeps more chunks from a", Chunks("b", 2, "cpu=1", apartBy("pool")), Site("a", "cpu=4", 9)),
	Entry("affinity keeps them away, also from a pool with more machines than are considered", reason.DoesNotFit+": there is no room for 1 of 2 chunks: affinity or topology spread keeps more chunks from a",
		Chunks("b", 2, "cpu=1", apartBy("pool")), Site("a", "cpu=4", 5000)),
	Entry("topology spread keeps them away", reason.DoesNotFit+": there is no room for 5 of 8 chunks: affinity or topology spread keeps more chunks from b", Chunks("b", 8, "cpu=4", evenly), Site("a", "cpu=4", 4), Site("b", "cpu=4", 99)),
	Entry("a pool may have as many machines as are considered, and no more", reason.NoRoom+": there is no room for 1 of 1001 chunks: raise max in the bounds of a, or ask for fewer chunks",
		Chunks("b", 1001, "cpu=4"), Site("a", "cpu=4", 1003)),
	Entry("a pool may have more machines than are considered", reason.LimitReached+": there is no room for 1 of 1001 chunks: at most 1000 machines of each MachineDeployment hold chunks",
		Chunks("b", 1001, "cpu=4"), Site("a", "cpu=4", 1004)),
)

var _ = It("Chunks have no place because the maximum is reached, also where machines cannot be created if all that it allows are ready", func() {
	v := plan.View{Buffers: []plan.Buffer{Chunks("b", 8, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 4, Holds(1, reason.CannotBeMade))}, Reserves: reserved("a", 1)}
	d := plan.New(v).Decisions[0]
	Expect(d.Placed).To(Equal(4))
	Expect(d.Lack.Message).To(Equal("there is no room for 4 of 8 chunks: raise max in the bounds of a, or ask for fewer chunks"))
})

var _ = It("At least 20 machines of each MachineDeployment are considered, however many there are (law 8)", func() {
	v := plan.View{Buffers: []plan.Buffer{Chunks("b", 21, "cpu=4", selecting("p000"))}}
	for i := range 201 {
		v.Pools = append(v.Pools, Site(fmt.Sprintf("p%03d", i), "cpu=4", 99))
	}
	p := plan.New(v)
	Expect(Requests(p)).To(Equal("p000=20"))
	Expect(p.Decisions[0].Lack.Message).To(ContainSubstring("at most 20 machines of each MachineDeployment"))
})

var _ = Describe("Many different chunks for one of 20 MachineDeployments (law 8)", func() {
	different := func(n int, change ...func(*plan.Buffer)) plan.View {
		var v plan.View
		for i := range 20 {
			v.Pools = append(v.Pools, Site(fmt.Sprintf("p%02d", i), "cpu=16", 9999))
		}
		for i := range n {
			v.Buffers = append(v.Buffers, Chunks(fmt.Sprintf("b%04d", i), 1, fmt.Sprintf("cpu=%dm", 1000+i), append(change, selecting("p00"))...))
		}
		return v
	}
	// without counts decisions by the reason why chunks have no place.
	without := func(v plan.View) map[string]int {
		all := map[string]int{}
		for _, d := range plan.New(v).Decisions {
			if d.Lack != nil {
				all[d.Lack.Reason+": "+d.Lack.Message]++
			}
		}
		return all
	}
	const tooMany = reason.LimitReached + ": there is no room for 1 of 1 chunk: there are too many different chunks to find a place for each"

	It("have a place if they are a thousand", func() {
		Expect(without(different(1000))).To(BeEmpty())
	})

	// shared has so many chunks of an owner, and nine other owners.
	shared := func(n int) plan.View {
		v := different(n, dedicated("namespace"))
		for i := range 9 {
			v.Buffers = append(v.Buffers, Chunks(fmt.Sprint("z", i), 1, "cpu=1", dedicated(fmt.Sprint("namespace/n", i))))
		}
		return v
	}

	It("have a place if there are ten owners, each with a tenth of the work", func() {
		Expect(without(shared(300))).To(BeEmpty())
	})

	It("do not all have a place if a tenth of the work is not enough, although all of it would be", func() {
		Expect(without(different(1500))).To(BeEmpty())
		Expect(without(shared(1500))).To(HaveKeyWithValue(tooMany, 200))
	})

	DescribeTable("have none, although machines could be created, if they are 5,000 and others are larger",
		func(change ...func(*plan.Buffer)) {
			Expect(without(different(5000, change...))).To(HaveKeyWithValue(tooMany, 200))
		},
		Entry("without rules"),
		Entry("with rules that keep no chunk away", evenlyIfPossible),
		Entry("with rules that may keep chunks away, but do not", apart),
	)

	It("have still none for that reason once machines are requested for some of them", func() {
		Expect(without(After(shared(1500)))).To(HaveKeyWithValue(tooMany, 200))
	})

	It("are not the reason why chunks have no place in a MachineDeployment whose maximum is reached", func() {
		v := different(5000)
		v.Pools[1] = Site("p01", "cpu=16", 4)
		v.Buffers = append(v.Buffers, Chunks("a", 3, "cpu=16", selecting("p01")))
		all := without(v)
		Expect(all).To(HaveKeyWithValue(reason.NoRoom+": there is no room for 2 of 3 chunks: raise max in the bounds of p01, or ask for fewer chunks", 1))
		Expect(all).To(HaveKeyWithValue(tooMany, 199))
	})
})

var _ = Describe("Equal chunks of two buffers", func() {
	It("have places for the older one first, then for the other", func() {
		d := plan.New(plan.View{Buffers: []plan.Buffer{Chunks("b", 3, "cpu=1"), Chunks("c", 3, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 4)}}).Decisions
		Expect([]int{d[0].Placed, d[1].Placed}).To(Equal([]int{3, 1}))
		Expect(d[1].Lack.Message).To(HavePrefix("there is no room for 2 of 3 chunks"))
	})

	It("are ready for the older one first, then for the other", func() {
		v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 3, "cpu=1"), Chunks("c", 3, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}})
		Holds(1, reason.Growing)(&v.Pools[0])
		d := plan.New(v).Decisions
		Expect([]int{d[0].Ready, d[1].Ready}).To(Equal([]int{3, 1}))
	})
})

var _ = It("A decision names the MachineDeployments that hold its chunks, and no others", func() {
	d := plan.New(plan.View{
		Buffers: []plan.Buffer{Chunks("b", 1, "cpu=1", selecting("a")), Chunks("c", 5, "cpu=4", selecting("b")), Chunks("d", 1, "cpu=4", selecting("b"))},
		Pools:   []plan.Pool{Site("b", "cpu=4", 8), Site("a", "cpu=4", 9)},
	}).Decisions
	Expect([][]string{d[0].Pools, d[1].Pools, d[2].Pools}).To(Equal([][]string{{"a"}, {"b"}, nil}))
})

var _ = It("The first MachineDeployment by name is preferred among equal ones, in whatever order they are seen", func() {
	Expect(Requests(plan.New(plan.View{Buffers: []plan.Buffer{Chunks("b", 1, "cpu=1")}, Pools: []plan.Pool{Site("b", "cpu=4", 9), Site("a", "cpu=4", 9)}}))).To(Equal("a=1"))
})

var _ = DescribeTable("What DaemonSets leave of a machine with four CPUs for two chunks of one CPU",
	func(want string, daemons ...corev1.PodSpec) {
		v := plan.View{Buffers: []plan.Buffer{Chunks("b", 2, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}}
		for i, s := range daemons {
			v.Daemons = append(v.Daemons, fit.Read(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: fmt.Sprint("agent-", i)}, Spec: s}, false))
		}
		Expect(Requests(plan.New(v))).To(Equal(want))
	},
	Entry("all, if they select other machines", "a=1", PodSpec("cpu=3", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"pool": "x"} })),
	Entry("half, if they run there", "a=2", PodSpec("cpu=3")),
	Entry("as much, if a second one finds no room any more", "a=2", PodSpec("cpu=3"), PodSpec("cpu=2")),
)

var _ = DescribeTable("Messages name five MachineDeployments, and count the others",
	func(pools int, want string) {
		v := plan.View{Buffers: []plan.Buffer{Chunks("b", pools, "cpu=1")}}
		for i := range pools {
			v.Pools = append(v.Pools, Site(fmt.Sprint("p", i), "cpu=1", 4))
		}
		Expect(plan.NewStatus(plan.New(v).Decisions[0], Now).Conditions[2].Message).To(HaveSuffix(want))
	},
	Entry("five", 5, "in p0, p1, p2, p3, p4"),
	Entry("six", 6, "in p0, p1, p2, p3, p4 and 1 more"),
)
