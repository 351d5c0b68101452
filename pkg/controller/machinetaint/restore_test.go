// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("The controller", func() {
	none := machinetaint.Options{}

	It("does not overwrite, from a store that is late, what a user has set meanwhile", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			a.wrote(0)
			a.Lag("machinedeployments", sim.Constantly(100*time.Millisecond), controllerUser, lensUser)
			a.patch(`{"spec":{"excessReplicas":null,"reserveWitness":null}}`)
			time.Sleep(50 * time.Millisecond)
			a.patch(`{"spec":{"excessReplicas":0}}`)
			a.wrote(0)
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(0)))
		})
	})

	It("restores a field that a client that does not know it has dropped, and leaves an explicit 0", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			a.wrote(0)
			a.heard()
			a.stockScales(3)
			a.wrote(0)
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(1)))
			Expect(a.heard()).To(ContainElement(ContainSubstring("Normal ExcessRestored spec.excessReplicas was removed and has been restored to 1")))
			Expect(a.counted("evenkeel_reserve_restorations_total")).To(BeEquivalentTo(1))
			a.patch(`{"spec":{"excessReplicas":0}}`)
			a.wrote(0)
			d, err = a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(0)))
			Expect(d.Annotations).NotTo(HaveKey(api.WantedExcessAnnotation))
		})
	})

	It("takes a field that a user has removed for 0", func() {
		onItsOwn(2, 1, none, func(a *alone) {
			a.wrote(0)
			a.stockScales(3)
			a.wrote(0)
			a.heard()
			a.patch(`{"spec":{"excessReplicas":null}}`)
			a.wrote(0)
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Spec.ExcessReplicas).To(BeNil())
			Expect(d.Spec.ReserveWitness).To(BeFalse())
			Expect(d.Annotations).NotTo(HaveKey(api.WantedExcessAnnotation))
			Expect(a.heard()).To(ContainElement("Normal ExcessRemoved spec.excessReplicas was removed, which means 0"))
			Expect(a.counted("evenkeel_reserve_restorations_total")).To(BeEquivalentTo(1), "the one before")
		})
	})

	It("restores a field whoever removes it where the API server drops its witness, and says so", func() {
		onServer(pruning("excessReplicas"), 2, 1, none, func(a *alone) {
			for range 2 {
				a.wrote(0)
				d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(d.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(1)))
				Expect(d.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("does not store spec.reserveWitness"))))
				since := len(a.Writes())
				time.Sleep(24 * time.Hour)
				Expect(a.wrote(since)).To(BeEmpty())
				a.patch(`{"spec":{"excessReplicas":null}}`)
			}
			a.wrote(0)
			Expect(a.counted("evenkeel_reserve_restorations_total")).To(BeEquivalentTo(2))
		})
	})

	It("reports the numbers of machines where the API server drops the selector", func() {
		kinds := pruning("excessReplicas", "reserveWitness")
		for _, kind := range kinds {
			if kind.Known != nil {
				kind.Known.Status = append(kind.Known.Status, "excessReplicas", "readyExcessReplicas")
			}
		}
		onServer(kinds, 2, 2, none, func(a *alone) {
			a.wrote(0)
			Expect(a.deployment().Status.ExcessReplicas).To(BeEquivalentTo(2))
			since := len(a.Writes())
			a.patch(`{"metadata":{"annotations":{"a-user":"was-here"}}}`)
			Expect(a.wrote(since)).To(BeEmpty())
			a.deleteSlowly("d")
			a.wrote(0)
			Expect(a.deployment().Status.ExcessReplicas).To(BeEquivalentTo(1))
		})
	})

	It("works from what it remembers where the API server drops the field, and says so", func() {
		onServer(pruning(), 2, 1, none, func(a *alone) {
			a.wrote(0)
			d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Spec.ExcessReplicas).To(BeNil())
			Expect(d.Annotations).To(HaveKeyWithValue(api.AppliedExcessAnnotation, "1"))
			Expect(d.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("does not store spec.excessReplicas"))))
			since := len(a.Writes())
			time.Sleep(24 * time.Hour)
			Expect(a.wrote(since)).To(BeEmpty())
		})
	})

	It("keeps no excess of former bounds where the API server drops the field", func() {
		onServer(pruning(), 2, 0, none, func(a *alone) {
			excess := func() map[string]string {
				a.wrote(0)
				d, err := a.user.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				return d.Annotations
			}
			a.patch(`{"metadata":{"annotations":{%q:"1:5:2"}}}`, api.BoundsAnnotation)
			Expect(excess()).To(HaveKeyWithValue(api.AppliedExcessAnnotation, "2,max=5"))
			a.patch(`{"metadata":{"annotations":{%q:null}}}`, api.BoundsAnnotation)
			Expect(excess()).NotTo(Or(HaveKey(api.AppliedExcessAnnotation), HaveKey(api.WantedExcessAnnotation)))
		})
	})
})
