// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
)

func serving(replicas int32) func(*plan.Pool) {
	return func(p *plan.Pool) { p.Deployment.Spec.Replicas = replicas }
}

func ofWorker(name string) func(*plan.Pool) {
	return func(p *plan.Pool) { p.Deployment.Labels[pool.WorkerPoolLabel] = name }
}

// reports gives a MachineDeployment a condition.
func reports(kind mcm.MachineDeploymentConditionType, why string) func(*plan.Pool) {
	return func(p *plan.Pool) {
		p.Deployment.Status.Conditions = append(p.Deployment.Status.Conditions, mcm.MachineDeploymentCondition{Type: kind, Status: mcm.ConditionFalse, Reason: why})
	}
}

var _ = DescribeTable("Where a MachineDeployment has room for eight chunks of one CPU (laws 4 and 5)",
	func(want string, pools ...plan.Pool) {
		Expect(Requests(plan.New(plan.View{Buffers: []plan.Buffer{Chunks("b", 8, "cpu=1")}, Pools: pools}))).To(Equal(want))
	},
	Entry("without machines for workload", "a=2", Site("a", "cpu=4", 2, serving(0))),
	Entry("in a cluster that hibernates, not", "", Site("a", "cpu=4", 9, serving(0), ofWorker("w"))),
	Entry("where only its Nodes have the label of a pool, it has", "a=2", Site("a", "cpu=4", 9, serving(0), func(p *plan.Pool) {
		p.Deployment.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{pool.WorkerPoolLabel: "w"}
	})),
	Entry("in a cluster with one machine, it has", "a=2", Site("a", "cpu=4", 9, serving(1), ofWorker("w"))),
	Entry("without machines for workload, beside one that has some", "a=2", Site("a", "cpu=4", 9, serving(0), ofWorker("w")), Site("b", "cpu=1", 4)),
	Entry("where machines cannot be created, not", "b=2", Site("a", "cpu=4", 9, reports(machine.ReserveReady, reason.CannotBeMade)), Site("b", "cpu=4", 9)),
	Entry("where machines cannot be created, on those that are ready, whoever requests them", "a=2", Site("a", "cpu=4", 9, Holds(3, reason.CannotBeMade))),
	Entry("where machines cannot be created, on as many as are ready", "a=1 b=1", Site("a", "cpu=4", 9, Holds(1, reason.CannotBeMade)), Site("b", "cpu=4", 4)),
	Entry("where another condition says so, it does", "a=1 b=1", Site("a", "cpu=4", 9, reports("Available", reason.CannotBeMade)), Site("b", "cpu=4", 9)),
	Entry("where the reserve is not ready for another reason, it does", "a=1 b=1", Site("a", "cpu=4", 9, reports(machine.ReserveReady, reason.Growing)), Site("b", "cpu=4", 9)),
)

var _ = It("Machines cannot be created where the controller of MachineDeployments says so, whatever the Reserve reports (law 7)", func() {
	v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 8, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 9), Site("b", "cpu=4", 5)}})
	Expect(Spread(v)).To(Equal("a=2"))
	v.Reserves[0].Status.Pools = []autoscaling.ReservePoolStatus{{Name: "a"}}
	Holds(0, reason.CannotBeMade)(&v.Pools[0])
	Expect(Requests(plan.New(v))).To(Equal("a=1 b=2"))
})

var _ = It("Machines cannot be created where the Reserve says so, whatever the controller of MachineDeployments reports (law 7)", func() {
	v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 8, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 9), Site("b", "cpu=4", 5)}})
	v.Reserves[0].Status.Pools = []autoscaling.ReservePoolStatus{{Name: "a", Blocked: true}}
	Holds(0, reason.Growing)(&v.Pools[0])
	Expect(Requests(plan.New(v))).To(Equal("a=1 b=2"))
})

var _ = It("A Reserve of no machines keeps no chunks where it is", func() {
	v := plan.View{Buffers: []plan.Buffer{Chunks("b", 1, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 9), Site("b", "cpu=4", 9)}, Reserves: reserved("b", 0)}
	Expect(Requests(plan.New(v))).To(Equal("a=1 b=-"))
})

var _ = DescribeTable("Where chunks stay or go, by the size of machines relative to the largest (law 4)",
	func(requests, from, to, want string) {
		v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 1, requests)}, Pools: []plan.Pool{Site("b", from, 9)}})
		v.Pools = append(v.Pools, Site("a", to, 9))
		Expect(Requests(plan.New(v))).To(Equal(want))
	},
	Entry("they stay on machines with half the CPU, for half the memory", "memory=1Gi", "cpu=8,memory=16Gi", "cpu=16,memory=8Gi", ""),
	Entry("they stay on machines with half the memory, for half the CPU", "cpu=1", "cpu=16,memory=8Gi", "cpu=8,memory=16Gi", ""),
	Entry("they go to machines with a quarter of the CPU, for twice the memory", "cpu=1", "cpu=16,memory=8Gi", "cpu=4,memory=16Gi", "a=1"),
	Entry("they stay on machines with a quarter of the CPU, for half the memory", "cpu=1", "cpu=4,memory=16Gi", "cpu=16,memory=8Gi", ""),
)

