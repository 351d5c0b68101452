// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("A cluster whose watch is late", func() {
	It("is not taken for one that was restored because an autoscaler is removed", func() {
		play(func(f *federation) {
			registry := prometheus.NewRegistry()
			f.options.Registerer = registry
			f.start()
			f.create(Federated(2, 20))
			f.settle()
			f.clusters[0].Lag("horizontalpodautoscalers", sim.Constantly(25*time.Second), "federatedhpa")
			f.clusters[0].BreakWatches("federatedhpa")
			f.change("shop", func(s *Spec) { s.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "c2"}} })
			f.settle()
			Expect(f.maxima("shop")).To(Equal("-/19"), "c1 keeps a replica")
			Expect(restoresIn(registry)).To(BeEmpty())
		}, "c1", "c2")
	})
})

var _ = Describe("A cluster that is restored between two probes, and passes its old version before the second one,", func() {
	It("gets its autoscaler back where the backup had none", func() {
		play(func(f *federation) {
			f.start()
			c := f.clusters[1]
			backup := c.Snapshot()
			f.create(Federated(3, 30))
			f.settle()
			before := c.Version()
			c.Restore(backup)
			Expect(c.hpa("shop")).To(BeNil())
			c.passes(before)
			time.Sleep(2 * time.Minute)
			Expect(f.maxima("shop")).To(Equal("10/10/10"))
		}, "c1", "c2", "c3")
	})
})
