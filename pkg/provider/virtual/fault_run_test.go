// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// One spec per line of the table of faults in docs/virtual-provider.md.
var _ = Describe("A fault", func() {
	ctx := context.Background()
	kwok := func(w *world, node string) string { return w.node(node).Annotations[KwokAnnotation] }
	// running has machines a and b with Nodes, in one zone and one class.
	running := func(spec func(w *world)) func() {
		return inWorld(func(w *world) {
			for _, name := range []string{"a", "b"} {
				Expect(w.create(name, class("pool", plain))).To(Succeed())
			}
			after(time.Second)
			spec(w)
			Expect(w.condition("b", corev1.NodeReady)).To(Equal(corev1.ConditionTrue), "what concerns a must not concern b")
			Expect(kwok(w, "b")).To(Equal(KwokFake))
		})
	}

	It("outage: no machines in a zone, until it ends", running(func(w *world) {
		w.suffer("zones: {z1: {outage: true}}")
		Expect(codeSeen(w.create("c", slow))).To(Equal(codes.ResourceExhausted))
		Expect(w.create("a", slow)).To(Succeed(), "a machine that is there is no new one")
		Expect(w.create("d", class("elsewhere", with(`"zone":"z2"`)))).To(Succeed())
		w.suffer("")
		Expect(w.create("c", slow)).To(Succeed())
	}))

	It("createError: creation fails with that code", running(func(w *world) {
		w.suffer("classes: {pool: {createError: Unknown}}")
		Expect(codeSeen(w.create("c", slow))).To(Equal(codes.Unknown))
		Expect(w.create("d", class("other", plain))).To(Succeed())
		w.suffer("")
		Expect(w.create("c", slow)).To(Succeed())
	}))

	It("extraBootDelay: machines take longer, also those that boot already, until it ends", running(func(w *world) {
		Expect(w.create("c", slow)).To(Succeed())
		after(5 * time.Second)
		w.suffer("zones: {z1: {extraBootDelay: 1h}}")
		after(10 * time.Minute)
		Expect(w.node("c")).To(BeNil())
		w.suffer("")
		Expect(w.node("c")).NotTo(BeNil())
	}))

	It("ready: a node is cut off and comes back", running(func(w *world) {
		w.suffer("machines: {a: {ready: Unknown}}")
		Expect(w.condition("a", corev1.NodeReady)).To(Equal(corev1.ConditionUnknown))
		Expect(kwok(w, "a")).To(Equal(KwokHeld))
		before := w.writes()
		after(time.Hour)
		Expect(w.writes()).To(Equal(before))
		w.suffer("")
		Expect(w.condition("a", corev1.NodeReady)).To(Equal(corev1.ConditionTrue))
		Expect(kwok(w, "a")).To(Equal(KwokFake))
	}))

	It("ready: a kubelet that reports itself sick", running(func(w *world) {
		w.suffer("machines: {a: {ready: False}}")
		Expect(w.condition("a", corev1.NodeReady)).To(Equal(corev1.ConditionFalse))
	}))

	It("ready: changes from one to the other", running(func(w *world) {
		w.suffer("machines: {a: {ready: Unknown}}")
		w.suffer("machines: {a: {ready: False}}")
		Expect(w.condition("a", corev1.NodeReady)).To(Equal(corev1.ConditionFalse))
		w.suffer("machines: {a: {ready: Unknown}}")
		Expect(w.condition("a", corev1.NodeReady)).To(Equal(corev1.ConditionUnknown))
	}))

	It("ready: comes back also when the fault ended while no process was at work", running(func(w *world) {
		w.suffer("machines: {a: {ready: Unknown}}")
		w.stop()
		w.suffer("")
		w.start()
		Expect(w.condition("a", corev1.NodeReady)).To(Equal(corev1.ConditionTrue))
		Expect(kwok(w, "a")).To(Equal(KwokFake))
	}))

	It("dead: for good, over the end of the fault and a restart", running(func(w *world) {
		w.suffer("machines: {a: {dead: true}}")
		Expect(w.condition("a", corev1.NodeReady)).To(Equal(corev1.ConditionUnknown))
		w.suffer("")
		w.stop()
		w.start()
		before := w.writes()
		after(time.Hour)
		Expect(w.condition("a", corev1.NodeReady)).To(Equal(corev1.ConditionUnknown))
		Expect(kwok(w, "a")).To(Equal(KwokHeld))
		Expect(w.writes()).To(Equal(before))
		Expect(w.status("a")).To(Succeed(), "it exists, if dead")
		Expect(w.delete("a")).To(Succeed())
		Expect(w.create("a", class("pool", plain))).To(Succeed())
		after(time.Second)
		Expect(w.condition("a", corev1.NodeReady)).To(Equal(corev1.ConditionTrue), "another machine of the same name lives")
	}))

	It("dead: and not a later machine of that name", running(func(w *world) {
		former, _ := w.driver.fleet.findVM("a")
		Expect(w.delete("a")).To(Succeed())
		Expect(w.create("a", class("pool", plain))).To(Succeed())
		Expect(w.driver.recordDeath(ctx, former)).To(Succeed())
		w.stop()
		w.start()
		after(time.Second)
		Expect(w.condition("a", corev1.NodeReady)).To(Equal(corev1.ConditionTrue))
	}))

	It("conditions: a node has them, also against kwok, until the fault ends", running(func(w *world) {
		w.suffer("machines: {a: {conditions: {DiskPressure: True, KernelDeadlock: True}}}")
		Expect(w.condition("a", corev1.NodeDiskPressure)).To(Equal(corev1.ConditionTrue))
		Expect(w.condition("a", "KernelDeadlock")).To(Equal(corev1.ConditionTrue))
		Expect(w.condition("a", corev1.NodeReady)).To(Equal(corev1.ConditionTrue))

		node := w.node("a")
		node.Status.Conditions = nodeOf(machine("a"), nil, Fault{}, time.Now()).Status.Conditions
		_, err := w.core.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		after(0)
		Expect(w.condition("a", corev1.NodeDiskPressure)).To(Equal(corev1.ConditionTrue))

		w.suffer("")
		Expect(w.condition("a", corev1.NodeDiskPressure)).To(Equal(corev1.ConditionFalse))
		Expect(w.condition("a", "KernelDeadlock")).To(Equal(corev1.ConditionFalse))
	}))

	It("stuckDelete: a machine stays, until the fault ends", running(func(w *world) {
		w.suffer("machines: {a: {stuckDelete: true}}")
		Expect(codeSeen(w.delete("a"))).To(Equal(codes.DeadlineExceeded))
		Expect(w.node("a")).NotTo(BeNil())
		Expect(w.status("a")).To(Succeed())
		w.suffer("")
		Expect(w.delete("a")).To(Succeed())
	}))

	It("in a whole zone concerns every machine of it", inWorld(func(w *world) {
		Expect(w.create("a", class("one", plain))).To(Succeed())
		Expect(w.create("b", class("two", with(`"zone":"z2"`)))).To(Succeed())
		after(time.Second)
		w.suffer("zones: {z2: {ready: Unknown}}")
		Expect(w.condition("a", corev1.NodeReady)).To(Equal(corev1.ConditionTrue))
		Expect(w.condition("b", corev1.NodeReady)).To(Equal(corev1.ConditionUnknown))
	}))

	It("that cannot be read is reported, and the last ones stay", running(func(w *world) {
		w.suffer("zones: {z1: {outage: true}}")
		w.suffer("zones: {z1: {outrage: true}}")
		Expect(w.events.Events).To(Receive(And(HavePrefix("Warning InvalidFaults"), ContainSubstring("zones.z1.outrage"))))
		Expect(codeSeen(w.create("c", slow))).To(Equal(codes.ResourceExhausted))
		Expect(w.core.CoreV1().ConfigMaps(garden).Delete(ctx, FaultsConfigMap, metav1.DeleteOptions{})).To(Succeed())
		after(0)
		Expect(w.create("c", slow)).To(Succeed(), "no ConfigMap, no faults")
	}))

	It("is in effect from the first request of a new process on", inWorld(func(w *world) {
		w.stop()
		w.suffer("zones: {z1: {outage: true}}")
		w.driver = w.fresh()
		Expect(w.driver.LoadRecords(ctx)).To(Succeed())
		Expect(codeSeen(w.create("c", slow))).To(Equal(codes.ResourceExhausted))
		w.start()
	}))
})
