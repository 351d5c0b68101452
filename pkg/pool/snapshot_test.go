// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
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
