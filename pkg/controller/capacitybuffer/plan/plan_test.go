// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
)

func TestPlan(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "CapacityBuffer plan")
}

func worker(name string) func(*plan.Pool) {
	return func(p *plan.Pool) { p.Deployment.Labels[pool.WorkerPoolLabel] = name }
}

func selecting(name string) func(*plan.Buffer) {
	return func(b *plan.Buffer) { b.Template.Template.Spec.NodeSelector = map[string]string{"pool": name} }
}

func tolerant(b *plan.Buffer) {
	b.Template.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

// hostNetworked has each pod listen on a port of its node.
func hostNetworked(b *plan.Buffer) {
	s := &b.Template.Template.Spec
	s.HostNetwork, s.Containers[0].Ports = true, []corev1.ContainerPort{{ContainerPort: 80}}
}

func apart(b *plan.Buffer) { apartBy(corev1.LabelHostname)(b) }

func apartBy(key string) func(*plan.Buffer) {
	return func(b *plan.Buffer) {
		b.Template.Template.Labels = map[string]string{"app": "web"}
		b.Template.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: key, LabelSelector: metav1.SetAsLabelSelector(map[string]string{"app": "web"})},
		}}}
	}
}

var _ = DescribeTable("How many machines hold the chunks, and where (laws 4, 5 and 8)",
	func(buffers []plan.Buffer, pools []plan.Pool, want, says string) {
		v := plan.View{Buffers: buffers, Pools: pools}
		first := plan.New(v)
		Expect(Requests(first)).To(Equal(want))
		rest := plan.New(After(v))
		Expect(rest.Requests).To(BeEmpty(), "law 9")
		var all []string
		for _, d := range rest.Decisions {
			d.Buffer.Status = plan.NewStatus(d, Now)
			all = append(all, Standing(d.Buffer))
			for _, c := range d.Buffer.Status.Conditions {
				Expect(reason.CapacityBuffer[c.Type].Find(c.Reason).Meaning).NotTo(BeEmpty(), c.Reason)
			}
		}
		Expect(strings.Join(all, "; ")).To(Equal(says))
	},
	Entry("as many as hold them", []plan.Buffer{Chunks("b", 5, "cpu=1")}, []plan.Pool{Site("a", "cpu=4", 9)}, "a=2", "5 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("no chunks", []plan.Buffer{Chunks("b", 0, "cpu=1")}, []plan.Pool{Site("a", "cpu=4", 9)}, "", "0 Provisioning=BufferEmpty Ready=NoChunks"),
	Entry("chunks without requests, by the number of pods", []plan.Buffer{Chunks("b", 111, "")}, []plan.Pool{Site("a", "cpu=4", 9)}, "a=2", "111 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("two buffers on one machine", []plan.Buffer{Chunks("b", 2, "cpu=1"), Chunks("c", 1, "cpu=2")}, []plan.Pool{Site("a", "cpu=4", 9)}, "a=1",
		"2 Provisioning=FitsExistingCapacity Ready=Complete; 1 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("buffers that add up", []plan.Buffer{Chunks("b", 4, "cpu=1"), Chunks("c", 4, "cpu=1")}, []plan.Pool{Site("a", "cpu=4", 9)}, "a=2",
		"4 Provisioning=FitsExistingCapacity Ready=Complete; 4 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("the fewest machines", []plan.Buffer{Chunks("b", 8, "cpu=1")}, []plan.Pool{Site("a", "cpu=2", 9), Site("b", "cpu=8", 9)}, "b=1", "8 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("and then the smallest", []plan.Buffer{Chunks("b", 2, "cpu=1")}, []plan.Pool{Site("a", "cpu=8", 9), Site("b", "cpu=2", 9)}, "b=1", "2 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("also for the rest", []plan.Buffer{Chunks("b", 9, "cpu=1")}, []plan.Pool{Site("a", "cpu=8", 9), Site("b", "cpu=2", 9)}, "a=1 b=1", "9 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("within max", []plan.Buffer{Chunks("b", 9, "cpu=1")}, []plan.Pool{Site("a", "cpu=4", 5)}, "a=2", "9 Provisioning=RequiresNewCapacity Ready=NoRoom"),
	Entry("elsewhere, where max is reached", []plan.Buffer{Chunks("b", 8, "cpu=1")}, []plan.Pool{Site("a", "cpu=8", 3), Site("b", "cpu=2", 9)}, "b=4", "8 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("where the node selector allows", []plan.Buffer{Chunks("b", 2, "cpu=1", selecting("b"))}, []plan.Pool{Site("a", "cpu=2", 9), Site("b", "cpu=8", 9)}, "b=1", "2 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("each on its own machine", []plan.Buffer{Chunks("b", 3, "cpu=1", apart)}, []plan.Pool{Site("a", "cpu=8", 9)}, "a=3", "3 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("each on its own machine, by a port of the network of the node", []plan.Buffer{Chunks("b", 3, "cpu=1", hostNetworked)}, []plan.Pool{Site("a", "cpu=8", 9)}, "a=3", "3 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("each in its own pool, where there are too few", []plan.Buffer{Chunks("b", 3, "cpu=1", apartBy("pool"))}, []plan.Pool{Site("a", "cpu=8", 9), Site("b", "cpu=8", 9)}, "a=1 b=1", "3 Provisioning=RequiresNewCapacity Ready=DoesNotFit"),
	Entry("together where machines have no name by which to keep apart", []plan.Buffer{Chunks("b", 3, "cpu=1", apart)}, []plan.Pool{Site("a", "cpu=8", 9, func(p *plan.Pool) { p.Node.Labels = nil })}, "a=1", "3 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("a chunk that tolerates everything", []plan.Buffer{Chunks("b", 5, "cpu=1", tolerant)}, []plan.Pool{Site("a", "cpu=4", 9)}, "a=2", "5 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("in the pool that is named", []plan.Buffer{Chunks("b", 2, "cpu=1", InPool("b"))}, []plan.Pool{Site("a", "cpu=2", 9), Site("b", "cpu=8", 9)}, "b=1", "2 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("in the worker pool that is named", []plan.Buffer{Chunks("b", 4, "cpu=1", InPool("w"))}, []plan.Pool{Site("a", "cpu=8", 9), Site("b", "cpu=2", 4, worker("w")), Site("c", "cpu=2", 9, worker("w"))},
		"c=2", "4 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("in the worker pool that is named, where the node selector allows", []plan.Buffer{Chunks("b", 2, "cpu=1", InPool("w"), selecting("b"))}, []plan.Pool{Site("a", "cpu=2", 9, worker("w")), Site("b", "cpu=2", 9, worker("w"))},
		"b=1", "2 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("in a pool that does not exist", []plan.Buffer{Chunks("b", 2, "cpu=1", InPool("x"))}, []plan.Pool{Site("a", "cpu=2", 9)}, "", "2 Provisioning=RequiresNewCapacity Ready=PoolNotFound"),
	Entry("a chunk that is too large", []plan.Buffer{Chunks("b", 2, "cpu=9")}, []plan.Pool{Site("a", "cpu=2", 9)}, "", "2 Provisioning=RequiresNewCapacity Ready=DoesNotFit"),
	Entry("a chunk that is too large beside one that is not", []plan.Buffer{Chunks("b", 2, "cpu=9"), Chunks("c", 1, "cpu=1")}, []plan.Pool{Site("a", "cpu=2", 9)}, "a=1",
		"2 Provisioning=RequiresNewCapacity Ready=DoesNotFit; 1 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("nothing where there are no bounds", []plan.Buffer{Chunks("b", 2, "cpu=1")}, []plan.Pool{Site("a", "cpu=2", 9, func(p *plan.Pool) { p.Deployment.Annotations = nil })}, "", "2 Provisioning=RequiresNewCapacity Ready=NoPools"),
	Entry("nothing where bounds are invalid", []plan.Buffer{Chunks("b", 2, "cpu=1")}, []plan.Pool{Site("a", "cpu=2", 9, Annotated(machine.BoundsAnnotation, "?"))}, "", "2 Provisioning=RequiresNewCapacity Ready=NoPools"),
	Entry("nothing where machines are not known", []plan.Buffer{Chunks("b", 2, "cpu=1")}, []plan.Pool{Site("a", "cpu=2", 9, func(p *plan.Pool) { p.Node = nil })}, "", "2 Provisioning=RequiresNewCapacity Ready=NoPools"),
	Entry("nothing where the reserve is drained", []plan.Buffer{Chunks("b", 2, "cpu=1")}, []plan.Pool{Site("a", "cpu=2", 9, Annotated(machine.DrainReserveAnnotation, "true"))}, "", "2 Provisioning=RequiresNewCapacity Ready=NoPools"),
	Entry("nothing where somebody else's Reserve has the name", []plan.Buffer{Chunks("b", 2, "cpu=1")}, []plan.Pool{Site("a", "cpu=2", 9, func(p *plan.Pool) { p.Taken = true })}, "", "2 Provisioning=RequiresNewCapacity Ready=NoPools"),
	Entry("nothing in a MachineDeployment that is being deleted", []plan.Buffer{Chunks("b", 2, "cpu=1")},
		[]plan.Pool{Site("a", "cpu=2", 9, func(p *plan.Pool) { p.Deployment.DeletionTimestamp = &metav1.Time{Time: Now} }), Site("b", "cpu=2", 9)}, "b=1", "2 Provisioning=FitsExistingCapacity Ready=Complete"),
	Entry("nothing in a cluster that hibernates", []plan.Buffer{Chunks("b", 2, "cpu=1")}, []plan.Pool{Site("a", "cpu=2", 9, worker("w"), func(p *plan.Pool) { p.Deployment.Spec.Replicas = 0 })}, "", "2 Provisioning=RequiresNewCapacity Ready=NoPools"),
	Entry("the most chunks there can be", []plan.Buffer{Chunks("b", math.MaxInt32, "cpu=1")}, []plan.Pool{Site("a", "cpu=4", 2_000_000_000)}, "a=1000", "2147483647 Provisioning=RequiresNewCapacity Ready=LimitReached"),
	Entry("what is invalid beside what is not", []plan.Buffer{NewBuffer("b", "{podTemplateRef: {name: gone}, replicas: 1}"), Chunks("c", 1, "cpu=1")}, []plan.Pool{Site("a", "cpu=2", 9)}, "a=1",
		"- Provisioning=NotReadyForProvisioning Ready=NotReadyForProvisioning; 1 Provisioning=FitsExistingCapacity Ready=Complete"),
)

var _ = It("DaemonSets take their part of each machine", func() {
	daemon := fit.Read(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent"}, Spec: PodSpec("cpu=1")}, false)
	v := plan.View{Buffers: []plan.Buffer{Chunks("b", 4, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}, Daemons: []*fit.Pod{daemon}}
	Expect(Requests(plan.New(v))).To(Equal("a=2"))
})

var _ = Describe("A status", func() {
	It("changes from Provisioning to Ready, and reports what is missing", func() {
		v := plan.View{Buffers: []plan.Buffer{Chunks("b", 5, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}}
		message := func(v plan.View) string {
			d := plan.New(v).Decisions[0]
			c := plan.NewStatus(d, Now).Conditions[3]
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
		Expect(message(v)).To(Equal("False Growing: room for 0 of 5 chunks is ready in a"))
		v = After(v)
		Holds(1, reason.Growing)(&v.Pools[0])
		Expect(message(v)).To(Equal("False Growing: room for 4 of 5 chunks is ready in a"))
		Expect(message(After(v))).To(Equal("True Complete: room for 5 of 5 chunks is ready in a"))
	})

	It("names the PodTemplate and its generation, and the strategy", func() {
		s := plan.NewStatus(plan.New(plan.View{Buffers: []plan.Buffer{Chunks("b", 5, "cpu=1")}}).Decisions[0], Now)
		Expect(s.PodTemplateRef.Name).To(Equal("web"))
		Expect(*s.PodTemplateGeneration).To(BeEquivalentTo(7))
		Expect(*s.ProvisioningStrategy).To(Equal(v1beta1.StrategyReserved))
	})

	It("names no PodTemplate for a workload", func() {
		s := plan.NewStatus(plan.New(plan.View{Buffers: []plan.Buffer{NewBuffer("b", "{"+ByWorkload+", replicas: 1}", WithWorkload(3, one))}}).Decisions[0], Now)
		Expect(s.PodTemplateRef).To(BeNil())
		Expect(s.Replicas).To(HaveValue(BeEquivalentTo(1)))
	})

	It("has the generation and the time that it is about", func() {
		d := plan.New(plan.View{Buffers: []plan.Buffer{Chunks("b", 5, "cpu=1")}}).Decisions[0]
		after := d.After(Now)
		Expect(after.Status).To(Equal(plan.NewStatus(d, Now)))
		Expect(after.Status.Conditions).To(HaveEach(And(HaveField("ObservedGeneration", BeEquivalentTo(2)), HaveField("LastTransitionTime", Equal(metav1.NewTime(Now))))))
		Expect(d.Buffer.Status.Conditions).To(BeEmpty(), "the buffer of the view is unchanged")
	})

	It("says whether the buffer or a quota wants no chunks", func() {
		message := func(n int, quotas ...*corev1.ResourceQuota) string {
			d := plan.New(plan.View{Buffers: []plan.Buffer{Chunks("b", n, "cpu=1")}, Quotas: quotas}).Decisions[0]
			return plan.NewStatus(d, Now).Conditions[3].Message
		}
		Expect(message(0)).To(Equal("the buffer asks for no chunks now"))
		Expect(message(1, Quota("q", "cpu=0", ""))).To(Equal("ResourceQuotas leave no room for chunks: q"))
	})

	It("keeps the conditions of others, and the time of a condition that does not change", func() {
		b := Chunks("b", 5, "cpu=1")
		b.Object.Status.Conditions = []metav1.Condition{{Type: "Example", Status: "True"}}
		b.Object.Status = plan.NewStatus(plan.New(plan.View{Buffers: []plan.Buffer{b}}).Decisions[0], Now)
		later := plan.NewStatus(plan.New(plan.View{Buffers: []plan.Buffer{b}}).Decisions[0], Now.Add(time.Hour))
		Expect(later).To(Equal(b.Object.Status))
		Expect(later.Conditions).To(HaveLen(5))
	})

	It("does not list a hundred names", func() {
		var pools []plan.Pool
		for i := range 100 {
			pools = append(pools, Site(fmt.Sprintf("p%02d", i), "cpu=1", 4))
		}
		d := plan.New(plan.View{Buffers: []plan.Buffer{Chunks("b", 100, "cpu=1")}, Pools: pools}).Decisions[0]
		Expect(plan.NewStatus(d, Now).Conditions[2].Message).To(Equal("room for 0 of 100 chunks is ready in p00, p01, p02, p03, p04 and 95 more"))
	})
})

var _ = Describe("Machines", func() {
	alike := func(limits ...int) []plan.Pool {
		return []plan.Pool{Site("a", "cpu=4", limits[0]), Site("b", "cpu=4", limits[1])}
	}

	It("stay where they are while no packing is better (law 6)", func() {
		v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 5, "cpu=1")}, Pools: alike(9, 4)})
		Expect(Spread(v)).To(Equal("a=2"))
		v.Pools[1].Deployment.Annotations[machine.BoundsAnnotation] = "1:99"
		Expect(plan.New(v).Requests).To(BeEmpty())
	})

	It("move where fewer hold the chunks, and none that is ready goes before those that replace it are ready (law 6)", func() {
		v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 8, "cpu=1")}, Pools: alike(9, 3)})
		v.Pools = append(v.Pools, Site("c", "cpu=8", 9))
		Expect(Requests(plan.New(v))).To(Equal("c=1"))
		half := After(v)
		half.Pools[2].Ready = 0
		Expect(plan.New(half).Requests).To(BeEmpty())
		Expect(Requests(plan.New(After(v)))).To(Equal("a=-"))
	})

	It("stand in where machines cannot be created, which keeps one for the next try (law 7)", func() {
		v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 8, "cpu=1")}, Pools: alike(9, 5)}, "a")
		Expect(Spread(v)).To(Equal("a=2"))
		v = After(v, "a")
		Expect(Spread(v)).To(Equal("a=1 b=2"))
		v = After(v, "a")
		Expect(plan.New(v).Requests).To(BeEmpty())
		Expect(Standing(v.Buffers[0].Object)).To(Equal("8 Provisioning=FitsExistingCapacity Ready=Complete"))
		Expect(Spread(After(After(v)))).To(Equal("a=1 b=1"))
	})

	It("are said to be impossible to create where none can stand in (law 7)", func() {
		v := After(After(plan.View{Buffers: []plan.Buffer{Chunks("b", 8, "cpu=1")}, Pools: alike(9, 3)}, "a"), "a")
		Expect(Standing(v.Buffers[0].Object)).To(Equal("8 Provisioning=RequiresNewCapacity Ready=CannotBeMade"))
		Expect(Spread(v)).To(Equal("a=1"))
		v = After(After(After(v)))
		Expect(Spread(v)).To(Equal("a=2"))
		Expect(Standing(After(v).Buffers[0].Object)).To(Equal("8 Provisioning=FitsExistingCapacity Ready=Complete"))
	})

	It("go with the buffers also where they cannot be created (law 10)", func() {
		v := After(After(plan.View{Buffers: []plan.Buffer{Chunks("b", 8, "cpu=1")}, Pools: alike(9, 3)}, "a"), "a")
		v.Buffers = nil
		Expect(Requests(plan.New(v))).To(Equal("a=-"))
		v.Buffers = []plan.Buffer{Chunks("b", 0, "cpu=1")}
		Expect(Requests(plan.New(v))).To(Equal("a=-"))
	})

	DescribeTable("are kept where too little is known for a while (law 5)",
		func(change func(*plan.Pool)) {
			v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 5, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}})
			change(&v.Pools[0])
			Expect(plan.New(v).Requests).To(BeEmpty())
			v.Buffers = nil
			Expect(Requests(plan.New(v))).To(Equal("a=-"))
		},
		Entry("bounds", Annotated(machine.BoundsAnnotation, "many")),
		Entry("machines", func(p *plan.Pool) { p.Node = nil }),
	)

	It("go with the buffers, and with the MachineDeployment (law 10)", func() {
		v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 5, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}})
		Expect(Requests(plan.New(plan.View{Buffers: v.Buffers, Reserves: v.Reserves}))).To(Equal("a=-"))
		Expect(Requests(plan.New(plan.View{Pools: v.Pools, Reserves: v.Reserves}))).To(Equal("a=-"))
	})

	DescribeTable("are requested again when somebody changes the Reserve",
		func(change func(*autoscaling.Reserve), want string) {
			v := After(plan.View{Buffers: []plan.Buffer{Chunks("b", 5, "cpu=1")}, Pools: []plan.Pool{Site("a", "cpu=4", 9)}})
			change(v.Reserves[0])
			Expect(Requests(plan.New(v))).To(Equal(want))
		},
		Entry("its number", func(r *autoscaling.Reserve) { r.Spec.Replicas = 7 }, "a=2"),
		Entry("its pools", func(r *autoscaling.Reserve) { r.Spec.Pools.Names = []string{"b"} }, "a=2"),
		Entry("another field", func(r *autoscaling.Reserve) { r.Spec.Suspend = true }, "a=2"),
		Entry("nothing", func(*autoscaling.Reserve) {}, ""),
	)
})
