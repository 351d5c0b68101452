// SPDX-License-Identifier: Apache-2.0

//go:build !race

package lens_test

import (
	"context"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// story plays on a pool of three machines that serve and two in reserve.
func story(body func(*reservePool)) {
	storm.Bubble(suite, func() {
		p := newReservePool(sim.Options{Seed: 1})
		defer p.End()
		p.Latency(5 * time.Millisecond)
		p.create(3, "2,max=9")
		serving, reserve := p.names()
		Expect(serving).To(HaveLen(3))
		Expect(reserve).To(HaveLen(2))
		p.guard()
		body(p)
		p.names()
		p.atRest()
	})
}

var _ = Describe("MCM's controllers, looking at a reserve through views", func() {
	It("make replicas and excess, those to serve first, and then write nothing", func() {
		story(func(p *reservePool) {
			Expect(p.born).To(Equal([]bool{false, false, false, true, true}))
			nodes := 0
			for _, node := range p.Objects(nodesResource) {
				if taints, _ := node.Object["spec"].(map[string]any)["taints"].([]any); len(taints) > 0 {
					nodes++
				}
			}
			Expect(nodes).To(Equal(2), "nodes with the taint from their registration on")
			d := p.Get(deploymentsResource, fixture.Namespace, "pool")
			Expect(d.Object["spec"].(map[string]any)["replicas"]).To(BeEquivalentTo(3))
			Expect(d.Object["status"].(map[string]any)["replicas"]).To(BeEquivalentTo(5))
			for _, set := range p.Objects(setsResource) {
				Expect(set.Object["spec"].(map[string]any)["replicas"]).To(BeEquivalentTo(5))
				Expect(set.GetAnnotations()).NotTo(HaveKey(HavePrefix(api.AnnotationPrefix)))
			}
		})
	})

	It("leave the template of a machine in reserve alone, and bring its changes to all", func() {
		story(func(p *reservePool) {
			p.patch(`{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"new":"label"}},"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}}}}}`)
			p.settle()
			all := p.machines()
			Expect(all).To(HaveLen(5))
			for _, m := range all {
				Expect(m.Spec.NodeTemplateSpec.Labels).To(HaveKeyWithValue("new", "label"))
				Expect(m.Spec.NodeTemplateSpec.Spec.Taints).To(ContainElement(HaveField("Key", "a")))
			}
			serving, reserve := p.names()
			Expect(serving).To(HaveLen(3))
			Expect(reserve).To(HaveLen(2))
		})
	})

	It("make the machine behind one that is released, and none go at the max (L3)", func() {
		story(func(p *reservePool) {
			_, reserve := p.names()
			p.scale(4)
			p.release(reserve[0])
			p.settle()
			serving, left := p.names()
			Expect(serving).To(HaveLen(4))
			Expect(left).To(HaveLen(2))

			p.patch(`{"metadata":{"annotations":{%q:"2,max=6"}}}`, api.AppliedExcessAnnotation)
			p.settle()
			before := p.machines()
			p.scale(5)
			p.release(left[0])
			p.settle()
			Expect(p.machines()).To(HaveLen(len(before)))
		})
	})

	It("take a serving machine when replicas shrink", func() {
		story(func(p *reservePool) {
			_, before := p.names()
			p.scale(2)
			p.settle()
			serving, reserve := p.names()
			Expect(serving).To(HaveLen(2))
			Expect(reserve).To(Equal(before))
		})
	})

	It("take the named machine when replicas shrink, also one in reserve", func() {
		story(func(p *reservePool) {
			for round := range 2 {
				serving, reserve := p.names()
				named := serving[1]
				if round == 1 {
					named = reserve[0]
				}
				time.Sleep(time.Minute)
				now := metav1.Now().UTC().Format(time.RFC3339)
				p.patch(`{"spec":{"replicas":%d},"metadata":{"annotations":{"%s":"%s~%s","%s":"%s"}}}`, 2-round,
					"node.machine.sapcloud.io/trigger-deletion-by-mcm", named, now,
					"machine.sapcloud.io/last-deployment-replica-change-by-scaler-time", now)
				p.settle()
				left, held := p.names()
				Expect(append(left, held...)).NotTo(ContainElement(named))
				Expect(len(left) + len(held)).To(Equal(4 - round))
			}
		})
	})

	It("take the victims of the gate when the excess shrinks", func() {
		story(func(p *reservePool) {
			before, reserve := p.names()
			p.change(reserve[1], func(m *machinev1alpha1.Machine) { m.Annotations["machinepriority.machine.sapcloud.io"] = "2" })
			p.settle()
			p.patch(`{"metadata":{"annotations":{%q:"1,max=9"}}}`, api.AppliedExcessAnnotation)
			p.settle()
			serving, left := p.names()
			Expect(serving).To(Equal(before))
			Expect(left).To(Equal(reserve[:1]))
		})
	})

	It("replace all machines in a rolling update", func() {
		story(func(p *reservePool) {
			old := p.machines()
			p.patch(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`)
			p.settle()
			all := p.machines()
			Expect(all).To(HaveLen(5))
			for _, m := range all {
				Expect(m.Spec.Class.Name).To(Equal("other"))
				for _, gone := range old {
					Expect(m.Name).NotTo(Equal(gone.Name))
				}
			}
			Expect(p.Get(deploymentsResource, fixture.Namespace, "pool").Object["status"].(map[string]any)["updatedReplicas"]).To(BeEquivalentTo(5))
		})
	})

	It("replace a machine that fails, in reserve or not", func() {
		story(func(p *reservePool) {
			serving, reserve := p.names()
			for _, name := range []string{serving[0], reserve[0]} {
				machines := p.user.MachineV1alpha1().Machines(fixture.Namespace)
				m, err := machines.Get(context.Background(), name, metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				m.Status.CurrentStatus.Phase = machinev1alpha1.MachineFailed
				_, err = machines.UpdateStatus(context.Background(), m, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				p.settle()
			}
			after, left := p.names()
			Expect(after).To(HaveLen(3))
			Expect(left).To(HaveLen(2))
			Expect(append(after, left...)).NotTo(ContainElements(serving[0], reserve[0]))
		})
	})

	It("end with their MachineDeployment", func() {
		story(func(p *reservePool) {
			world.Delete(p.deployments(), "pool")
			p.settle()
			Expect(p.machines()).To(BeEmpty())
			Expect(p.Objects(deploymentsResource)).To(BeEmpty())
		})
	})

	It("leave what others wrote into fields they do not know", func() {
		story(func(p *reservePool) {
			p.patch(`{"spec":{"excessReplicas":2},"metadata":{"annotations":{%q:"1:9:2"}}}`, api.BoundsAnnotation)
			_, err := p.deployments().Patch(context.Background(), "pool", types.MergePatchType,
				[]byte(`{"status":{"excessReplicas":2,"readyExcessReplicas":1}}`), metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
			p.patch(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`)
			p.settle()
			d := p.Get(deploymentsResource, fixture.Namespace, "pool").Object
			Expect(d["spec"].(map[string]any)["excessReplicas"]).To(BeEquivalentTo(2))
			Expect(d["status"].(map[string]any)["excessReplicas"]).To(BeEquivalentTo(2))
			Expect(d["status"].(map[string]any)["readyExcessReplicas"]).To(BeEquivalentTo(1))
			Expect(d["status"].(map[string]any)["observedGeneration"]).To(BeEquivalentTo(d["metadata"].(map[string]any)["generation"]))
		})
	})
})
