// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = DescribeTable("A pod", func(busy bool, change func(*corev1.Pod)) {
	w := newWorld()
	w.machine("new", "m")
	w.node("m")
	w.pod("m", change)
	Expect(w.one("m").Busy()).To(Equal(busy))
},
	Entry("makes its machine busy", true, func(*corev1.Pod) {}),
	Entry("makes it busy while it is being deleted", true, func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }),
	Entry("makes it busy although it tolerates the reserve's taint", true, tolerating(corev1.TaintEffectNoSchedule)),
	Entry("makes it busy without a controller", true, func(p *corev1.Pod) { p.OwnerReferences = nil }),
	Entry("does not as a DaemonSet's", false, func(p *corev1.Pod) { p.OwnerReferences = ownedBy("DaemonSet", "proxy") }),
	Entry("does not as the kubelet's own", false, func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }),
	Entry("does not once it has succeeded", false, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
	Entry("does not once it has failed", false, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
	Entry("does not on another Node", false, func(p *corev1.Pod) { p.Spec.NodeName = "other" }),
)

var _ = DescribeTable("A marked machine is in reserve", func(want bool, noExecute bool, pods ...func(*corev1.Pod)) {
	w := newWorld()
	m := w.machine("new", "m", marked)
	if noExecute {
		m.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{
			{Key: machine.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}, {Key: machine.ReserveTaintKey, Effect: corev1.TaintEffectNoExecute},
			{Key: "dedicated", Effect: corev1.TaintEffectPreferNoSchedule},
		}
	}
	w.node("m")
	for _, pod := range pods {
		w.pod("m", pod)
	}
	Expect(w.one("m").Reserve()).To(Equal(want))
},
	Entry("while it is empty", true, false),
	Entry("not with a pod that does not tolerate its taint", false, false, func(*corev1.Pod) {}),
	Entry("with a pod that tolerates its taint", true, false, tolerating(corev1.TaintEffectNoSchedule)),
	Entry("with a pod that tolerates everything", true, true, func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}),
	// The plugin looked for a toleration of NoSchedule alone, whatever effects were configured.
	Entry("not with a pod that tolerates one effect of two", false, true, tolerating(corev1.TaintEffectNoSchedule)),
	Entry("with a pod that tolerates each effect", true, true, func(p *corev1.Pod) {
		tolerating(corev1.TaintEffectNoSchedule)(p)
		tolerating(corev1.TaintEffectNoExecute)(p)
	}),
	Entry("not with one of two pods that does not tolerate it", false, false, tolerating(corev1.TaintEffectNoSchedule), func(*corev1.Pod) {}),
)

var _ = Describe("The Node of a Machine", func() {
	// Two Machines name one Node: the first is gone from its cloud, and the second has been given its address.
	reused := func(nodeID string) (before, after pool.Machine) {
		w := newWorld()
		for _, name := range []string{"before", "after"} {
			w.machine("new", name, func(m *mcm.Machine) {
				m.Labels[mcm.NodeLabelKey], m.Spec.ProviderID = "ip-10-0-0-1", "aws:///region/i-"+name
			})
		}
		w.node("ip-10-0-0-1", func(n *corev1.Node) { n.Spec.ProviderID = nodeID })
		w.pod("ip-10-0-0-1")
		return w.one("before"), w.one("after")
	}

	It("belongs to the Machine of its provider id where the name is reused", func() {
		before, after := reused("aws:///zone/i-after")
		Expect(before.Node).To(BeNil())
		Expect(before.Unseen).To(BeTrue())
		Expect(before.Busy()).To(BeTrue(), "its pods cannot be seen")
		Expect(before.Pods).To(BeZero())
		Expect(after.Node).NotTo(BeNil())
		Expect(after.Pods).To(Equal(1))
	})

	It("is matched by its name while it has no provider id", func() {
		before, after := reused("")
		Expect(before.Node).NotTo(BeNil())
		Expect(after.Node).NotTo(BeNil())
	})

	It("belongs to none of them where its provider id is a third machine's", func() {
		before, after := reused("aws:///zone/i-third")
		Expect(before.Node).To(BeNil())
		Expect(after.Node).To(BeNil())
	})

	It("is matched by its name if its provider id cannot be compared", func() {
		before, after := reused("kind://docker/x")
		Expect(before.Node).NotTo(BeNil())
		Expect(after.Node).NotTo(BeNil())
	})

	DescribeTable("that is not there leaves the machine busy", func(phase mcm.MachinePhase, busy bool) {
		w := newWorld()
		w.machine("new", "m", func(m *mcm.Machine) { m.Status.CurrentStatus.Phase = phase })
		Expect(w.one("m").Busy()).To(Equal(busy))
	},
		Entry("where it runs", mcm.MachineRunning, true),
		Entry("where it ran", mcm.MachineUnknown, true),
		Entry("where it joins no cluster, so that its pods cannot be seen", mcm.MachineAvailable, true),
		Entry("not where it boots", mcm.MachinePending, false),
		Entry("not where it is new", mcm.MachinePhase(""), false),
	)
})

