// SPDX-License-Identifier: Apache-2.0

package reserves

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

var _ = It("The metrics of a Reserve are those of its status", func() {
	store, registry := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), prometheus.NewRegistry()
	Expect(store.Add(&v1alpha1.Reserve{Status: v1alpha1.ReserveStatus{DesiredReplicas: 5, Replicas: 3, ReadyReplicas: 2}})).To(Succeed())
	newMetrics(registry, store)
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	machines := map[string]float64{}
	for _, family := range families {
		if family.GetName() == "evenkeel_reserves_machines" {
			for _, one := range family.GetMetric() {
				for _, label := range one.GetLabel() {
					if label.GetName() == "what" {
						machines[label.GetValue()] = one.GetGauge().GetValue()
					}
				}
			}
		}
	}
	Expect(machines).To(Equal(map[string]float64{"desired": 5, "existing": 3, "ready": 2}))
})
