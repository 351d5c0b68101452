// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

var _ = Describe("The condition of a MachineDeployment", func() {
	var (
		before = metav1.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		now    = metav1.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)
	)
	// later is the condition after another report than one of a growing reserve.
	later := func(r plan.Report) mcmapi.MachineDeploymentCondition {
		d := &api.MachineDeployment{}
		d.Status = plan.NewStatus(d, plan.Report{Reserve: 1, Reason: reserve.Growing, Message: "1 of 2"}, before)
		d.Status = plan.NewStatus(d, r, now)
		Expect(d.Status.Conditions).To(HaveLen(1))
		return d.Status.Conditions[0]
	}

	It("is as it was where nothing differs", func() {
		c := later(plan.Report{Reserve: 1, Reason: reserve.Growing, Message: "1 of 2"})
		Expect([]metav1.Time{c.LastUpdateTime, c.LastTransitionTime}).To(Equal([]metav1.Time{before, before}))
	})

	It("is updated, and has not changed, where only the message differs", func() {
		c := later(plan.Report{Reserve: 1, Reason: reserve.Growing, Message: "0 of 2"})
		Expect([]metav1.Time{c.LastUpdateTime, c.LastTransitionTime}).To(Equal([]metav1.Time{now, before}))
		Expect(c.Message).To(Equal("0 of 2"))
	})

	It("is updated, and has not changed, where the reason differs and the status does not", func() {
		c := later(plan.Report{Reserve: 1, Reason: reserve.NotReady, Message: "1 of 2"})
		Expect(c.Status).To(Equal(mcmapi.ConditionFalse))
		Expect([]metav1.Time{c.LastUpdateTime, c.LastTransitionTime}).To(Equal([]metav1.Time{now, before}))
	})

	It("has changed where the status differs", func() {
		c := later(plan.Report{Reserve: 2, Reason: reserve.Complete, Message: "1 of 2"})
		Expect(c.Status).To(Equal(mcmapi.ConditionTrue))
		Expect([]metav1.Time{c.LastUpdateTime, c.LastTransitionTime}).To(Equal([]metav1.Time{now, now}))
	})
})