var _ = DescribeTable("A machine leaves", func(want bool, change func(*world, *mcm.Machine)) {
	w := newWorld()
	change(w, w.machine("new", "m"))
	Expect(w.one("m").Leaving()).To(Equal(want))
},
	Entry("not by itself", false, func(*world, *mcm.Machine) {}),
	Entry("when it is deleted", true, func(_ *world, m *mcm.Machine) { m.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }),
	Entry("when it is terminating", true, func(_ *world, m *mcm.Machine) { m.Status.CurrentStatus.Phase = mcm.MachineTerminating }),
	Entry("when its MachineDeployment names it", true, func(w *world, _ *mcm.Machine) { w.deployment.Annotations[machineutils.TriggerDeletionByMCM] = "m" }),
	Entry("not when its MachineDeployment names another", false, func(w *world, _ *mcm.Machine) { w.deployment.Annotations[machineutils.TriggerDeletionByMCM] = "n" }),
	Entry("when it has priority 1 with a time", true, func(_ *world, m *mcm.Machine) {
		m.Annotations[machineutils.MachinePriority], m.Annotations[machineutils.MarkedForDeletionTime] = "1", "2026-03-01T12:00:00Z"
	}),
	Entry("not by priority 1 alone", false, func(_ *world, m *mcm.Machine) { m.Annotations[machineutils.MachinePriority] = "1" }),
	Entry("not because it has failed", false, func(_ *world, m *mcm.Machine) { m.Status.CurrentStatus.Phase = mcm.MachineFailed }),
)

func offering(cpu string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

func unready(n *corev1.Node)  { n.Status.Conditions[0].Status = corev1.ConditionFalse }
func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

var _ = DescribeTable("What a machine has for pods is what", func(want string, change func(*world)) {
	w := newWorld()
	w.Sets[0].Spec.Replicas = 3
	w.Classes = []*mcm.MachineClass{fixture.MachineClass("new", func(c *mcm.MachineClass) {
		c.NodeTemplate = &mcm.NodeTemplate{
			Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}, VirtualCapacity: corev1.ResourceList{"x/y": resource.MustParse("1")},
		}
	})}
	change(w)
	got := w.read().Allocatable
	if want == "" {
		Expect(got).To(BeNil())
		return
	}
	Expect(got.Cpu().String()).To(Equal(want))
},
	Entry("the MachineClass promises", "8", func(*world) {}),
	Entry("nothing shows", "", func(w *world) { w.Classes = nil }),
	Entry("nothing shows if the MachineClass has no nodeTemplate", "", func(w *world) { w.Classes[0].NodeTemplate = nil }),
	Entry("a ready Node shows", "4", func(w *world) { w.machine("new", "m"); w.node("m", offering("4")) }),
	Entry("the MachineClass promises until pods can be bound to the Node", "8", func(w *world) {
		w.machine("new", "m")
		w.node("m", offering("4"), func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
		})
	}),
	Entry("the MachineClass promises until a Node is ready", "8", func(w *world) { w.machine("new", "m"); w.node("m", offering("4"), unready) }),
	// The plugin took any Node that was ready, and in a rollout to larger machines went on to show the excess of the smaller ones.
	Entry("a Node of the current template shows", "6", func(w *world) {
		w.Sets[1].Spec.Replicas = 1
		w.machine("old", "a")
		w.node("a", offering("2"))
		w.machine("new", "b")
		w.node("b", offering("6"))
	}),
	Entry("the MachineClass promises before a machine of the current template is ready", "8", func(w *world) {
		w.Sets[1].Spec.Replicas = 1
		w.machine("old", "a")
		w.node("a", offering("2"))
		w.machine("new", "b")
	}),
	Entry("the first Node by the name of its Machine shows", "4", func(w *world) {
		w.machine("new", "b")
		w.node("b", offering("5"))
		w.machine("new", "a")
		w.node("a", offering("4"))
	}),
	Entry("a schedulable Node shows rather than one that is cordoned", "5", func(w *world) {
		w.machine("new", "b")
		w.node("b", offering("5"))
		w.machine("new", "a")
		w.node("a", offering("4"), cordoned)
	}),
	Entry("a cordoned Node shows rather than nothing", "4", func(w *world) { w.machine("new", "a"); w.node("a", offering("4"), cordoned) }),
	Entry("the first of several cordoned Nodes shows", "4", func(w *world) {
		w.machine("new", "b")
		w.node("b", offering("5"), cordoned)
		w.machine("new", "a")
		w.node("a", offering("4"), cordoned)
	}),
	Entry("its own Node shows, and not one that took over the name", "8", func(w *world) {
		w.machine("new", "a")
		w.machine("foreign", "b")
		w.node("a", offering("4"), func(n *corev1.Node) { n.Spec.ProviderID = "virtual:///b" })
	}),
)

