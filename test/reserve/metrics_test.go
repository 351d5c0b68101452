// SPDX-License-Identifier: Apache-2.0

package reserve_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
)

var _ = Describe("The metrics of a reserve", func() {
	none := machinetaint.Settings{}

	It("say that it is as wanted", func() {
		onItsOwn(2, 2, none, func(a *alone) {
			a.wrote(0)
			Expect(a.shown("evenkeel_reserve_ready")).To(Equal(series{"pool Complete": 1}))
			Expect(a.shown("evenkeel_reserve_excess")).To(Equal(series{"pool applied": 2, "pool wanted": 2}))
			Expect(a.shown("evenkeel_reserve_machines")).To(Equal(series{"pool ready": 2}))
		})
	})

	It("say what is wanted beside what is asked for, and that it is not ready", func() {
		onItsOwn(2, 2, none, func(a *alone) {
			a.patch(`{"spec":{"excessReplicas":3},"metadata":{"annotations":{%q:"what"}}}`, api.BoundsAnnotation)
			a.wrote(0)
			Expect(a.shown("evenkeel_reserve_ready")).To(Equal(series{"pool BoundsInvalid": 0}))
			Expect(a.shown("evenkeel_reserve_excess")).To(Equal(series{"pool applied": 2, "pool wanted": 3}))
		})
	})

	It("say what a Reserve requests, if that is more", func() {
		onItsOwn(2, 2, none, func(a *alone) {
			for requested, wanted := range map[string]float64{"queue=1": 2, "queue=3": 3} {
				a.patch(`{"metadata":{"annotations":{%q:%q}}}`, api.RequestedExcessAnnotation, requested)
				a.wrote(0)
				Expect(a.shown("evenkeel_reserve_excess")).To(HaveKeyWithValue("pool wanted", wanted))
			}
		})
	})

	It("tell machines in reserve apart that leave, also before the machine controller has seen that", func() {
		onItsOwn(2, 2, none, func(a *alone) {
			a.deleteSlowly("d")
			Expect(a.shown("evenkeel_reserve_machines")).To(Equal(series{"pool ready": 1, "pool leaving": 1}))
		})
	})

	It("say nothing where there is none", func() {
		onItsOwn(2, 0, none, func(a *alone) {
			a.wrote(0)
			Expect(a.shown("evenkeel_reserve_ready")).To(BeEmpty())
			Expect(a.shown("evenkeel_reserve_excess")).To(BeEmpty())
		})
	})
})

// series are gauges, by the values of their labels but for the namespace.
type series map[string]float64

func (a *alone) shown(name string) series {
	GinkgoHelper()
	families, err := a.metrics.Gather()
	Expect(err).NotTo(HaveOccurred())
	all := series{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				if l.GetName() != "namespace" {
					labels += " " + l.GetValue()
				}
			}
			all[labels[1:]] = m.GetGauge().GetValue()
		}
	}
	return all
}
