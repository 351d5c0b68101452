// SPDX-License-Identifier: Apache-2.0

package capacitybuffer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	. "github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

func worker(name string) func(*Pool) {
	return func(p *Pool) { p.Deployment.Labels[pool.WorkerPoolLabel] = name }
}

func selecting(name string) func(*Buffer) {
	return func(b *Buffer) { b.Template.Template.Spec.NodeSelector = map[string]string{"pool": name} }
}

func tolerant(b *Buffer) {
	b.Template.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

func apart(b *Buffer) { apartBy(corev1.LabelHostname)(b) }

func apartBy(key string) func(*Buffer) {
	return func(b *Buffer) {
		b.Template.Template.Labels = map[string]string{"app": "web"}
		b.Template.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: key, LabelSelector: metav1.SetAsLabelSelector(map[string]string{"app": "web"})},
		}}}
	}
}

var _ = DescribeTable("How many machines hold the chunks, and where (laws 4, 5 and 8)",
	func(buffers []Buffer, pools []Pool, want, says string) {
		v := View{Buffers: buffers, Pools: pools}
		first := NewPlan(v)
		Expect(requests(first)).To(Equal(want))
		rest := NewPlan(after(v))
		Expect(rest.Requests).To(BeEmpty(), "law 9")
		var all []string
		for _, d := range rest.Decisions {
			d.Buffer.Status = NewStatus(d, now)
			all = append(all, standing(d.Buffer))
			for _, c := range d.Buffer.Status.Conditions {
				Expect(reason.CapacityBuffer[c.Type].Find(c.Reason).Meaning).NotTo(BeEmpty(), c.Reason)
			}
		}
		Expect(strings.Join(all, "; ")).To(Equal(says))
	},
	Entry("as many as hold them", []Buffer{chunks("b", 5, "cpu=1")}, []Pool{site("a", "cpu=4", 9)}, "a=2", "5 Provisioning=MachinesRequested Ready=Complete"),
	Entry("no chunks", []Buffer{chunks("b", 0, "cpu=1")}, []Pool{site("a", "cpu=4", 9)}, "", "0 Provisioning=NoChunks Ready=NoChunks"),
	Entry("chunks without requests, by the number of pods", []Buffer{chunks("b", 111, "")}, []Pool{site("a", "cpu=4", 9)}, "a=2", "111 Provisioning=MachinesRequested Ready=Complete"),
	Entry("two buffers on one machine", []Buffer{chunks("b", 2, "cpu=1"), chunks("c", 1, "cpu=2")}, []Pool{site("a", "cpu=4", 9)}, "a=1",
		"2 Provisioning=MachinesRequested Ready=Complete; 1 Provisioning=MachinesRequested Ready=Complete"),
	Entry("buffers that add up", []Buffer{chunks("b", 4, "cpu=1"), chunks("c", 4, "cpu=1")}, []Pool{site("a", "cpu=4", 9)}, "a=2",
		"4 Provisioning=MachinesRequested Ready=Complete; 4 Provisioning=MachinesRequested Ready=Complete"),
	Entry("the fewest machines", []Buffer{chunks("b", 8, "cpu=1")}, []Pool{site("a", "cpu=2", 9), site("b", "cpu=8", 9)}, "b=1", "8 Provisioning=MachinesRequested Ready=Complete"),
	Entry("and then the smallest", []Buffer{chunks("b", 2, "cpu=1")}, []Pool{site("a", "cpu=8", 9), site("b", "cpu=2", 9)}, "b=1", "2 Provisioning=MachinesRequested Ready=Complete"),
	Entry("also for the rest", []Buffer{chunks("b", 9, "cpu=1")}, []Pool{site("a", "cpu=8", 9), site("b", "cpu=2", 9)}, "a=1 b=1", "9 Provisioning=MachinesRequested Ready=Complete"),
	Entry("within max", []Buffer{chunks("b", 9, "cpu=1")}, []Pool{site("a", "cpu=4", 5)}, "a=2", "9 Provisioning=NoRoom Ready=NoRoom"),
	Entry("elsewhere, where max is reached", []Buffer{chunks("b", 8, "cpu=1")}, []Pool{site("a", "cpu=8", 3), site("b", "cpu=2", 9)}, "b=4", "8 Provisioning=MachinesRequested Ready=Complete"),
	Entry("where the node selector allows", []Buffer{chunks("b", 2, "cpu=1", selecting("b"))}, []Pool{site("a", "cpu=2", 9), site("b", "cpu=8", 9)}, "b=1", "2 Provisioning=MachinesRequested Ready=Complete"),
	Entry("each on its own machine", []Buffer{chunks("b", 3, "cpu=1", apart)}, []Pool{site("a", "cpu=8", 9)}, "a=3", "3 Provisioning=MachinesRequested Ready=Complete"),
	Entry("each in its own pool, where there are too few", []Buffer{chunks("b", 3, "cpu=1", apartBy("pool"))}, []Pool{site("a", "cpu=8", 9), site("b", "cpu=8", 9)}, "a=1 b=1", "3 Provisioning=DoesNotFit Ready=DoesNotFit"),
	Entry("a chunk that tolerates everything", []Buffer{chunks("b", 5, "cpu=1", tolerant)}, []Pool{site("a", "cpu=4", 9)}, "a=2", "5 Provisioning=MachinesRequested Ready=Complete"),
	Entry("in the pool that is named", []Buffer{chunks("b", 2, "cpu=1", inPool("b"))}, []Pool{site("a", "cpu=2", 9), site("b", "cpu=8", 9)}, "b=1", "2 Provisioning=MachinesRequested Ready=Complete"),
	Entry("in the worker pool that is named", []Buffer{chunks("b", 4, "cpu=1", inPool("w"))}, []Pool{site("a", "cpu=8", 9), site("b", "cpu=2", 4, worker("w")), site("c", "cpu=2", 9, worker("w"))},
		"c=2", "4 Provisioning=MachinesRequested Ready=Complete"),
	Entry("in a pool that does not exist", []Buffer{chunks("b", 2, "cpu=1", inPool("x"))}, []Pool{site("a", "cpu=2", 9)}, "", "2 Provisioning=PoolNotFound Ready=PoolNotFound"),
	Entry("a chunk that is too large", []Buffer{chunks("b", 2, "cpu=9")}, []Pool{site("a", "cpu=2", 9)}, "", "2 Provisioning=DoesNotFit Ready=DoesNotFit"),
	Entry("a chunk that is too large beside one that is not", []Buffer{chunks("b", 2, "cpu=9"), chunks("c", 1, "cpu=1")}, []Pool{site("a", "cpu=2", 9)}, "a=1",
		"2 Provisioning=DoesNotFit Ready=DoesNotFit; 1 Provisioning=MachinesRequested Ready=Complete"),
	Entry("nothing where there are no bounds", []Buffer{chunks("b", 2, "cpu=1")}, []Pool{site("a", "cpu=2", 9, func(p *Pool) { p.Deployment.Annotations = nil })}, "", "2 Provisioning=NoPools Ready=NoPools"),
	Entry("nothing where bounds are invalid", []Buffer{chunks("b", 2, "cpu=1")}, []Pool{site("a", "cpu=2", 9, annotated(machine.BoundsAnnotation, "?"))}, "", "2 Provisioning=NoPools Ready=NoPools"),
	Entry("nothing where machines are not known", []Buffer{chunks("b", 2, "cpu=1")}, []Pool{site("a", "cpu=2", 9, func(p *Pool) { p.Node = nil })}, "", "2 Provisioning=NoPools Ready=NoPools"),
	Entry("nothing where the reserve is drained", []Buffer{chunks("b", 2, "cpu=1")}, []Pool{site("a", "cpu=2", 9, annotated(machine.DrainReserveAnnotation, "true"))}, "", "2 Provisioning=NoPools Ready=NoPools"),
	Entry("nothing where somebody else's Reserve has the name", []Buffer{chunks("b", 2, "cpu=1")}, []Pool{site("a", "cpu=2", 9, func(p *Pool) { p.Taken = true })}, "", "2 Provisioning=NoPools Ready=NoPools"),
	Entry("nothing in a MachineDeployment that is being deleted", []Buffer{chunks("b", 2, "cpu=1")},
		[]Pool{site("a", "cpu=2", 9, func(p *Pool) { p.Deployment.DeletionTimestamp = &metav1.Time{Time: now} }), site("b", "cpu=2", 9)}, "b=1", "2 Provisioning=MachinesRequested Ready=Complete"),
	Entry("nothing in a cluster that hibernates", []Buffer{chunks("b", 2, "cpu=1")}, []Pool{site("a", "cpu=2", 9, worker("w"), func(p *Pool) { p.Deployment.Spec.Replicas = 0 })}, "", "2 Provisioning=NoPools Ready=NoPools"),
	Entry("the most chunks there can be", []Buffer{chunks("b", math.MaxInt32, "cpu=1")}, []Pool{site("a", "cpu=4", 2_000_000_000)}, "a=1000", "2147483647 Provisioning=LimitReached Ready=LimitReached"),
	Entry("what is invalid beside what is not", []Buffer{buffer("b", "{podTemplateRef: {name: gone}, replicas: 1}"), chunks("c", 1, "cpu=1")}, []Pool{site("a", "cpu=2", 9)}, "a=1",
		"- Provisioning=NotReadyForProvisioning Ready=NotReadyForProvisioning; 1 Provisioning=MachinesRequested Ready=Complete"),
)

