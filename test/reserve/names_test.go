// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

// becomes has the Machine of one Node name another, as where the Node's name was reused: its own Node is gone.
func (a *alone) becomes(machine, node string) {
	GinkgoHelper()
	ctx := context.Background()
	Expect(a.core.CoreV1().Nodes().Delete(ctx, machine, metav1.DeleteOptions{})).To(Succeed())
	_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(ctx, machine, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"node":%q}}}`, node), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (a *alone) closed(node string) bool {
	GinkgoHelper()
	n, err := a.core.CoreV1().Nodes().Get(context.Background(), node, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return len(n.Spec.Taints) > 0 && n.Annotations[api.ReserveAnnotation] != ""
}

var _ = Describe("Where names of Nodes are reused", func() {
	It("the Node of a successor in reserve is not opened for the machine that had its name", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.wrote(0)
			since := len(a.Writes())
			a.becomes("b", "c")
			Expect(a.wrote(since)).To(BeEmpty())
			Expect(a.closed("c")).To(BeTrue())
		})
	})

	It("the Node of a busy successor is not closed, and its pods are not counted, for the machine in reserve that had its name", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.wrote(0)
			since := len(a.Writes())
			a.becomes("c", "a")
			Expect(a.wrote(since)).To(HaveEach("machines c"))
			Expect(a.closed("a")).To(BeFalse())
			m := a.stored("c")
			Expect(m.Annotations).To(HaveKey(api.ReserveAnnotation))
		})
	})

	It("a Node that is another machine's by the time it is written is left alone", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			ctx, nodes := context.Background(), a.core.CoreV1().Nodes()
			a.wrote(0)
			a.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == controllerUser && r.Writes() && r.Resource == "nodes" {
					return 50 * time.Millisecond, 0
				}
				return 0, 0
			})
			a.patch(`{"spec":{"replicas":3}}`)
			time.Sleep(20 * time.Millisecond)
			node, err := nodes.Get(ctx, "c", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(nodes.Delete(ctx, "c", metav1.DeleteOptions{})).To(Succeed())
			_, err = nodes.Create(ctx, fixture.Node("c", func(n *corev1.Node) {
				n.Annotations, n.Spec.Taints, n.Spec.ProviderID = node.Annotations, node.Spec.Taints, "sim:///successor"
			}), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			a.wrote(0)
			Expect(a.closed("c")).To(BeTrue())
		})
	})

	It("a machine that boots under the name of a busy one makes room for a machine in reserve that is ready", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.wrote(0)
			since := len(a.Writes())
			_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), "b", types.MergePatchType, []byte(`{"status":{"currentStatus":{"phase":"Pending"}}}`), metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
			a.becomes("b", "a")
			Expect(a.wrote(since)).To(ContainElements("machines b", "machines c"))
			Expect(a.closed("a")).To(BeFalse())
			Expect(a.closed("c")).To(BeFalse())
		})
	})

	It("a Node is mended though many Machines that are gone had its name", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			ctx := context.Background()
			for i := range 20 {
				m := fixture.Machine(fmt.Sprintf("gone-%d", i))
				m.Labels, m.Spec.ProviderID = map[string]string{"node": "c"}, "sim:///"+m.Name
				_, err := a.stock.MachineV1alpha1().Machines(fixture.Namespace).Create(ctx, m, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			a.wrote(0)
			_, err := a.core.CoreV1().Nodes().Patch(ctx, "c", types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			a.wrote(0)
			Expect(a.closed("c")).To(BeTrue())
		})
	})
})

var _ = Describe("An autoscaler that names a machine which has gone by then", func() {
	names := func(a *alone) {
		a.patch(`{"spec":{"replicas":1},"metadata":{"annotations":{%q:"c~%s"}}}`, machineutils.TriggerDeletionByMCM, time.Now().UTC().Format(time.RFC3339))
	}
	goes := func(a *alone) {
		Expect(a.stock.MachineV1alpha1().Machines(fixture.Namespace).Delete(context.Background(), "c", metav1.DeleteOptions{})).To(Succeed())
		time.Sleep(time.Second)
	}

	It("gets back the replica that it took, whether the machine was in reserve or served", func() {
		for _, reserve := range []int{1, 0} {
			onItsOwn(3-reserve, reserve, machinetaint.Settings{}, func(a *alone) {
				a.patch(`{"spec":{"excessReplicas":1}}`)
				a.wrote(0)
				goes(a)
				time.Sleep(time.Minute)
				names(a)
				a.wrote(0)
				Expect(a.deployment().Spec.Replicas).To(Equal(int32(2)), "it is replaced by then, and no other one is to go")
				a.exists("a")
				a.exists("b")
				a.patch(`{"spec":{"replicas":1}}`)
				a.wrote(0)
				Expect(a.deployment().Spec.Replicas).To(Equal(int32(1)), "once")
			})
		}
	})

	It("does not get it back if the machine has left the reserve to serve, and goes for it", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			a.wrote(0)
			a.patch(`{"spec":{"replicas":3}}`)
			a.wrote(0)
			a.patch(`{"spec":{"replicas":2},"metadata":{"annotations":{%q:"c~%s"}}}`, machineutils.TriggerDeletionByMCM, time.Now().UTC().Format(time.RFC3339))
			a.wrote(0)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(2)))
			a.exists("a")
			a.exists("b")
		})
	})

	It("takes no machine that serves until it gets it back, also where another controller of the process saw the name first", func() {
		onItsOwn(2, 1, machinetaint.Settings{}, func(a *alone) {
			ctx := context.Background()
			a.wrote(0)
			goes(a)
			a.Hold("machinedeployments", controllerUser)
			names(a)
			_, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Patch(ctx, "pool-1", types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			named, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(ctx, "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			a.controller.ObserveUpdate(ctx, named)
			time.Sleep(time.Second)
			a.Release("machinedeployments", controllerUser)
			a.wrote(0)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(2)))
		})
	})
})