var _ = Describe("A list of objects", func() {
	It("leaves out pods without a Node, and machines without a controller", func() {
		w := newWorld()
		w.machine("new", "a")
		w.machine("new", "b", func(m *mcm.Machine) { m.OwnerReferences = nil })
		w.machine("new", "c", func(m *mcm.Machine) { m.OwnerReferences[0].Controller = nil })
		w.pod("")
		w.pod("n")
		list := pool.NewList(w.Objects)
		Expect(list.Machines("new")).To(Equal(w.Machines[:1]))
		Expect(list.Machines("")).To(BeEmpty())
		Expect(list.Pods("n")).To(Equal([]*corev1.Pod{w.Pods[1]}))
		Expect(list.Pods("")).To(BeEmpty())
	})

	It("has MachineClasses by namespace and name", func() {
		class := fixture.MachineClass("small")
		other := fixture.MachineClass("small", func(c *mcm.MachineClass) { c.Namespace = "other" })
		list := pool.NewList(pool.Objects{Classes: []*mcm.MachineClass{class, other}})
		Expect(list.Class(fixture.Namespace, "small")).To(BeIdenticalTo(class))
		Expect(list.Class("other", "small")).To(BeIdenticalTo(other))
		Expect(list.Class(fixture.Namespace, "large")).To(BeNil())
	})
})

var _ = DescribeTable("The worker pool of a MachineDeployment is", func(own, nodes, want string) {
	d := newWorld().deployment
	d.Labels = map[string]string{"worker.gardener.cloud/pool": own}
	d.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"worker.gardener.cloud/pool": nodes}
	Expect(pool.WorkerPoolOf(d)).To(Equal(want))
},
	Entry("unknown without labels", "", "", ""),
	Entry("that of its own label", "cpu", "", "cpu"),
	Entry("that of its Nodes' label", "", "gpu", "gpu"),
	Entry("that of its own label, though its Nodes have another", "cpu", "gpu", "cpu"),
)

