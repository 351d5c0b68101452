// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/release"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	. "github.com/evenkeel/evenkeel/test/builders/release"
)

var usual = Options{Settings: UsualSettings}

// patient are options for storms, which hold watches without a sign: a pod that waits beside room
// that was taken meanwhile would count as doubtful.
var patient = Options{Settings: func() plan.Settings {
	s := UsualSettings
	s.Patience = 10 * time.Minute
	return s
}()}

// slow is the clock of a machine on which a decision takes long.
type slow struct{ clock.RealClock }

func (s slow) Since(t time.Time) time.Duration {
	time.Sleep(100 * time.Millisecond)
	return s.RealClock.Since(t)
}

// decisions returns how many decisions there have been, and how many seconds they took.
func decisions(registry *prometheus.Registry) (count, sum float64) {
	GinkgoHelper()
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, f := range families {
		if h := f.GetMetric()[0].GetHistogram(); h != nil {
			return float64(h.GetSampleCount()), h.GetSampleSum()
		}
	}
	return 0, 0
}

var _ = Describe("The controller", func() {
	It("gets a pod bound within milliseconds, with one write, and then is at rest", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			told, options := []string{}, usual
			options.Raised = func(_ context.Context, d *v1alpha1.MachineDeployment) {
				told = append(told, fmt.Sprintf("%s=%d", d.Name, d.Spec.Replicas))
			}
			c.Start("release", controller(options))
			c.settle()
			Expect(c.writes(0)).To(BeEmpty())
			c.create(fresh(1, "p", 1000)...)
			time.Sleep(50 * time.Millisecond)
			Expect(c.waiting()).To(BeZero())
			Expect(c.replicas()).To(Equal("a=2"))
			c.settle()
			Expect(c.writes(0)).To(Equal([]string{"patch machinedeployments a"}))
			Expect(told).To(Equal([]string{"a=2"}))
			Expect(c.events()).To(Equal([]string{"ReserveNeeded: Raised replicas from 1 to 2 for pod default/p-0, to release machine a-002"}))
			before := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.Writes()[before:]).To(BeEmpty())
		})
	})

	It("releases what a burst needs, and no more", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 12, "1:20")
			c.Start("release", controller(usual))
			c.settle()
			c.create(fresh(41, "p", 1000)...)
			time.Sleep(500 * time.Millisecond)
			Expect(c.waiting()).To(BeZero())
			Expect(c.replicas()).To(Equal("a=12"))
			c.settle()
			Expect(c.replicas()).To(Equal("a=12"))
			Expect(len(c.writes(0))).To(BeNumerically("<", 11), "one raise serves several pods")
		})
	})

	It("serves pods that were already waiting when it started", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			c.create(fresh(5, "p", 1000)...)
			c.settle()
			Expect(c.waiting()).To(Equal(5))
			c.Start("release", controller(usual))
			time.Sleep(time.Second)
			Expect(c.waiting()).To(BeZero())
			Expect(c.replicas()).To(Equal("a=3"))
		})
	})

	It("releases a machine as soon as one in reserve is ready", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.create(fresh(2, "p", 4000)...)
			time.Sleep(time.Second)
			Expect(c.replicas()).To(Equal("a=2"))
			Expect(c.waiting()).To(Equal(1))
			c.settle()
			Expect(c.replicas()).To(Equal("a=3"))
			Expect(c.waiting()).To(BeZero())
		})
	})

	It("leaves half of the time to others if decisions take long, however many pods change meanwhile", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 0, "1:10")
			registry, options := prometheus.NewPedanticRegistry(), usual
			options.Clock, options.Registerer = slow{clock.RealClock{}}, registry
			c.Start("release", controller(options))
			c.create(fresh(1, "p", 1000)...)
			c.settle()
			begun, count, sum := time.Now(), 0.0, 0.0
			count, sum = decisions(registry)
			for i := range 100 {
				c.create(fresh(1, fmt.Sprintf("q%d", i), 1000)...)
				time.Sleep(70 * time.Millisecond)
			}
			number, took := decisions(registry)
			Expect(number - count).To(BeNumerically(">", 10))
			Expect(took-sum).To(BeNumerically("<=", time.Since(begun).Seconds()/2+0.2), "of %v", time.Since(begun))
		})
	})

	It("raises replicas up to max, and leaves the other pods to the autoscaler", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:3")
			c.Start("release", controller(usual))
			c.settle()
			c.create(fresh(5, "p", 4000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=3"))
			Expect(c.waiting()).To(Equal(3))
			c.patch("a", `{"metadata":{"annotations":{%q:"1:4"}}}`, v1alpha1.BoundsAnnotation)
			c.settle()
			Expect(c.replicas()).To(Equal("a=4"))
		})
	})

	It("does not touch a MachineDeployment without bounds, or with bounds that cannot be parsed", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "")
			c.grow("b", 1, 2, "many")
			c.Start("release", controller(usual))
			c.create(fresh(1, "p", 1000)...)
			c.settle()
			Expect(c.writes(0)).To(BeEmpty())
		})
	})

	It("does not raise a MachineDeployment that is being deleted", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			c.patch("a", `{"metadata":{"finalizers":["example.com/slow"]}}`)
			Expect(c.ours.MachineV1alpha1().MachineDeployments(ns).Delete(context.Background(), "a", metav1.DeleteOptions{})).To(Succeed())
			c.Start("release", controller(usual))
			c.create(fresh(1, "p", 4000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
		})
	})

	It("is not disturbed by a pool that is deleted", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.Hold("machinedeployments", "release")
			Expect(c.ours.MachineV1alpha1().MachineDeployments(ns).Delete(context.Background(), "a", metav1.DeleteOptions{})).To(Succeed())
			c.create(fresh(1, "p", 1000)...)
			c.settle()
			c.Release("machinedeployments", "release")
			c.settle()
			Expect(c.waiting()).To(Equal(1))
		})
	})

	It("reports what it did, in a message whose length does not grow with the number of pods", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 4, "1:10")
			c.create(fresh(12, "p", 1000)...)
			c.settle()
			c.Start("release", controller(usual))
			c.settle()
			Expect(strings.Join(c.events(), "")).To(Equal("ReserveNeeded: Raised replicas from 1 to 4 for " +
				"12 pods (default/p-0, default/p-1, default/p-10, ...), to release machines a-002, a-003, a-004"))
		})
	})
})

var _ = It("counts no pod in the metric when none waits any more", func() {
	play(func(c *cluster) {
		c.grow("a", 1, 0, "1:10")
		registry := prometheus.NewRegistry()
		reporting := usual
		reporting.Registerer = registry
		c.Start("release", controller(reporting))
		c.settle()
		waiting := func() (pods float64) {
			families, err := registry.Gather()
			Expect(err).NotTo(HaveOccurred())
			for _, f := range families {
				for _, m := range f.Metric {
					pods += m.GetGauge().GetValue()
				}
			}
			return pods
		}
		c.create(fresh(1, "p", 4000)...)
		c.settle()
		Expect(waiting()).To(Equal(1.0))
		c.delete("p-0")
		c.settle()
		Expect(waiting()).To(BeZero())
	})
})

var _ = It("counts pods by outcome in the metric, with those that were not looked at", func() {
	Expect(PodsByOutcome(plan.Plan{Pods: map[string]plan.Outcome{"a": plan.Released, "b": plan.Released, "c": plan.BeyondBounds}, Beyond: 7})).To(
		Equal(map[plan.Outcome]float64{plan.Released: 2, plan.BeyondBounds: 8}))
})