var _ = It("DaemonSets take their part of each machine", func() {
	daemon := fit.Read(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent"}, Spec: podSpec("cpu=1")}, false)
	v := View{Buffers: []Buffer{chunks("b", 4, "cpu=1")}, Pools: []Pool{site("a", "cpu=4", 9)}, Daemons: []*fit.Pod{daemon}}
	Expect(requests(NewPlan(v))).To(Equal("a=2"))
})

var _ = Describe("A status", func() {
	It("goes from Provisioning to Ready, and says what is missing", func() {
		v := View{Buffers: []Buffer{chunks("b", 5, "cpu=1")}, Pools: []Pool{site("a", "cpu=4", 9)}}
		message := func(v View) string {
			d := NewPlan(v).Decisions[0]
			c := NewStatus(d, now).Conditions[3]
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
		Expect(message(v)).To(Equal("False Growing: room for 0 of 5 chunks is ready in a"))
		v = after(v)
		holds(1, reason.Growing)(&v.Pools[0])
		Expect(message(v)).To(Equal("False Growing: room for 4 of 5 chunks is ready in a"))
		Expect(message(after(v))).To(Equal("True Complete: room for 5 of 5 chunks is ready in a"))
	})

	It("names the PodTemplate and its generation, and the strategy", func() {
		s := NewStatus(NewPlan(View{Buffers: []Buffer{chunks("b", 5, "cpu=1")}}).Decisions[0], now)
		Expect(s.PodTemplateRef.Name).To(Equal("web"))
		Expect(*s.PodTemplateGeneration).To(BeEquivalentTo(7))
		Expect(*s.ProvisioningStrategy).To(Equal(v1beta1.StrategyReserved))
	})

	It("keeps the conditions of others, and the time of a condition that does not change", func() {
		b := chunks("b", 5, "cpu=1")
		b.Object.Status.Conditions = []metav1.Condition{{Type: "Example", Status: "True"}}
		b.Object.Status = NewStatus(NewPlan(View{Buffers: []Buffer{b}}).Decisions[0], now)
		later := NewStatus(NewPlan(View{Buffers: []Buffer{b}}).Decisions[0], now.Add(time.Hour))
		Expect(later).To(Equal(b.Object.Status))
		Expect(later.Conditions).To(HaveLen(5))
	})

	It("does not list a hundred names", func() {
		var pools []Pool
		for i := range 100 {
			pools = append(pools, site(fmt.Sprintf("p%02d", i), "cpu=1", 4))
		}
		d := NewPlan(View{Buffers: []Buffer{chunks("b", 100, "cpu=1")}, Pools: pools}).Decisions[0]
		Expect(NewStatus(d, now).Conditions[2].Message).To(Equal("machines are requested for 100 chunks in p00, p01, p02, p03, p04 and 95 more"))
	})
})

var _ = Describe("Machines", func() {
	alike := func(limits ...int) []Pool {
		return []Pool{site("a", "cpu=4", limits[0]), site("b", "cpu=4", limits[1])}
	}

	It("stay where they are while no packing is better (law 6)", func() {
		v := after(View{Buffers: []Buffer{chunks("b", 5, "cpu=1")}, Pools: alike(9, 4)})
		Expect(spread(v)).To(Equal("a=2"))
		v.Pools[1].Deployment.Annotations[machine.BoundsAnnotation] = "1:99"
		Expect(NewPlan(v).Requests).To(BeEmpty())
	})

	It("move where fewer hold the chunks, and none that is ready goes before those that replace it are ready (law 6)", func() {
		v := after(View{Buffers: []Buffer{chunks("b", 8, "cpu=1")}, Pools: alike(9, 3)})
		v.Pools = append(v.Pools, site("c", "cpu=8", 9))
		Expect(requests(NewPlan(v))).To(Equal("c=1"))
		half := after(v)
		half.Pools[2].Ready = 0
		Expect(NewPlan(half).Requests).To(BeEmpty())
		Expect(requests(NewPlan(after(v)))).To(Equal("a=-"))
	})

	It("stand in where machines cannot be created, which keeps one for the next try (law 7)", func() {
		v := after(View{Buffers: []Buffer{chunks("b", 8, "cpu=1")}, Pools: alike(9, 5)}, "a")
		Expect(spread(v)).To(Equal("a=2"))
		v = after(v, "a")
		Expect(spread(v)).To(Equal("a=1 b=2"))
		v = after(v, "a")
		Expect(NewPlan(v).Requests).To(BeEmpty())
		Expect(standing(v.Buffers[0].Object)).To(Equal("8 Provisioning=MachinesRequested Ready=Complete"))
		Expect(spread(after(after(v)))).To(Equal("a=1 b=1"))
	})

	It("are said to be impossible to create where none can stand in (law 7)", func() {
		v := after(after(View{Buffers: []Buffer{chunks("b", 8, "cpu=1")}, Pools: alike(9, 3)}, "a"), "a")
		Expect(standing(v.Buffers[0].Object)).To(Equal("8 Provisioning=CannotBeMade Ready=CannotBeMade"))
		Expect(spread(v)).To(Equal("a=1"))
		v = after(after(after(v)))
		Expect(spread(v)).To(Equal("a=2"))
		Expect(standing(after(v).Buffers[0].Object)).To(Equal("8 Provisioning=MachinesRequested Ready=Complete"))
	})

	It("go with the buffers also where they cannot be created (law 10)", func() {
		v := after(after(View{Buffers: []Buffer{chunks("b", 8, "cpu=1")}, Pools: alike(9, 3)}, "a"), "a")
		v.Buffers = nil
		Expect(requests(NewPlan(v))).To(Equal("a=-"))
		v.Buffers = []Buffer{chunks("b", 0, "cpu=1")}
		Expect(requests(NewPlan(v))).To(Equal("a=-"))
	})

	DescribeTable("are kept where too little is known for a while (law 5)",
		func(change func(*Pool)) {
			v := after(View{Buffers: []Buffer{chunks("b", 5, "cpu=1")}, Pools: []Pool{site("a", "cpu=4", 9)}})
			change(&v.Pools[0])
			Expect(NewPlan(v).Requests).To(BeEmpty())
			v.Buffers = nil
			Expect(requests(NewPlan(v))).To(Equal("a=-"))
		},
		Entry("bounds", annotated(machine.BoundsAnnotation, "many")),
		Entry("machines", func(p *Pool) { p.Node = nil }),
	)

	It("go with the buffers, and with the MachineDeployment (law 10)", func() {
		v := after(View{Buffers: []Buffer{chunks("b", 5, "cpu=1")}, Pools: []Pool{site("a", "cpu=4", 9)}})
		Expect(requests(NewPlan(View{Buffers: v.Buffers, Reserves: v.Reserves}))).To(Equal("a=-"))
		Expect(requests(NewPlan(View{Pools: v.Pools, Reserves: v.Reserves}))).To(Equal("a=-"))
	})

	DescribeTable("are requested again when somebody changes the Reserve",
		func(change func(*autoscaling.Reserve), want string) {
			v := after(View{Buffers: []Buffer{chunks("b", 5, "cpu=1")}, Pools: []Pool{site("a", "cpu=4", 9)}})
			change(v.Reserves[0])
			Expect(requests(NewPlan(v))).To(Equal(want))
		},
		Entry("its number", func(r *autoscaling.Reserve) { r.Spec.Replicas = 7 }, "a=2"),
		Entry("its pools", func(r *autoscaling.Reserve) { r.Spec.Pools.Names = []string{"b"} }, "a=2"),
		Entry("another field", func(r *autoscaling.Reserve) { r.Spec.Suspend = true }, "a=2"),
		Entry("nothing", func(*autoscaling.Reserve) {}, ""),
	)
})

var _ = Describe("Hostile sizes (law 8)", func() {
	It("are bounded: 10,000 buffers of as many shapes, each with as many chunks as there can be, and more buffers than are looked at", func() {
		var all []Buffer
		for i := range 10_100 {
			b := chunks(fmt.Sprintf("b%05d", i), math.MaxInt32, fmt.Sprintf("cpu=%dm,memory=1Mi", 1000+i))
			if b.Object.Namespace = "big"; i%100 == 0 {
				b.Object.Namespace = fmt.Sprintf("n%05d", i)
			}
			all = append(all, b)
		}
		var pools []Pool
		for i := range 20 {
			pools = append(pools, site(fmt.Sprintf("p%02d", i), "cpu=16,memory=64Gi", 1_000_000))
		}
		p := NewPlan(View{Buffers: all, Pools: pools})
		total, refused := 0, 0
		for _, r := range p.Requests {
			total += r.Machines
		}
		Expect(total).To(And(BeNumerically(">", 0), BeNumerically("<=", 4000)))
		for _, d := range p.Decisions {
			if s := NewStatus(d, now); s.Replicas == nil {
				Expect(d.Problem.Reason).To(Equal(reason.TooManyBuffers))
				Expect(d.Buffer.Namespace).To(Equal("big"), "namespaces take turns")
				refused++
			}
		}
		Expect(refused).To(Equal(100))
	})
})

var _ = Describe("Laws", func() {
	It("every plan is within max, at rest after it is carried out, and the same in any order", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := draw(t)
			p := NewPlan(v)
			rooms := map[string]int{}
			for _, s := range v.Pools {
				rooms[s.Deployment.Name] = 0
				if b, err := machine.ParseBounds(s.Deployment.Annotations[machine.BoundsAnnotation]); err == nil {
					rooms[s.Deployment.Name] = max(0, int(b.Max-s.Deployment.Spec.Replicas))
				}
			}
			for _, r := range p.Requests {
				if r.Machines > rooms[r.Pool] {
					t.Fatalf("%d machines in %s, with room for %d", r.Machines, r.Pool, rooms[r.Pool])
				}
			}
			for _, d := range p.Decisions {
				if d.Ready > d.Placed || d.Placed > d.Chunks || d.Chunks > d.Asked {
					t.Fatalf("%s: %d ready of %d placed of %d of %d", d.Buffer.Name, d.Ready, d.Placed, d.Chunks, d.Asked)
				}
			}
			mixed := v
			mixed.Buffers, mixed.Pools = shuffled(v.Buffers), shuffled(v.Pools)
			if a, b := requests(p), requests(NewPlan(mixed)); a != b {
				t.Fatalf("%q in one order, %q in another", a, b)
			}
			rest := after(after(after(v)))
			if again := NewPlan(rest); len(again.Requests) > 0 {
				t.Fatalf("not at rest: %s after %s", requests(again), spread(rest))
			}
		})
	})
})