var _ = Describe("Smaller machines", func() {
	It("are preferred among as many, also to those that are requested already (law 4)", func() {
		v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 1, "cpu=1")}, Pools: []plan.Pool{Site("b", "cpu=16", 9)}})
		for _, smaller := range []string{"cpu=4", "cpu=16,memory=1Gi"} {
			next := v
			next.Pools = []plan.Pool{Site("a", smaller, 9), v.Pools[0]}
			next.Pools[1].Node = next.Pools[1].Node.DeepCopy()
			next.Pools[1].Node.Status.Allocatable = Amounts("cpu=16,memory=64Gi,pods=110")
			Expect(Requests(plan.New(next))).To(Equal("a=1"), smaller)
		}
		same := v
		same.Pools = []plan.Pool{Site("a", "cpu=16", 9), v.Pools[0]}
		Expect(plan.New(same).Requests).To(BeEmpty())
	})
})

var _ = Describe("Dedicated machines", func() {
	It("stay where they are while no packing is better (laws 6 and 11)", func() {
		v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 1, "cpu=1", dedicated("namespace"))}, Pools: []plan.Pool{Site("b", "cpu=4", 9)}})
		v.Pools = append([]plan.Pool{Site("a", "cpu=4", 9)}, v.Pools...)
		Expect(plan.New(v).Requests).To(BeEmpty())
	})

	It("are no more than the Reserve has, whatever its annotation says (law 11)", func() {
		v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 2, "cpu=3", dedicated("namespace"))}, Pools: []plan.Pool{Site("b", "cpu=4", 9)}})
		v.Reserves[0].Spec.Replicas = 1
		v.Reserves[0].Annotations[machine.DedicatedAnnotation] = "shop=9"
		v.Pools = append([]plan.Pool{Site("a", "cpu=4", 9)}, v.Pools...)
		Expect(dedications(After(v))).To(Equal("a: shop=1; b: shop=1"), "only one of them is requested in b already")
	})
})

var _ = It("Buffers of namespaces take turns, by name", func() {
	first, second := Chunks("z", 4, "cpu=1"), Chunks("a", 4, "cpu=1")
	first.Object.Namespace, second.Object.Namespace = "a", "z"
	p := plan.New(plan.View{Buffers: []plan.Buffer{second, first}, Pools: []plan.Pool{Site("a", "cpu=4", 4)}})
	Expect([]int{p.Decisions[0].Placed, p.Decisions[1].Placed}).To(Equal([]int{4, 0}))
})

var _ = Describe("Machines of buffers that cannot be read, beside others (law 5)", func() {
	unreadable := func(replicas *int32) plan.Buffer {
		b := Chunks("u", 1, "cpu=1")
		b.Lacks, b.Object.Status.Replicas = "no right", replicas
		return b
	}

	It("go if the buffer never had chunks", func() {
		v := plan.View{Buffers: []plan.Buffer{unreadable(nil)}, Reserves: []*autoscaling.Reserve{plan.NewReserve(Namespace, plan.Request{Pool: "a", Machines: 2})}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}}
		Expect(Requests(plan.New(v))).To(Equal("a=-"))
	})

	It("stay where too little is known of the MachineDeployment, too", func() {
		v := plan.View{Buffers: []plan.Buffer{unreadable(ptr.To[int32](2))}, Reserves: []*autoscaling.Reserve{plan.NewReserve(Namespace, plan.Request{Pool: "a", Machines: 9})}}
		v.Pools = []plan.Pool{Site("a", "cpu=4", 9, Annotated(machine.BoundsAnnotation, "many"))}
		Expect(plan.New(v).Requests).To(BeEmpty())
	})

	DescribeTable("stay rather than those of a buffer that is gone, if it is certain where they are",
		func(change func(*plan.Buffer), owned ...machine.Dedication) {
			b := unreadable(ptr.To[int32](2))
			change(&b)
			theirs := plan.NewReserve(Namespace, plan.Request{Pool: "z", Machines: 2, Dedicated: owned})
			v := plan.View{Buffers: []plan.Buffer{b}, Reserves: append(reserved("a", 2), theirs), Pools: []plan.Pool{Site("a", "cpu=4", 9), Site("z", "cpu=4", 9, ofWorker("w"))}}
			Expect(Requests(plan.New(v))).To(Equal("a=-"))
		},
		Entry("by their owner", dedicated("namespace"), machine.Dedication{Owner: Shop, Machines: 2}),
		Entry("by the name of the MachineDeployment", InPool("z")),
		Entry("by the name of the worker pool", InPool("w")),
	)

	It("are requested again, with those of other buffers, after another client has moved them", func() {
		r := plan.NewReserve(Namespace, plan.Request{Pool: "a", Machines: 3})
		r.Spec.Pools.Names = []string{"b"}
		v := plan.View{Buffers: []plan.Buffer{unreadable(ptr.To[int32](2)), Chunks("b", 1, "cpu=1")}, Reserves: []*autoscaling.Reserve{r}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}}
		Expect(Requests(plan.New(v))).To(Equal("a=3"))
	})
})