var _ = Describe("A snapshot", func() {
	It("has the machines of its own MachineSets, by UID", func() {
		w := newWorld()
		w.machine("new", "b")
		w.machine("old", "a")
		w.machine("gone", "c", func(m *mcm.Machine) { m.OwnerReferences[0].Name = "new" })
		s := w.read()
		Expect(s.Machines).To(HaveLen(2))
		Expect([]string{s.Machines[0].Object.Name, s.Machines[0].Set, s.Machines[1].Object.Name, s.Machines[1].Set}).To(Equal([]string{"a", "old", "b", "new"}))
		Expect([]string{s.Sets[0].Name, s.Sets[1].Name}).To(Equal([]string{"new", "old"}))
	})

	It("has the numbers of the MachineDeployment", func() {
		w := newWorld()
		w.deployment.Spec.Replicas = 9
		w.deployment.Annotations[machine.AppliedReplicasAnnotation] = "3"
		w.deployment.Annotations[machine.AppliedExcessAnnotation] = "2"
		w.deployment.Annotations[machine.BoundsAnnotation] = "1:10:4"
		s := w.read()
		Expect(s.Now).To(Equal(noon))
		Expect(s.Accounting).To(Equal(pool.Additive))
		Expect([]int{s.Replicas, s.Workload, s.Requested, s.Applied.Excess, s.Applied.Max}).To(Equal([]int{9, 3, 9, 2, pool.Unbounded}))
		Expect(s.WishesErr).NotTo(HaveOccurred())
		Expect(s.Wishes.Bounds.Max).To(BeEquivalentTo(10))
	})

	It("has no machines for workload at zero replicas, or below", func() {
		for _, replicas := range []int32{0, -1} {
			w := newWorld()
			w.deployment.Spec.Replicas = replicas
			s := w.read()
			Expect([]int{s.Replicas, s.Workload, s.Requested}).To(Equal([]int{0, 0, 0}))
		}
	})

	It("counts the reserve within replicas as soon as these include one machine of it", func() {
		w := newWorld()
		w.deployment.Spec.Replicas = 4
		w.deployment.Annotations[machine.AppliedExcessAnnotation] = "2,counted=1,replicas=4"
		s := w.read()
		Expect(s.Accounting).To(Equal(pool.Inclusive))
		Expect([]int{s.Replicas, s.Workload, s.Requested}).To(Equal([]int{4, 3, 3}))
		Expect(s.Applied).To(Equal(pool.Applied{Excess: 2, Max: pool.Unbounded, Counted: 1}))
	})

	It("has the other wishes where one is invalid", func() {
		w := newWorld()
		w.deployment.Annotations[machine.BoundsAnnotation] = "1:10"
		w.deployment.Annotations[machine.ShareAnnotation] = "some"
		s := w.read()
		Expect(s.WishesErr).To(MatchError(ContainSubstring("share")))
		Expect(s.Wishes.Bounds).NotTo(BeNil())
		w.deployment.Annotations[machine.BoundsAnnotation] = "none"
		Expect(w.read().WishesErr).To(MatchError(ContainSubstring("bounds")), "bounds come first")
	})

	It("reads what a Reserve requests, and is told where that is invalid", func() {
		w := newWorld()
		w.deployment.Annotations[machine.RequestedExcessAnnotation] = "office-hours=3"
		Expect(*w.read().Wishes.Requested).To(Equal(machine.RequestedExcess{Reserve: "office-hours", Machines: 3}))
		for _, text := range []string{"", "3", "=3", "a=", "a=-1", "a=b=3", "A=3", "a=4294967296", "a=01", strings.Repeat("a", 254) + "=1"} {
			w.deployment.Annotations[machine.RequestedExcessAnnotation] = text
			s := w.read()
			Expect(s.Wishes.Requested).To(BeNil(), text)
			Expect(s.WishesErr).To(MatchError(ContainSubstring("requested excess")), text)
		}
	})

	It("takes the field's last value for one that was removed", func() {
		w := newWorld()
		w.deployment.Annotations[machine.WantedExcessAnnotation] = "3"
		Expect(*w.read().Wishes.Field).To(BeEquivalentTo(3))
		w.deployment.Spec.ReserveWitness = true
		Expect(w.read().Wishes.Field).To(BeNil(), "who removed it knows it")
		w.deployment.Spec.ExcessReplicas = ptr.To[int32](0)
		Expect(*w.read().Wishes.Field).To(BeZero())
	})

	It("knows which machines are preserved", func() {
		w := newWorld()
		w.machine("new", "a", func(m *mcm.Machine) {
			m.Status.CurrentStatus.PreserveExpiryTime = ptr.To(metav1.NewTime(noon.Add(time.Second)))
		})
		w.machine("new", "b", func(m *mcm.Machine) { m.Status.CurrentStatus.PreserveExpiryTime = ptr.To(metav1.NewTime(noon)) })
		Expect(w.one("a").Preserved).To(BeTrue())
		Expect(w.one("b").Preserved).To(BeFalse())
	})

	It("leaves out pods that are promised a place on a Node and are not there", func() {
		w := newWorld()
		w.machine("new", "a")
		w.node("a")
		promised := fixture.Pod("promised", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.NominatedNodeName = "", "a" })
		snapshot := pool.Read(w.deployment, promising{pool.NewList(w.Objects), promised}, noon)
		Expect(snapshot.Machines[0].Pods).To(BeZero())
	})

	It("has the rollout of its machines that stay", func() {
		w := newWorld()
		w.machine("old", "a")
		w.machine("new", "b")
		Expect(w.read().Rollout).To(Equal(pool.Rollout{Set: "new", Replacing: true, Spread: true}))
		w.Machines[0].DeletionTimestamp = ptr.To(metav1.NewTime(noon))
		Expect(w.read().Rollout).To(Equal(pool.Rollout{Set: "new"}))
	})
})

