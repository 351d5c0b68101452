// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
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

var _ = It("Machines cannot be created where the machine-taint controller says so, whatever the Reserve reports (law 7)", func() {
	v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 8, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 9), Site("b", "cpu=4", 5)}})
	Expect(Spread(v)).To(Equal("a=2"))
	v.Reserves[0].Status.Pools = []autoscaling.ReservePoolStatus{{Name: "a"}}
	Holds(0, reason.CannotBeMade)(&v.Pools[0])
	Expect(Requests(plan.New(v))).To(Equal("a=1 b=2"))
})

var _ = It("Machines cannot be created where the Reserve says so, whatever the machine-taint controller reports (law 7)", func() {
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
	Expect(p.Decisions[200].Lack.Message).To(ContainSubstring("too many different chunks to tell why"))
})

var _ = It("chunks find a pool by name if its machines have no labels", func() {
	bare := Site("a", "cpu=4", 9, func(p *plan.Pool) { p.Node.Labels = nil })
	v := plan.View{Buffers: []plan.Buffer{Chunks("b", 1, "cpu=1", InPool("a"))}, Pools: []plan.Pool{bare, Site("b", "cpu=4", 9)}}
	Expect(Requests(plan.New(v))).To(Equal("a=1"))
})
