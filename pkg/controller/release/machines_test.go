// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var _ = DescribeTable("A machine in reserve does not keep those behind it from pods that wait",
	func(kind types.PatchType, patch string) {
		playKept(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			c.settle()
			_, err := c.core.CoreV1().Nodes().Patch(context.Background(), "a-002", kind, []byte(patch), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.Start("release", controller(usual))
			c.create(fresh(1, "p", 1000)...)
			c.settle()
			Expect(c.waiting()).To(BeZero())
			Expect(c.replicas()).To(Equal("a=2"))
			Expect(c.events()).To(ConsistOf(HaveSuffix("to release machine a-003")))
		})
	},
	Entry("where its Node is cordoned", types.MergePatchType, `{"spec":{"unschedulable":true}}`),
	Entry("where its Node has a taint of its own", types.JSONPatchType, `[{"op":"add","path":"/spec/taints/-","value":{"key":"maintenance","effect":"NoSchedule"}}]`),
)

var _ = It("A machine in reserve on which pods run that tolerate the taint does not keep those behind it from pods that wait", func() {
	playKept(func(c *cluster) {
		c.grow("a", 1, 2, "1:10")
		c.agent("a-002", 3000)
		c.settle()
		c.Start("release", controller(usual))
		c.create(fresh(1, "p", 4000)...)
		c.settle()
		Expect(c.waiting()).To(BeZero())
		Expect(c.replicas()).To(Equal("a=2"))
		Expect(c.events()).To(ConsistOf(HaveSuffix("to release machine a-003")))
	})
})

var _ = It("A machine in reserve that cannot be created does not keep pods from those of another pool, though replicas ask for it", func() {
	playKept(func(c *cluster) {
		c.grow("a", 1, 1, "1:10")
		c.grow("b", 1, 1, "1:10")
		c.settle()
		c.set(func() { c.boot = 24 * time.Hour })
		c.Start("release", controller(usual))
		c.create(fresh(1, "p", 4000, InZone("a"))...)
		time.Sleep(time.Second)
		c.patch("a", `{"spec":{"replicas":3}}`) // as an autoscaler does, while the reserve is refilled
		time.Sleep(time.Second)
		c.fail()
		time.Sleep(time.Second)
		c.fail() // what is created for replicas, too
		c.create(fresh(1, "q", 4000)...)
		time.Sleep(time.Second)
		Expect(c.replicas()).To(Equal("a=3 b=2"))
	})
})

// playKept runs body on a cluster whose reserve is kept as the controller of MachineDeployments plans it.
func playKept(body func(c *cluster)) {
	storm.Bubble(suite, func() {
		c := inhabit(storm.NewWorld(sim.Options{Seed: 1, Resources: served}))
		defer c.End()
		c.Latency(time.Millisecond)
		body(c)
	})
}

// fail has the cloud create none of the machines that boot.
func (c *cluster) fail() {
	GinkgoHelper()
	for _, m := range c.machines() {
		if m.Spec.ProviderID == "" {
			m.Status.CurrentStatus.Phase = mcm.MachineCrashLoopBackOff
			m.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateFailed, ErrorCode: "ResourceExhausted"}
			_, err := c.ours.MachineV1alpha1().Machines(ns).UpdateStatus(context.Background(), &m, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
	}
}

// addZone adds a pool with one machine in reserve, and so many full ones that serve.
func addZone(o *Objects, name string, serving int, change func(*v1alpha1.MachineDeployment)) {
	z := spare()
	d, set := z.Deployments[0], z.Sets[0]
	d.Name, d.UID, set.Name, set.UID = name, types.UID(name), name, types.UID(name)
	d.Spec.Replicas = int32(serving)
	d.Annotations[v1alpha1.AppliedReplicasAnnotation] = "9"
	change(d)
	set.OwnerReferences[0].UID = d.UID
	one, node := z.Machines[0], z.Nodes[0]
	for i := range serving + 1 {
		m, n := one.DeepCopy(), node.DeepCopy()
		m.Name = name + string(rune('0'+i))
		n.Name, m.Labels[mcm.NodeLabelKey], m.Spec.ProviderID, m.OwnerReferences[0].UID = m.Name, m.Name, m.Name, set.UID
		if i > 0 {
			m.Annotations, n.Annotations, n.Spec.Taints = nil, nil, nil
			o.Pods = append(o.Pods, Pod("on-"+m.Name, 4000, func(p *corev1.Pod) { p.Spec.NodeName = m.Name }))
		}
		o.Machines, o.Nodes = append(o.Machines, m), append(o.Nodes, n)
	}
	o.Deployments, o.Sets = append(o.Deployments, d), append(o.Sets, set)
}

func inPool(name string) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) { d.Labels = map[string]string{pool.WorkerPoolLabel: name} }
}

func tainted(d *v1alpha1.MachineDeployment) {
	d.Spec.Template.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoExecute}}
}

var _ = DescribeTable("Of two zones, the smaller one releases", func(want string, second func(*v1alpha1.MachineDeployment)) {
	preview, err := NewPreview(UsualSettings)
	Expect(err).NotTo(HaveOccurred())
	o := Objects{Pods: []*corev1.Pod{Pod("late", 3000)}}
	addZone(&o, "a", 2, inPool("x"))
	addZone(&o, "b", 1, second)
	Expect(preview.SetObjects(o, Noon)).To(Succeed())
	Expect(Raises(preview.Plan())).To(Equal(want))
},
	Entry("if they are of one pool", "b+1(b0)", inPool("x")),
	Entry("unless they are of different pools", "a+1(a0)", inPool("y")),
	Entry("unless only one of them is dedicated", "a+1(a0)", func(d *v1alpha1.MachineDeployment) { inPool("x")(d); tainted(d) }),
)