var _ = DescribeTable("Why chunks of a buffer that names a pool have no place",
	func(named, want string) {
		v := plan.View{Buffers: []plan.Buffer{Chunks("b", 1, "cpu=9", InPool(named))}, Pools: []plan.Pool{Site("a", "cpu=4", 9, ofWorker("w")), Site("c", "cpu=4", 9)}}
		Expect(plan.New(v).Decisions[0].Lack.Reason).To(Equal(want))
	},
	Entry("a MachineDeployment's name", "a", reason.DoesNotFit),
	Entry("a worker pool's name", "w", reason.DoesNotFit),
	Entry("another name", "d", reason.PoolNotFound),
	Entry("none", "", reason.DoesNotFit),
)

var _ = It("The reason is found for 200 different chunks without a place (law 8)", func() {
	v := plan.View{Pools: []plan.Pool{Site("a", "cpu=4", 9)}}
	for i := range 201 {
		v.Buffers = append(v.Buffers, Chunks(fmt.Sprintf("b%03d", i), 1, fmt.Sprintf("cpu=%d", 10+i)))
	}
	p := plan.New(v)
	Expect(p.Decisions[199].Lack.Reason).To(Equal(reason.DoesNotFit))
	Expect(p.Decisions[200].Lack.Reason).To(Equal(reason.LimitReached))
	Expect(p.Decisions[200].Lack.Message).To(ContainSubstring("too many different chunks to find out why"))
})

var _ = It("chunks find a pool by name if its machines have no labels", func() {
	bare := Site("a", "cpu=4", 9, func(p *plan.Pool) { p.Node.Labels = nil })
	v := plan.View{Buffers: []plan.Buffer{Chunks("b", 1, "cpu=1", InPool("a"))}, Pools: []plan.Pool{bare, Site("b", "cpu=4", 9)}}
	Expect(Requests(plan.New(v))).To(Equal("a=1"))
})

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
	Entry("there is no pool", reason.NoPools+": there is no room for 1 of 1 chunk: no MachineDeployment has both bounds with a maximum and a known machine size", Chunks("b", 1, "cpu=1")),
	Entry("the pool that is named does not exist", reason.PoolNotFound+`: there is no room for 2 of 2 chunks: no MachineDeployment or worker pool named "x" can hold chunks`,
		Chunks("b", 2, "cpu=1", InPool("x")), Site("a", "cpu=4", 9)),
	Entry("no pool is named, and all belong to workers", reason.DoesNotFit+": there is no room for 1 of 1 chunk: a chunk fits no empty machine", Chunks("b", 1, "cpu=9"), Site("a", "cpu=4", 9, worker("w"))),
	Entry("the maximum is reached", reason.NoRoom+": there is no room for 3 of 7 chunks: raise max in the bounds of a, or ask for fewer chunks", Chunks("b", 7, "cpu=1"), Site("a", "cpu=4", 4)),
	Entry("the maximum is reached, for chunks with an affinity", reason.NoRoom+": there is no room for 2 of 3 chunks: raise max in the bounds of a, or ask for fewer chunks", Chunks("b", 3, "cpu=1", apart), Site("a", "cpu=4", 4)),
	Entry("affinity keeps them away", reason.DoesNotFit+": there is no room for 1 of 2 chunks: affinity or topology spread allows no more chunks in a", Chunks("b", 2, "cpu=1", apartBy("pool")), Site("a", "cpu=4", 9)),
	Entry("affinity keeps them away, also from a pool with more machines than are considered", reason.DoesNotFit+": there is no room for 1 of 2 chunks: affinity or topology spread allows no more chunks in a",
		Chunks("b", 2, "cpu=1", apartBy("pool")), Site("a", "cpu=4", 5000)),
	Entry("topology spread keeps them away", reason.DoesNotFit+": there is no room for 5 of 8 chunks: affinity or topology spread allows no more chunks in b", Chunks("b", 8, "cpu=4", evenly), Site("a", "cpu=4", 4), Site("b", "cpu=4", 99)),
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