func shuffled[T any](all []T) []T {
	mixed := append([]T{}, all...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	return mixed
}

func draw(t *rapid.T) View {
	var v View
	for i := range rapid.IntRange(0, 4).Draw(t, "pools") {
		capacity := rapid.SampledFrom([]string{"cpu=2,memory=8Gi", "cpu=4,memory=4Gi", "cpu=16,memory=64Gi"}).Draw(t, "capacity")
		p := site(fmt.Sprint("p", i), capacity, rapid.IntRange(1, 12).Draw(t, "max"))
		if rapid.IntRange(0, 5).Draw(t, "odd") == 0 {
			p.Deployment.Annotations[machine.BoundsAnnotation] = "?"
		}
		v.Pools = append(v.Pools, p)
		if rapid.Bool().Draw(t, "has") {
			v.Reserves = append(v.Reserves, NewReserve(ns, drawRequest(t, p.Deployment.Name)))
			holds(rapid.IntRange(0, 9).Draw(t, "ready"), reason.Growing)(&v.Pools[i])
		}
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "buffers") {
		needs := rapid.SampledFrom([]string{"cpu=1", "cpu=1,memory=3Gi", "cpu=3,memory=1Gi", "memory=7Gi", "cpu=20"}).Draw(t, "requests")
		owned := func(*Buffer) {}
		if to := rapid.SampledFrom([]string{"", "", "namespace", "namespace, namespace/ci"}).Draw(t, "dedicated to"); to != "" {
			owned = dedicated(to)
		}
		v.Buffers = append(v.Buffers, chunks(fmt.Sprint("b", i), rapid.IntRange(0, 20).Draw(t, "chunks"), needs, owned))
	}
	return v
}

func drawRequest(t *rapid.T, pool string) Request {
	r := Request{Pool: pool, Machines: rapid.IntRange(0, 9).Draw(t, "asked")}
	if rapid.IntRange(0, 2).Draw(t, "dedicates") == 0 {
		r.Dedicated = []machine.Dedication{{Owner: machine.Owner(shop), Machines: int32(rapid.IntRange(0, 9).Draw(t, "dedicated"))}}
	}
	return r
}
