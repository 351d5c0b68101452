// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
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
