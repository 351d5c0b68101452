// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = Describe("The Node of a new machine", func() {
	existing := fixture.Node("n")
	read := func(sample *corev1.Node, class ...func(*mcm.MachineClass)) *corev1.Node {
		s := pool.Snapshot{Deployment: newWorld().deployment, Sample: sample}
		s.Deployment.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"pool": "p"}
		s.Deployment.Spec.Template.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{{Key: "k"}}
		if len(class) > 0 {
			s.Class = fixture.MachineClass("new", class...)
		}
		return pool.SampleNode(s)
	}
	cordoned := fixture.Node("n", func(n *corev1.Node) { n.Spec.Unschedulable = true })

	It("is like an existing one", func() {
		Expect(read(existing, described)).To(Equal(existing))
	})

	It("has none of the taints that an existing one has only for a while", func() {
		lasting, passing := corev1.Taint{Key: "dedicated"}, []corev1.Taint{
			{Key: "ToBeDeletedByClusterAutoscaler"}, {Key: corev1.TaintNodeDiskPressure}, {Key: "node.gardener.cloud/critical-components-not-ready"},
		}
		draining := fixture.Node("n", func(n *corev1.Node) { n.Spec.Taints = append(passing, lasting) })
		Expect(read(draining, described).Spec.Taints).To(Equal([]corev1.Taint{lasting}))
		Expect(draining.Spec.Taints).To(HaveLen(4), "the Node itself is unchanged")
	})

	It("is like one that no person has tainted, if there is one", func() {
		w := newWorld()
		w.Sets[0].Spec.Template = w.deployment.Spec.Template
		for _, name := range []string{"a", "b", "c"} {
			w.machine("new", name)
		}
		tainted := func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}}
		}
		w.node("a", tainted)
		w.node("b", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: machine.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}, {Key: "rather-not", Effect: corev1.TaintEffectPreferNoSchedule}}
		})
		w.node("c", tainted)
		Expect(pool.SampleNode(w.read()).Name).To(Equal("b"))

		By("one that all are tainted like")
		w.Nodes = slices.DeleteFunc(w.Nodes, func(n *corev1.Node) bool { return n.Name == "b" })
		Expect(pool.SampleNode(w.read()).Name).To(Equal("a"))
	})

	It("is like one that serves, if there is one, and has what one in reserve does not offer yet", func() {
		w := newWorld()
		w.Sets[0].Spec.Template = w.deployment.Spec.Template
		w.Classes = []*mcm.MachineClass{fixture.MachineClass("new", func(c *mcm.MachineClass) {
			c.NodeTemplate = &mcm.NodeTemplate{Capacity: corev1.ResourceList{"cpu": resource.MustParse("8"), "gpu": resource.MustParse("2")}}
		})}
		w.machine("new", "a", marked)
		w.machine("new", "b")
		w.node("a", func(n *corev1.Node) { n.Annotations = map[string]string{machine.ReserveAnnotation: "marked"} })
		w.node("b")
		Expect(pool.SampleNode(w.read())).To(BeIdenticalTo(w.Nodes[1]), "which has no devices, whatever the MachineClass says")

		By("one in reserve alone")
		w.Nodes = w.Nodes[:1]
		n := pool.SampleNode(w.read())
		Expect(n.Status.Allocatable).To(And(HaveKeyWithValue(corev1.ResourceName("nvidia.com/gpu"), resource.MustParse("2")), HaveKeyWithValue(corev1.ResourceCPU, resource.MustParse("4"))))
		Expect(w.Nodes[0].Status.Allocatable).NotTo(HaveKey(corev1.ResourceName("nvidia.com/gpu")), "the Node itself is unchanged")
	})

	It("is as the MachineClass describes it if there is none, or only one that is cordoned", func() {
		for _, sample := range []*corev1.Node{nil, cordoned} {
			n := read(sample, described)
			Expect(n.Status.Allocatable.Cpu().Value()).To(BeEquivalentTo(8))
			Expect(n.Status.Capacity.Cpu().Value()).To(BeEquivalentTo(8))
			Expect(n.Labels).To(And(HaveKeyWithValue("pool", "p"), HaveKeyWithValue(corev1.LabelHostname, ""), HaveKeyWithValue(corev1.LabelTopologyZone, "z")))
			Expect(n.Spec.Taints).To(Equal([]corev1.Taint{{Key: "k"}}))
		}
	})

	It("offers what one of the same type does that a rollout replaces, before there is a new one", func() {
		w := newRollout()
		w.Nodes[0].Labels["gpu"], w.Nodes[0].Labels[corev1.LabelTopologyZone] = "present", "old"
		n := pool.SampleNode(w.read())
		Expect([]int64{n.Status.Capacity.Cpu().Value(), n.Status.Allocatable.Cpu().Value()}).To(Equal([]int64{4, 4}))
		Expect(n.Labels).To(And(HaveKeyWithValue("gpu", "present"), HaveKeyWithValue(corev1.LabelTopologyZone, "z")))
		Expect([]any{n.Spec.Unschedulable, n.Spec.Taints}).To(Equal([]any{false, []corev1.Taint(nil)}))

		By("without the labels that only the old template has")
		w.Machines[1].Spec.NodeTemplateSpec.Labels = map[string]string{"gpu": "present"}
		Expect(pool.SampleNode(w.read()).Labels).NotTo(HaveKey("gpu"))
	})

	It("is not known without a MachineClass, or if that describes none", func() {
		Expect(read(nil)).To(BeNil())
		Expect(read(cordoned)).To(BeNil())
		Expect(read(nil, func(*mcm.MachineClass) {})).To(BeNil())
	})
})