var _ = It("A MachineClass promises its capacity, GPUs by the name that Nodes use, and virtual resources, and is not changed", func() {
	w := newWorld()
	w.Classes = []*mcm.MachineClass{fixture.MachineClass("new", func(c *mcm.MachineClass) {
		c.NodeTemplate = &mcm.NodeTemplate{
			Capacity:        corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), "gpu": resource.MustParse("4"), "x/y": resource.MustParse("1")},
			VirtualCapacity: corev1.ResourceList{"x/y": resource.MustParse("2")},
		}
	})}
	before := w.Classes[0].DeepCopy()
	promised := w.read().Allocatable
	Expect(promised).To(HaveLen(4))
	for name, quantity := range map[corev1.ResourceName]string{corev1.ResourceCPU: "8", "nvidia.com/gpu": "4", "x/y": "2", corev1.ResourcePods: "110"} {
		Expect(promised).To(HaveKeyWithValue(name, Satisfy(resource.MustParse(quantity).Equal)))
	}
	Expect(w.Classes[0]).To(Equal(before))
})

var _ = DescribeTable("GPUs of a machine are known", func(want string, change func(*corev1.Node)) {
	w := newWorld()
	w.Classes = []*mcm.MachineClass{fixture.MachineClass("new", func(c *mcm.MachineClass) {
		c.NodeTemplate = &mcm.NodeTemplate{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), "gpu": resource.MustParse("4")}}
	})}
	w.machine("new", "m")
	w.node("m", offering("7"), func(n *corev1.Node) {
		n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-time.Hour))
	}, change)
	got := w.read().Allocatable
	Expect(got).To(HaveKeyWithValue(corev1.ResourceCPU, Satisfy(resource.MustParse("7").Equal)))
	gpus := got["nvidia.com/gpu"]
	Expect(gpus.String()).To(Equal(want))
},
	Entry("by a Node that has served for a while, also that there are none", "0", func(*corev1.Node) {}),
	Entry("by the MachineClass, while the device plugin may still be starting", "4", func(n *corev1.Node) {
		n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon)
	}),
	Entry("by the MachineClass, while the reserve taint may keep the device plugin away", "4", func(n *corev1.Node) {
		n.Annotations = map[string]string{machine.ReserveAnnotation: "yes"}
	}),
	Entry("by a Node in reserve that has them", "2", func(n *corev1.Node) {
		n.Annotations = map[string]string{machine.ReserveAnnotation: "yes"}
		n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("2")
	}),
)

// promising is a source that has a pod for every Node, as an index by promised places has it.
type promising struct {
	pool.Source
	pod *corev1.Pod
}

func (p promising) Pods(string) []*corev1.Pod { return []*corev1.Pod{p.pod} }

// BenchmarkRead reads a MachineDeployment of 1,000 machines with three pods each from informers' stores. The outline is all that
// one without a reserve costs.
func BenchmarkRead(b *testing.B) {
	w := newWorld()
	for i := range 1000 {
		name := fmt.Sprint("m", i)
		w.machine("new", name)
		w.node(name)
		for range 3 {
			w.pod(name)
		}
	}
	source := w.stores()
	b.Run("outline", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			pool.Outline(w.deployment, source, noon)
		}
	})
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			pool.Read(w.deployment, source, noon)
		}
	})
}
