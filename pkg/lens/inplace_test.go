// SPDX-License-Identifier: Apache-2.0

//go:build !race

package lens_test

import (
	"context"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

func inPlace(d *machinev1alpha1.MachineDeployment) {
	d.Spec.Strategy = machinev1alpha1.MachineDeploymentStrategy{
		Type: machinev1alpha1.InPlaceUpdateMachineDeploymentStrategyType,
		InPlaceUpdate: &machinev1alpha1.InPlaceUpdateMachineDeployment{
			UpdateConfiguration: machinev1alpha1.UpdateConfiguration{
				MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromInt32(1)),
			},
			OrchestrationType: machinev1alpha1.OrchestrationTypeAuto,
		},
	}
}

// updateNodes does what the agents on the nodes and the machine-controller do to those that are selected for an update.
func (p *reservePool) updateNodes() (updated int) {
	GinkgoHelper()
	ctx := context.Background()
	nodes := kubernetes.NewForConfigOrDie(p.ConfigFor("agents")).CoreV1().Nodes()
	machines := p.user.MachineV1alpha1().Machines("default")
	list, err := nodes.List(ctx, metav1.ListOptions{LabelSelector: machinev1alpha1.LabelKeyNodeSelectedForUpdate})
	Expect(err).NotTo(HaveOccurred())
	for _, node := range list.Items {
		if node.Labels[machinev1alpha1.LabelKeyNodeUpdateResult] != "" {
			continue
		}
		node.Labels[machinev1alpha1.LabelKeyNodeUpdateResult] = machinev1alpha1.LabelValueNodeUpdateSuccessful
		_, err := nodes.Update(ctx, &node, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		m, err := machines.Get(ctx, node.Name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		m.Status.Conditions = append(m.Status.Conditions, corev1.NodeCondition{
			Type: machinev1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: machinev1alpha1.UpdateSuccessful,
		})
		_, err = machines.UpdateStatus(ctx, m, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		updated++
	}
	return updated
}

var _ = Describe("An in-place update of a pool with a reserve", func() {
	It("updates every machine, makes and removes none, and leaves their marks", func() {
		storm.Bubble(suite, func() {
			p := newReservePool(sim.Options{Seed: 1})
			defer p.End()
			p.Latency(5 * time.Millisecond)
			p.create(3, "2", inPlace)
			serving, reserve := p.names()
			births := len(p.born)

			p.patch(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`)
			updated := 0
			for range 60 {
				time.Sleep(30 * time.Second)
				updated += p.updateNodes()
			}
			Expect(updated).To(Equal(5))
			p.settle()
			after, held := p.names()
			Expect(after).To(Equal(serving))
			Expect(held).To(Equal(reserve))
			Expect(p.born).To(HaveLen(births))

			owners := map[string]int{}
			for _, m := range p.machines() {
				owners[metav1.GetControllerOf(m).Name]++
			}
			Expect(owners).To(HaveLen(1), "all machines have gone over to the new MachineSet")
			p.atRest()
		})
	})
})
