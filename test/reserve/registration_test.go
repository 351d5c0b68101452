// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// registers replaces a Node by one that has just registered, with the registration taint and that of a kubelet that is not ready.
func (a *alone) registers(node string) {
	GinkgoHelper()
	ctx, nodes := context.Background(), a.core.CoreV1().Nodes()
	_ = nodes.Delete(ctx, node, metav1.DeleteOptions{}) // it may be the first one of this name
	_, err := nodes.Create(ctx, fixture.Node(node, func(n *corev1.Node) {
		n.Spec.ProviderID = "sim:///" + node
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}, {Key: api.RegistrationTaintKey, Effect: corev1.TaintEffectNoSchedule}}
	}), metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// taints are the keys of a Node's taints.
func (a *alone) taints(node string) []string {
	GinkgoHelper()
	n, err := a.core.CoreV1().Nodes().Get(context.Background(), node, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return keysOf(n)
}

func keysOf(n *corev1.Node) (keys []string) {
	for _, taint := range n.Spec.Taints {
		keys = append(keys, taint.Key)
	}
	return keys
}

var _ = Describe("A Node that registers closed", func() {
	It("gets the reserve taint in the same write where its machine is in reserve", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			var seen [][]string
			a.AfterWrite(func(w sim.Write) error {
				if w.Resource == "nodes" && w.Name == "c" && w.User == controllerUser {
					seen = append(seen, keysOf(world.Decoded[corev1.Node](w.Object)))
				}
				return nil
			})
			a.registers("c")
			a.wrote(0)
			Expect(seen[0]).To(ConsistOf(corev1.TaintNodeNotReady, api.ReserveTaintKey))
			Expect(a.closed("c")).To(BeTrue(), "the rest of the mark follows")
			Expect(a.taints("c")).To(ConsistOf(corev1.TaintNodeNotReady, api.ReserveTaintKey))
		})
	})

	It("is opened at once where its machine serves, with or without a reserve", func() {
		for _, reserve := range []int{0, 1} {
			onItsOwn(2, reserve, machinetaint.Settings{}, func(a *alone) {
				a.registers("b")
				time.Sleep(time.Second)
				Expect(a.taints("b")).To(ConsistOf(corev1.TaintNodeNotReady))
			})
		}
	})

	It("waits for the Machine that names it", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.registers("new")
			time.Sleep(time.Minute)
			Expect(a.taints("new")).To(ContainElement(api.RegistrationTaintKey))
			a.registers("other")
			time.Sleep(time.Second)
			for machine, node := range map[string]string{"c": "new", "b": "other"} {
				_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), machine, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"node":%q}},"spec":{"providerID":"sim:///%s"}}`, node, node), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			time.Sleep(time.Second)
			Expect(a.taints("new")).To(ConsistOf(corev1.TaintNodeNotReady, api.ReserveTaintKey))
			Expect(a.taints("other")).To(ConsistOf(corev1.TaintNodeNotReady))
		})
	})

	It("is opened after two minutes where no Machine names it, also if a Node of the same name has just gone", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			for range 2 {
				a.registers("stranger")
				time.Sleep(2*time.Minute - time.Second)
				Expect(a.taints("stranger")).To(ContainElement(api.RegistrationTaintKey))
			}
			time.Sleep(2 * time.Second)
			Expect(a.taints("stranger")).To(ConsistOf(corev1.TaintNodeNotReady))
		})
	})

	It("is opened then, though another client writes it at that moment", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.registers("stranger")
			time.Sleep(2*time.Minute - time.Second)
			a.Hold("nodes", controllerUser)
			world.Patch(a.core.CoreV1().Nodes(), "stranger", `{"metadata":{"labels":{"other":"label"}}}`)
			time.Sleep(2 * time.Second)
			Expect(a.taints("stranger")).To(ContainElement(api.RegistrationTaintKey))
			a.Release("nodes", controllerUser)
			time.Sleep(time.Second)
			Expect(a.taints("stranger")).To(ConsistOf(corev1.TaintNodeNotReady))
		})
	})

	It("is not opened for the Machine of an earlier instance of the same name", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), "b", types.MergePatchType, []byte(`{"spec":{"providerID":"sim:///earlier"}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			a.wrote(0)
			a.registers("b")
			time.Sleep(time.Minute)
			Expect(a.taints("b")).To(ContainElement(api.RegistrationTaintKey))
		})
	})

	It("stays closed while no process runs, and is decided about by the next one", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.end()
			a.registers("b")
			a.registers("c")
			time.Sleep(time.Hour)
			Expect([][]string{a.taints("b"), a.taints("c")}).To(HaveEach(ContainElement(api.RegistrationTaintKey)))
			a.end = a.start(machinetaint.Settings{})
			time.Sleep(10 * time.Second)
			Expect(a.taints("b")).To(ConsistOf(corev1.TaintNodeNotReady))
			Expect(a.taints("c")).To(ConsistOf(corev1.TaintNodeNotReady, api.ReserveTaintKey))
		})
	})

	It("keeps what others write at the same time", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.Hold("nodes", controllerUser)
			a.registers("b")
			nodes := a.core.CoreV1().Nodes()
			n, err := nodes.Get(context.Background(), "b", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoSchedule})
			_, err = nodes.Update(context.Background(), n, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			a.Release("nodes", controllerUser)
			time.Sleep(time.Minute)
			Expect(a.taints("b")).To(ConsistOf(corev1.TaintNodeNotReady, "other"))
		})
	})

	It("is written once for each of a hundred that register together", func() {
		onItsOwn(100, 0, machinetaint.Settings{}, func(a *alone) {
			since := len(a.Writes())
			for i := range 100 {
				name := string(rune('a' + i))
				if i >= 26 {
					name = fmt.Sprintf("m-%d", i)
				}
				a.registers(name)
			}
			wrote := a.wrote(since)
			Expect(slices.DeleteFunc(wrote, func(w string) bool { return w[:5] != "nodes" })).To(HaveLen(100))
		})
	})
})
