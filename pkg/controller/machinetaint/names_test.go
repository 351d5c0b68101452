// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			since := len(a.Writes())
			a.becomes("b", "c")
			Expect(a.wrote(since)).To(BeEmpty())
			Expect(a.closed("c")).To(BeTrue())
		})
	})

	It("the Node of a busy successor is not closed, and its pods are not counted, for the machine in reserve that had its name", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
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
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
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
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
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
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
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

	It("gets back the replica that it took, if the machine was in reserve", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			goes(a)
			time.Sleep(time.Minute)
			names(a)
			a.wrote(0)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(2)))
		})
	})

	It("gets it back although the machine was the last one in reserve, and none is wanted any more", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.patch(`{"spec":{"excessReplicas":0}}`)
			time.Sleep(time.Second)
			goes(a)
			a.wrote(0)
			names(a)
			a.wrote(0)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(2)))
		})
	})

	It("does not get it back if the machine served", func() {
		onItsOwn(3, 0, machinetaint.Options{}, func(a *alone) {
			a.patch(`{"spec":{"excessReplicas":1}}`)
			a.wrote(0)
			goes(a)
			names(a)
			a.wrote(0)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(1)))
		})
	})

	It("does not get it back if the machine has left the reserve to serve, whether it is there or not", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.patch(`{"spec":{"replicas":3}}`)
			a.wrote(0)
			names(a)
			a.wrote(0)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(1)))
			goes(a)
			a.wrote(0)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(1)))
		})
	})

	It("takes no machine that serves until it gets it back, also where another controller of the process saw the name first", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			ctx := context.Background()
			a.wrote(0)
			goes(a)
			a.Hold("machinedeployments", controllerUser)
			names(a)
			_, err := a.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Patch(ctx, "pool-1", types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			named, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(ctx, "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			a.taint.ObserveUpdate(ctx, named)
			time.Sleep(time.Second)
			Expect(a.refusesDeletion("a")).To(Satisfy(apierrors.IsConflict))
			a.Release("machinedeployments", controllerUser)
			a.wrote(0)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(2)))
		})
	})

	It("keeps the name of one that goes until the controller sees it, since a list after a broken watch would not show it", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			a.Hold("machinedeployments", controllerUser, lensUser)
			names(a)
			time.Sleep(time.Second)
			named, err := a.stock.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			kept, unnamed := named.DeepCopy(), named.DeepCopy()
			kept.Annotations["x"] = "y"
			delete(unnamed.Annotations, machineutils.TriggerDeletionByMCM)
			Expect(a.taint.Guards().Unname(named, unnamed)).To(Satisfy(apierrors.IsConflict))
			Expect(a.taint.Guards().Unname(named, kept)).To(Succeed())
			a.Release("machinedeployments", lensUser)
			time.Sleep(time.Second)
			Expect(a.taint.Guards().Unname(named, unnamed)).To(Satisfy(apierrors.IsConflict))
			a.Release("machinedeployments", controllerUser)
			time.Sleep(time.Second)
			Expect(a.taint.Guards().Unname(named, unnamed)).To(Succeed())
		})
	})

	It("does not get it back if the machine has been gone for long, since its name may mean another one", func() {
		onItsOwn(2, 1, machinetaint.Options{}, func(a *alone) {
			a.wrote(0)
			goes(a)
			time.Sleep(time.Hour)
			names(a)
			a.wrote(0)
			Expect(a.deployment().Spec.Replicas).To(Equal(int32(1)))
		})
	})
})

var _ = DescribeTable("A raise of replicas accounts for names of machines",
	func(names, before, after string, raised int, inReserve, left string, more int) {
		listing := func(returned string) *api.MachineDeployment {
			d := &api.MachineDeployment{}
			d.Namespace, d.Annotations = fixture.Namespace, map[string]string{api.ReturnedAnnotation: returned}
			return d
		}
		all := map[string]bool{}
		for _, name := range strings.Fields(names) {
			all[name] = true
		}
		machinetaint.SettleNames(all, listing(before), listing(after), raised, func(name string) bool {
			Expect(name).To(HavePrefix(fixture.Namespace + "/"))
			return strings.Contains(inReserve, strings.TrimPrefix(name, fixture.Namespace+"/"))
		})
		for _, name := range strings.Fields(left) {
			Expect(all).To(HaveKey(name))
		}
		Expect(all).To(HaveLen(len(strings.Fields(left)) + more))
	},
	Entry("that are listed as returned", "a b", "", "a", 1, "a b", "b", 0),
	Entry("and of a machine that is gone, where more is raised than is listed anew", "b c d", "a", "a,b", 2, "", "", 1),
	Entry("and of no other, where what is listed accounts for all of it", "a b", "", "a", 1, "", "b", 0),
	Entry("of as many that are gone as are raised", "a b c", "", "", 2, "", "", 1),
	Entry("not of those that are in reserve still", "a b", "", "", 2, "a b", "a b", 0),
	Entry("of none, where nothing is left of the raise", "a", "", "", 0, "", "a", 0),
)

var _ = DescribeTable("A write notes the reserve machines that it names",
	func(was, is int32, before, after, settled, noted string) {
		listing := func(generation int64, replicas int32, names string) *api.MachineDeployment {
			d := &api.MachineDeployment{}
			d.Namespace, d.Generation, d.Spec.Replicas = fixture.Namespace, generation, replicas
			d.Annotations = map[string]string{machineutils.TriggerDeletionByMCM: names, api.ReturnedAnnotation: settled}
			return d
		}
		reserve := func(machine string) bool { return machine != fixture.Namespace+"/serving" }
		got, gone := machinetaint.NotedNames(listing(1, was, before), listing(2, is, after), listing(2, is, ""), reserve)
		Expect(strings.Join(got, " ")).To(Equal(noted))
		Expect(gone).To(Equal(len(strings.Fields(noted))))
		_, gone = machinetaint.NotedNames(listing(1, was, before), listing(2, is, after), listing(3, is, ""), reserve)
		Expect(gone).To(BeZero(), "a later write may have settled them")
	},
	Entry("if it lowers replicas", int32(3), int32(2), "", "a~2026-01-01T00:00:00Z", "", "a"),
	Entry("not if replicas stay", int32(3), int32(3), "", "a~2026-01-01T00:00:00Z", "", ""),
	Entry("not if they rise", int32(3), int32(4), "", "a~2026-01-01T00:00:00Z", "", ""),
	Entry("not those that were named before", int32(3), int32(2), "a~2026-01-01T00:00:00Z", "a~2026-01-01T00:00:00Z,b~2026-01-01T00:00:00Z", "", "b"),
	Entry("not those that serve, or are settled", int32(3), int32(2), "", "serving~2026-01-01T00:00:00Z,a~2026-01-01T00:00:00Z", "a", ""),
)
