// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	builders "github.com/evenkeel/evenkeel/test/builders/nodegroup"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = Describe("A machine whose name has left the annotation", func() {
	slow := func(c *cluster) {
		c.pool("pool", "1:9", 3)
		c.running("pool", "a", "b", "c")
		c.lull()
		c.Hold("machines", serving)
	}
	// takeOut does what machine-controller-manager does once a named machine terminates.
	takeOut := func(c *cluster) {
		c.patch("pool", `{"metadata":{"annotations":{%q:null}}}`, machineutils.TriggerDeletionByMCM)
	}

	It("is being deleted for a minute from then on, however long its name was there", func() {
		play(func(c *cluster) {
			slow(c)
			c.patch("pool", `{"metadata":{"annotations":{%q:"c~2026-03-01T12:00:00Z"}}}`, machineutils.TriggerDeletionByMCM)
			time.Sleep(10 * time.Minute)
			takeOut(c)
			time.Sleep(50 * time.Second)
			Expect(c.said("pool")).To(ContainElement("virtual:///node-c Deleting"))
			time.Sleep(15 * time.Second)
			Expect(c.said("pool")).To(ContainElement("virtual:///node-c Running"))
		})
	})

	It("is being deleted, too, if no watch has ever shown its name, because we wrote it", func() {
		play(func(c *cluster) {
			slow(c)
			c.Hold("machinedeployments", serving)
			Expect(c.remove("pool", "node-c")).To(Succeed())
			takeOut(c)
			c.Compact() // the watch lists again, and sees only the end
			c.Release("machinedeployments", serving)
			time.Sleep(30 * time.Second)
			Expect(c.said("pool")).To(ContainElement("virtual:///node-c Deleting"))
		})
	})
})

var _ = Describe("The template of a group", func() {
	It("is its Node as it was before it was cordoned, though nothing was heard of that Node since it became ready", func() {
		play(func(c *cluster) {
			ctx := context.Background()
			class := fixture.MachineClass(fixture.Class)
			class.NodeTemplate = builders.Class("z1")
			_, err := c.ours.MachineClasses(ns).Create(ctx, class, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.pool("pool", "0:9", 1)
			c.running("pool", "a")
			c.patchMachine("a", `{"spec":{"class":{"name":%q}}}`, fixture.Class)
			time.Sleep(2 * time.Minute)
			c.patchNode("node-a", `{"spec":{"unschedulable":true}}`)
			c.lull()
			node, err := c.template("pool")
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Status.Allocatable.Cpu().String()).To(Equal("4"), "what the Node has; the class promises 3920m")
		})
	})

	// quiet makes a pool with a MachineClass, a machine, and its Node. There are no more events about the Node once it is ready.
	quiet := func(c *cluster, classes map[string]string, order ...string) {
		GinkgoHelper()
		class := fixture.MachineClass(fixture.Class)
		class.NodeTemplate = builders.Class("z1")
		_, err := c.ours.MachineClasses(ns).Create(context.Background(), class, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		c.pool("pool", "0:9", 1)
		for _, name := range order {
			c.running("pool", name)
			c.patchMachine(name, `{"spec":{"class":{"name":%q}}}`, classes[name])
			c.patchNode("node-"+name, `{"metadata":{"labels":{"from":%q}}}`, name)
			time.Sleep(10 * time.Second)
		}
		time.Sleep(2 * time.Minute)
	}

	It("is not a Node of a machine of another class", func() {
		play(func(c *cluster) {
			quiet(c, map[string]string{"a": "former"}, "a")
			node, err := c.template("pool")
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Status.Allocatable.Cpu().String()).To(Equal("3920m"), "what the class promises; the Node has 4")
		})
	})

	It("is the oldest Node of its class, where nothing was heard of any since it became ready", func() {
		play(func(c *cluster) {
			quiet(c, map[string]string{"c": "former", "b": fixture.Class, "a": fixture.Class}, "c", "b", "a")
			node, err := c.template("pool")
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Labels).To(HaveKeyWithValue("from", "b"))
		})
	})

	It("is not a Node that is losing its reserve mark while its Machine still has it", func() {
		play(func(c *cluster) {
			ctx := context.Background()
			class := fixture.MachineClass(fixture.Class)
			class.NodeTemplate = builders.Class("z1")
			_, err := c.ours.MachineClasses(ns).Create(ctx, class, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.pool("pool", "0:9:1", 0)
			c.machine("pool", "r", mcm.MachineRunning, builders.InReserve)
			c.patchMachine("r", `{"spec":{"class":{"name":%q}}}`, fixture.Class)
			time.Sleep(2 * time.Minute)
			c.patchNode("node-r", `{"metadata":{"annotations":{%q:null}}}`, v1alpha1.ReserveAnnotation)
			c.lull()
			node, err := c.template("pool")
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Status.Allocatable.Cpu().String()).To(Equal("3920m"), "what the class promises; the Node has 4")
		})
	})
})