// described gives a MachineClass a description of its machines.
func described(c *mcm.MachineClass) {
	c.NodeTemplate = &mcm.NodeTemplate{Capacity: corev1.ResourceList{"cpu": resource.MustParse("8")}, Zone: "z", InstanceType: "large"}
}

// newRollout returns a world in which no new machine is ready yet, and the only Node is that of the old
// machine a. The type of both has four CPUs there, and eight in the MachineClass.
func newRollout() *world {
	w := newWorld()
	w.Sets[0].Spec.Template = w.deployment.Spec.Template
	w.Classes = []*mcm.MachineClass{fixture.MachineClass("new", described)}
	w.machine("old", "0, without a Node")
	w.machine("old", "a")
	w.machine("new", "b")
	w.node("a", func(n *corev1.Node) {
		n.Labels = map[string]string{corev1.LabelInstanceTypeStable: "large"}
		n.Spec = corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: "deployment.machine.sapcloud.io/prefer-no-schedule"}}}
	})
	return w
}

var _ = DescribeTable("A Node is not used to predict new ones", func(change func(*world)) {
	w := newRollout()
	change(w)
	Expect(pool.SampleNode(w.read()).Status.Allocatable.Cpu().Value()).To(BeEquivalentTo(8))
},
	Entry("if its type is another one", func(w *world) { w.Nodes[0].Labels[corev1.LabelInstanceTypeStable] = "small" }),
	Entry("if no type is known", func(w *world) {
		w.Classes[0].NodeTemplate.InstanceType = ""
		delete(w.Nodes[0].Labels, corev1.LabelInstanceTypeStable)
	}),
	Entry("while it is not ready", func(w *world) { unready(w.Nodes[0]) }),
	Entry("while it is cordoned, and not replaced", func(w *world) {
		w.Machines[1].OwnerReferences = w.Machines[2].OwnerReferences
	}),
)

var _ = DescribeTable("Of two Nodes, a and b, the sample is the second", func(a, b func(*world, *corev1.Node)) {
	w := newWorld()
	own := []corev1.Taint{{Key: "dedicated", Value: "shop", Effect: corev1.TaintEffectNoSchedule}}
	w.deployment.Spec.Template.Spec.NodeTemplateSpec.Spec.Taints = own
	w.Sets[0].Spec.Template = w.deployment.Spec.Template
	for name, change := range map[string]func(*world, *corev1.Node){"a": a, "b": b} {
		w.machine("new", name)
		w.node(name, func(n *corev1.Node) {
			n.Spec.Taints = slices.Clone(own)
			change(w, n)
		})
	}
	slices.SortFunc(w.Machines, func(a, b *mcm.Machine) int { return strings.Compare(a.Name, b.Name) })
	Expect(w.read().Sample.Name).To(Equal("b"))
},
	Entry("if the first has a taint that is not of the node template", hasTaint("maintenance"), usual),
	Entry("if the first is cordoned and the second has such a taint", func(_ *world, n *corev1.Node) { cordoned(n) }, hasTaint("maintenance")),
	Entry("if the first is marked as in reserve, and its Node is not yet", func(w *world, _ *corev1.Node) { marked(w.Machines[len(w.Machines)-1]) }, usual),
)

func usual(*world, *corev1.Node) {}

func hasTaint(key string) func(*world, *corev1.Node) {
	return func(_ *world, n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
}

var _ = Describe("The least amounts of several machines", func() {
	amounts := func(cpu, memory string) corev1.ResourceList {
		all := corev1.ResourceList{}
		for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if text != "" {
				all[name] = resource.MustParse(text)
			}
		}
		return all
	}
	given := func(all ...corev1.ResourceList) []corev1.ResourceList { return all }

	DescribeTable("are",
		func(all []corev1.ResourceList, want corev1.ResourceList) {
			got := pool.LeastAmounts(all)
			Expect(got == nil).To(Equal(want == nil))
			Expect(equality.Semantic.DeepEqual(got, want)).To(BeTrue(), "%v", got)
		},
		Entry("the smallest of each resource, whichever machine has it", given(amounts("4", "8Gi"), amounts("8", "4Gi")), amounts("4", "4Gi")),
		Entry("only of resources that all machines offer", given(amounts("4", "8Gi"), amounts("8", "")), amounts("4", "")),
		Entry("only of resources that all machines offer, in any order", given(amounts("8", ""), amounts("4", "8Gi")), amounts("4", "")),
		Entry("those of the machines that are known", given(nil, amounts("4", "8Gi"), nil, amounts("2", "8Gi")), amounts("2", "8Gi")),
		Entry("not known if no machine is", given(nil, nil), nil),
		Entry("not known without machines", given(), nil),
		Entry("nothing if a machine offers nothing", given(amounts("4", "8Gi"), amounts("", "")), amounts("", "")),
	)

	It("are computed on a copy", func() {
		first := amounts("4", "8Gi")
		pool.LeastAmounts(given(first, amounts("2", "")))
		Expect(first).To(Equal(amounts("4", "8Gi")))
	})
})
