// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"context"
	"time"

	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/test/sim"
)

// waits is what a histogram of the waits for machines contains.
func (w lensWorld) waits(name string) *dto.Histogram {
	GinkgoHelper()
	families, err := w.metrics.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && m.Label[0].GetValue() == "machines" {
				return m.GetHistogram()
			}
		}
	}
	return nil
}

var _ = Describe("A watch that is late", func() {
	It("is logged once, and so is that it has caught up", func() {
		inWorld(1, func(w lensWorld) {
			w.create(machine("a"))
			Expect(w.logged()).To(BeEmpty())
			w.server.Lag("machines", sim.Constantly(lag))
			w.create(machine("b"))
			w.create(machine("c"))
			Expect(w.logged()).To(HaveExactElements("The watch is late: decisions wait for it"))
			Expect(w.listed()).To(ConsistOf("a", "b", "c"))
			Expect(w.listed()).To(HaveLen(3))
			Expect(w.logged()).To(HaveExactElements("The watch is late: decisions wait for it", "The watch has caught up"))
		})
	})

	It("is logged with the versions that were written and are shown", func() {
		inWorld(1, func(w lensWorld) {
			before := w.create(machine("a"))
			w.server.Lag("machines", sim.Constantly(lag))
			after := w.create(machine("b"))
			Expect(w.details()).To(Equal(map[string]string{"resource": "machines", "written": after.ResourceVersion, "shown": before.ResourceVersion}))
			Expect(w.listed()).To(HaveLen(2))
			Expect(w.details()).To(Equal(map[string]string{"resource": "machines", "shown": after.ResourceVersion}))
		})
	})

	It("is logged by a list, too, where the write before it did not wait for long", func() {
		inWorld(1, func(w lensWorld) {
			w.server.Lag("machines", sim.Constantly(lag))
			ctx, cancel := context.WithTimeout(w, time.Second)
			defer cancel()
			_, err := w.machines().Create(ctx, machine("a"), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(w.logged()).To(BeEmpty())
			Expect(w.listed()).To(ConsistOf("a"))
			Expect(w.logged()).To(HaveExactElements("The watch is late: decisions wait for it", "The watch has caught up"))
		})
	})

	It("is not logged by a list that waits for less time than a write would", func() {
		inWorld(1, func(w lensWorld) {
			w.server.Lag("machines", sim.Constantly(time.Second))
			ctx, cancel := context.WithTimeout(w, time.Millisecond)
			defer cancel()
			_, err := w.machines().Create(ctx, machine("a"), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(took(func() { Expect(w.listed()).To(ConsistOf("a")) })).To(BeNumerically(">", 0))
			Expect(w.logged()).To(BeEmpty())
		})
	})

	It("shows in the metrics: how long a write waited, and how long a decision after it", func() {
		inWorld(1, func(w lensWorld) {
			w.server.Lag("machines", sim.Constantly(lag))
			w.create(machine("a"))
			Expect(w.waits("evenkeel_lens_write_wait_seconds").GetSampleSum()).To(BeEquivalentTo(2))
			w.listed()
			w.listed()
			Expect(w.waits("evenkeel_lens_decision_wait_seconds").GetSampleSum()).To(BeEquivalentTo(3))
			Expect(w.count("evenkeel_lens_decision_wait_seconds")).To(BeEquivalentTo(1), "of those that did not wait, none is counted")
		})
	})

	DescribeTable("is measured from a millisecond to a minute", func(name string) {
		inWorld(1, func(w lensWorld) {
			var bounds []float64
			for _, bucket := range w.waits(name).GetBucket() {
				bounds = append(bounds, bucket.GetUpperBound())
			}
			Expect(bounds).To(Equal([]float64{.001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60}))
		})
	},
		Entry("before a write returns", "evenkeel_lens_write_wait_seconds"),
		Entry("before a decision", "evenkeel_lens_decision_wait_seconds"),
	)

	It("is not late where the store shows the object that was written, whatever version it claims to have", func() {
		claim := "1"
		inWorld(1, func(w lensWorld) {
			w.server.Lag("machines", sim.Constantly(300*time.Millisecond))
			Expect(took(func() { w.create(machine("a")) })).To(Equal(300 * time.Millisecond))
			Expect(w.count("evenkeel_lens_write_wait_timeouts_total")).To(BeZero())
		}, func(in machineinformers.Interface) machineinformers.Interface {
			return claiming{Interface: in, informer: claimingInformer{in.Machines().Informer(), &claim}}
		})
	})
})

var _ = It("The metrics of each kind are there before anything happens", func() {
	inWorld(1, func(w lensWorld) {
		families, err := w.metrics.Gather()
		Expect(err).NotTo(HaveOccurred())
		series := map[string][]string{}
		for _, family := range families {
			for _, m := range family.Metric {
				series[family.GetName()] = append(series[family.GetName()], m.Label[0].GetValue())
			}
		}
		kinds := []string{"machinedeployments", "machines", "machinesets"}
		Expect(series).To(Equal(map[string][]string{
			"evenkeel_lens_write_wait_seconds": kinds, "evenkeel_lens_write_wait_timeouts_total": kinds,
			"evenkeel_lens_decision_wait_seconds": kinds, "evenkeel_lens_unknown_outcomes_total": kinds,
		}))
	})
})
