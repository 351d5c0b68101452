// SPDX-License-Identifier: Apache-2.0

package balance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
)

var _ = Describe("The metrics of zones", func() {
	It("show what is blocked for as long as it is, and no longer", func() {
		registry := prometheus.NewRegistry()
		m := newMetrics(registry)
		blocked := func() map[string]float64 {
			families, err := registry.Gather()
			Expect(err).NotTo(HaveOccurred())
			all := map[string]float64{}
			for _, family := range families {
				if family.GetName() == "evenkeel_balance_blocked_machinedeployments" {
					for _, one := range family.GetMetric() {
						all[one.GetLabel()[0].GetValue()] = one.GetGauge().GetValue()
					}
				}
			}
			return all
		}
		m.planned(plan.Plan{Blocks: map[string]string{"a": "PodsBound", "b": "PodsBound", "c": "NoRoom"}})
		Expect(blocked()).To(Equal(map[string]float64{"PodsBound": 2, "NoRoom": 1}))
		m.planned(plan.Plan{Blocks: map[string]string{"c": "NoRoom"}})
		Expect(blocked()).To(Equal(map[string]float64{"NoRoom": 1}))
	})
})
