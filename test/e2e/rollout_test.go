// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	stockapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

func recreate(md *machine.MachineDeployment) {
	md.Spec.Strategy = machine.MachineDeploymentStrategy{Type: stockapi.RecreateMachineDeploymentStrategyType}
}

func inPlace(orchestration machine.OrchestrationType) func(*machine.MachineDeployment) {
	return func(md *machine.MachineDeployment) {
		md.Spec.Strategy = machine.MachineDeploymentStrategy{
			Type: stockapi.InPlaceUpdateMachineDeploymentStrategyType,
			InPlaceUpdate: &machine.InPlaceUpdateMachineDeployment{
				UpdateConfiguration: machine.UpdateConfiguration{MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromInt32(1))},
				OrchestrationType:   orchestration,
			},
		}
	}
}

// newTemplate has all machines made, or updated, by another class.
func (p pool) newTemplate(ctx context.Context) {
	GinkgoHelper()
	p.newClass(ctx, p.name+"-other")
	p.patch(ctx, fmt.Sprintf(`{"spec":{"template":{"spec":{"class":{"name":"%s-other"}}}}}`, p.name))
}

// nodeAgent does from now on what a Node's own agent does in an in-place update, and what readies the Node after it.
func (p pool) nodeAgent(ctx context.Context) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	DeferCleanup(func() { end(); <-done })
	go func() {
		defer GinkgoRecover()
		defer close(done)
		for tick := time.NewTicker(interval); ; {
			select {
			case <-life.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			nodes, err := p.nodes(life)
			if err != nil {
				continue
			}
			for _, node := range nodes {
				p.tend(life, node)
			}
		}
	}()
}

func (p pool) tend(ctx context.Context, node corev1.Node) {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == stockapi.NodeInPlaceUpdate && c.Reason == stockapi.ReadyForUpdate
	})
	notReady := func(t corev1.Taint) bool { return t.Key == "node.gardener.cloud/critical-components-not-ready" }
	changed := node.DeepCopy()
	if ready && node.Labels[stockapi.LabelKeyNodeUpdateResult] == "" {
		changed.Labels[stockapi.LabelKeyNodeUpdateResult] = stockapi.LabelValueNodeUpdateSuccessful
	}
	if node.Labels[stockapi.LabelKeyNodeUpdateResult] == "" {
		changed.Spec.Taints = slices.DeleteFunc(changed.Spec.Taints, notReady)
	}
	if len(changed.Spec.Taints) != len(node.Spec.Taints) || len(changed.Labels) != len(node.Labels) {
		_, _ = kube.CoreV1().Nodes().Update(ctx, changed, metav1.UpdateOptions{}) // after a conflict, the next attempt reads it again
	}
}

// rollsOut waits until no machine is of the old template, and all is at rest.
func (p pool) rollsOut(ctx context.Context, serving, reserve int) {
	GinkgoHelper()
	Eventually(func() error {
		if err := p.resting(ctx, serving, reserve, "Complete"); err != nil {
			return err
		}
		list, err := p.machines(ctx)
		owners := map[string]bool{}
		for _, m := range list {
			owners[metav1.GetControllerOf(&m).Name] = true
		}
		if len(owners) != 1 {
			return fmt.Errorf("machines of %d MachineSets: %w", len(owners), err)
		}
		return err
	}).WithContext(ctx).WithTimeout(2 * soon).Should(Succeed())
}

func (p pool) saying(ctx context.Context) func() (string, error) {
	return func() (string, error) {
		md, err := p.deployment(ctx)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s, %d in reserve", p.says(md), md.Status.ExcessReplicas), nil
	}
}

var _ = Describe("In a rollout, a reserve", Label("ours", "long"), func() {
	It("changes as usual while the MachineDeployment is paused, and is rolled out when it is resumed", func(ctx context.Context) {
		p := newPool(ctx, "rollout-paused", 2, excess(1))
		p.rests(ctx, 2, 1, "Complete")
		p.work(ctx, 2)
		p.patch(ctx, `{"spec":{"paused":true}}`)
		p.newTemplate(ctx)
		p.want(ctx, 2)
		Eventually(p.saying(ctx)).Should(Equal("Complete, 2 in reserve"))
		p.want(ctx, 1)
		Eventually(p.saying(ctx)).Should(Equal("Complete, 1 in reserve"))
		p.patch(ctx, `{"spec":{"paused":null}}`)
		p.rollsOut(ctx, 2, 1)
	})

	It("does not change while machines are replaced one after the other, and then reaches the desired size", func(ctx context.Context) {
		p := newPool(ctx, "rollout-rolling", 2, excess(2))
		p.rests(ctx, 2, 2, "Complete")
		p.work(ctx, 2)
		w := p.witness(ctx)
		p.newTemplate(ctx)
		p.want(ctx, 1)
		Eventually(p.saying(ctx)).Should(HavePrefix("RollingOut"))
		p.rollsOut(ctx, 2, 1)
		Expect(w.podsLost()).To(BeNumerically("<=", 2), "a pod moves once")
	})

	It("is created after the serving machines when all machines are recreated", func(ctx context.Context) {
		p := newPool(ctx, "rollout-recreate", 2, excess(1), recreate)
		p.rests(ctx, 2, 1, "Complete")
		p.work(ctx, 2)
		p.newTemplate(ctx)
		p.rollsOut(ctx, 2, 1)
		Eventually(func() int { return len(p.busy(ctx)) }).WithContext(ctx).Should(Equal(2))
	})

	It("does not change while machines are updated in place, and keeps them all", func(ctx context.Context) {
		p := newPool(ctx, "rollout-auto", 2, excess(1), inPlace(machine.OrchestrationType(stockapi.OrchestrationTypeAuto)))
		p.rests(ctx, 2, 1, "Complete")
		before := namesOf(p.machines(ctx))
		p.nodeAgent(ctx)
		p.newTemplate(ctx)
		p.rollsOut(ctx, 2, 1)
		Expect(namesOf(p.machines(ctx))).To(ConsistOf(before))
	})

	It("changes as usual until a user has updated the first machine in place", func(ctx context.Context) {
		p := newPool(ctx, "rollout-manual", 2, excess(2), inPlace(machine.OrchestrationType(stockapi.OrchestrationTypeManual)))
		p.rests(ctx, 2, 2, "Complete")
		p.nodeAgent(ctx)
		p.newTemplate(ctx)
		p.want(ctx, 1)
		Eventually(p.saying(ctx)).Should(Equal("Complete, 1 in reserve"))
		Eventually(func() ([]machine.Machine, error) { return p.machines(ctx) }).Should(HaveLen(3))
		names := namesOf(p.machines(ctx))
		for i, name := range names {
			_, err := kube.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, stockapi.LabelKeyNodeSelectedForUpdate), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			Eventually(func() (int, error) {
				sets, err := machines.MachineV1alpha1().MachineSets(namespace).List(ctx, metav1.ListOptions{})
				moved := 0
				for _, set := range sets.Items {
					if metav1.IsControlledBy(&set, must(p.deployment(ctx))) && set.Spec.Template.Spec.Class.Name == p.name+"-other" {
						moved = int(set.Spec.Replicas)
					}
				}
				return moved, err
			}).WithContext(ctx).Should(Equal(i + 1))
		}
		p.rollsOut(ctx, 2, 1)
		Expect(namesOf(p.machines(ctx))).To(ConsistOf(names))
	})
})
