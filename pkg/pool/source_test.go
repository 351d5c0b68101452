// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
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
