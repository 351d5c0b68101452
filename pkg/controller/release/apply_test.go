// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/sim"
)

// tries counts the raises that the controller attempts from now on, whatever their outcome.
func (c *cluster) tries() func() int {
	n := 0
	c.OnWrite(func(w sim.Write) error {
		if w.User == "release" && w.Resource == "machinedeployments" {
			c.set(func() { n++ })
		}
		return nil
	})
	return func() (all int) {
		c.set(func() { all = n })
		return all
	}
}

var _ = Describe("The controller", func() {
	It("decides again if another client raised replicas first", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			registry := prometheus.NewRegistry()
			reporting := usual
			reporting.Registerer = registry
			c.Start("release", controller(reporting))
			c.settle()
			for _, resource := range []string{"machinedeployments", "machines", "nodes"} {
				c.Lag(resource, sim.Constantly(2*time.Second), "release")
			}
			c.patch("a", `{"spec":{"replicas":3}}`)
			time.Sleep(500 * time.Millisecond)
			c.create(fresh(1, "picky", 1000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=3"), "what was decided on one replica was not written over three")
			Expect(raisesByResult(registry)).To(And(HaveKeyWithValue("conflict", BeNumerically(">", 0)), HaveKeyWithValue("error", BeZero())))

			c.create(fresh(3, "q", 4000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=4"))
			Expect(c.waiting()).To(Equal(1))
		})
	})

	It("decides again if another client took the reserve machines that replicas include", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:9")
			c.patch("a", `{"spec":{"replicas":3,"excessReplicas":0},"metadata":{"annotations":{%q:"2,max=9,counted=2,replicas=3"}}}`, v1alpha1.AppliedExcessAnnotation)
			c.Start("release", controller(usual))
			c.settle()
			for _, resource := range []string{"machinedeployments", "machines", "nodes"} {
				c.Lag(resource, sim.Constantly(2*time.Second), "release")
			}
			c.patch("a", `{"metadata":{"annotations":{%q:null}}}`, v1alpha1.AppliedExcessAnnotation)
			time.Sleep(500 * time.Millisecond)
			c.create(fresh(1, "picky", 1000)...)
			c.settle()
			Expect(c.deployments()[0].Annotations).NotTo(HaveKey(v1alpha1.AppliedExcessAnnotation), "what was decided on two was not written over none")
			Expect(c.replicas()).To(Equal("a=3"))
		})
	})

	It("raises once, though its answer is lost and no cache shows it", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 4, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			for _, resource := range []string{"machinedeployments", "machines", "nodes", "pods"} {
				c.Lag(resource, sim.Constantly(time.Second), "release")
			}
			lost, tried := 0, c.tries()
			c.AfterWrite(func(w sim.Write) error {
				if w.User == "release" && w.Resource == "machinedeployments" && lost < 1 {
					lost++
					return apierrors.NewTimeoutError("lost", 1)
				}
				return nil
			})
			c.create(fresh(2, "p", 4000)...)
			c.settle()
			Expect(lost).To(Equal(1))
			Expect(tried()).To(BeNumerically("<=", 2), "it knows what it wrote, and repeats nothing")
			Expect(c.replicas()).To(Equal("a=3"))
			Expect(c.waiting()).To(BeZero())
		})
	})

	It("uses the answer to a write until the caches show it", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 4, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			for _, resource := range []string{"machinedeployments", "machines", "nodes"} {
				c.Lag(resource, sim.Constantly(time.Second), "release")
			}
			tried := c.tries()
			for i := range 3 {
				c.create(fresh(1, fmt.Sprintf("p%d", i), 4000)...)
				time.Sleep(100 * time.Millisecond)
			}
			Expect(c.waiting()).To(BeZero())
			c.settle()
			Expect(c.replicas()).To(Equal("a=4"))
			Expect(tried()).To(Equal(3))
		})
	})

	It("continues after the API server has refused a raise", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			var accepting atomic.Bool
			c.OnWrite(func(w sim.Write) error {
				if !accepting.Load() && w.User == "release" && w.Resource == "machinedeployments" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: w.Resource}, w.Name, errors.New("not allowed"))
				}
				return nil
			})
			c.create(fresh(1, "p", 1000)...)
			time.Sleep(time.Minute)
			Expect(c.replicas()).To(Equal("a=1"))
			accepting.Store(true)
			c.settle()
			Expect(c.waiting()).To(BeZero())
		})
	})

	DescribeTable("reports an error if an admission policy refuses a raise, and does not decide again at once", func(replicas int) {
		play(func(c *cluster) {
			c.grow("a", replicas, 2, "0:10")
			registry := prometheus.NewRegistry()
			reporting := usual
			reporting.Registerer = registry
			c.Start("release", controller(reporting))
			c.settle()
			tried := c.tries()
			c.refuseRaises("a")
			c.create(fresh(1, "p", 1000)...)
			time.Sleep(10 * time.Millisecond)
			Expect(tried()).To(BeNumerically("<=", 2))
			time.Sleep(time.Minute)
			Expect(raisesByResult(registry)).To(And(HaveKeyWithValue("conflict", BeZero()), HaveKeyWithValue("error", BeNumerically(">", 1))))
		})
	},
		Entry("of some machines", 1),
		Entry("of none, which can be stored in two forms", 0),
	)

	It("releases a machine of another MachineDeployment while an admission policy refuses a raise", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.grow("b", 1, 1, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			accept := c.refuseRaises("a")
			c.create(fresh(1, "p", 4000)...)
			time.Sleep(time.Second)
			Expect(c.replicas()).To(Equal("a=1 b=2"))
			c.create(fresh(1, "q", 4000, InZone("a"))...)
			time.Sleep(time.Second)
			accept()
			time.Sleep(30 * time.Second)
			Expect(c.replicas()).To(Equal("a=2 b=2"))
		})
	})

	It("tries again as soon as the MachineDeployment has changed for which an admission policy has refused a raise", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			accept := c.refuseRaises("a")
			c.create(fresh(1, "p", 4000)...)
			time.Sleep(5 * time.Second)
			Expect(c.replicas()).To(Equal("a=1"))
			accept()
			c.patch("a", `{"spec":{"minReadySeconds":1}}`)
			time.Sleep(time.Second)
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	It("does not delay pods while other clients keep writing the MachineDeployment", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			var refused atomic.Int32
			c.OnWrite(func(w sim.Write) error {
				if w.User == "release" && w.Resource == "machinedeployments" && refused.Load() < 3 {
					refused.Add(1)
					return apierrors.NewConflict(schema.GroupResource{Resource: w.Resource}, w.Name, errors.New("its status was written"))
				}
				return nil
			})
			c.create(fresh(1, "p", 1000)...)
			time.Sleep(50 * time.Millisecond)
			Expect(refused.Load()).To(BeEquivalentTo(3))
			Expect(c.waiting()).To(BeZero())
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})
})

// raisesByResult returns the numbers of evenkeel_release_raises_total.
func raisesByResult(registry *prometheus.Registry) map[string]float64 {
	GinkgoHelper()
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	results := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			if family.GetName() == "evenkeel_release_raises_total" {
				results[m.Label[0].GetValue()] = m.Counter.GetValue()
			}
		}
	}
	return results
}

// refuseRaises has an admission policy refuse all raises of a MachineDeployment until accept is called.
func (c *cluster) refuseRaises(name string) (accept func()) {
	var accepting atomic.Bool
	c.OnWrite(func(w sim.Write) error {
		if !accepting.Load() && w.User == "release" && w.Resource == "machinedeployments" && w.Name == name {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "MachineDeployment"}, w.Name, nil)
		}
		return nil
	})
	return func() { accepting.Store(true) }
}

// delay makes raises arrive late.
func (c *cluster) delay(by time.Duration) {
	c.Control.LatencyOf(func(r sim.Request) (before, after time.Duration) {
		if r.User == "release" && r.Verb == "patch" && r.Resource == "machinedeployments" {
			return by, 0
		}
		return time.Millisecond, time.Millisecond
	})
}

var _ = Describe("A raise", func() {
	DescribeTable("is not written over what a restored backup led to, though the generation is the same", func(replicas int) { // law 6
		playApart(func(c *cluster) {
			c.grow("a", replicas, 4, "0:10")
			c.Start("release", controller(usual))
			c.patch("a", `{"spec":{"minReadySeconds":1}}`)
			backup := c.Control.Snapshot()
			c.patch("a", `{"spec":{"minReadySeconds":2}}`)
			generation := c.deployments()[0].Generation
			c.settle()
			c.delay(10 * time.Second)
			c.create(fresh(1, "picky", 1000)...)
			time.Sleep(time.Second)
			c.Control.Restore(backup)
			c.patch("a", `{"spec":{"replicas":%d}}`, replicas+3)
			Expect(c.deployments()[0].Generation).To(Equal(generation))
			written := len(c.Writes())
			time.Sleep(10 * time.Second)
			Expect(c.writes(written)).To(BeEmpty())
			Expect(c.deployments()[0].Spec.Replicas).To(BeEquivalentTo(replicas + 3))
		})
	},
		Entry("of some machines", 2),
		Entry("of none", 0),
	)

	It("is not written over a change of the accounting, though the spec is the same", func() { // law 6
		playApart(func(c *cluster) {
			c.grow("a", 3, 4, "0:10")
			c.Start("release", controller(usual))
			c.settle()
			c.delay(10 * time.Second)
			c.create(fresh(1, "p", 4000)...)
			time.Sleep(5 * time.Second)
			const changed = "4,max=10,counted=2,replicas=3"
			c.patch("a", `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AppliedExcessAnnotation, changed)
			time.Sleep(10 * time.Second)
			Expect(c.replicas()).To(Equal("a=3"))
			Expect(c.deployment("a").Annotations).To(HaveKeyWithValue(v1alpha1.AppliedExcessAnnotation, changed))
		})
	})

	DescribeTable("begins at no replicas", func(body string) {
		play(func(c *cluster) {
			c.grow("a", 0, 2, "0:10")
			_, err := c.ours.MachineV1alpha1().MachineDeployments(ns).Patch(context.Background(), "a", types.JSONPatchType, []byte(body), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.Start("release", controller(usual))
			c.settle()
			c.create(fresh(1, "p", 1000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			Expect(c.waiting()).To(BeZero())
		})
	},
		Entry("that are 0", `[{"op":"add","path":"/spec/replicas","value":0}]`),
		Entry("that a client left out", `[{"op":"add","path":"/spec/replicas","value":0},{"op":"remove","path":"/spec/replicas"}]`),
	)
})

var _ = Describe("A Node of the reserve", func() {
	It("is looked at again when it is no longer cordoned", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:10")
			cordon := func(cordoned bool) {
				_, err := c.core.CoreV1().Nodes().Patch(context.Background(), "a-002", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, cordoned), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			c.settle()
			cordon(true)
			c.Start("release", controller(usual))
			c.create(fresh(1, "picky", 1000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			cordon(false)
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	DescribeTable("is looked at again when it can take a pod that waits",
		func(before, after string, subresources ...string) {
			play(func(c *cluster) {
				c.grow("a", 1, 1, "1:10")
				c.settle()
				change := func(patch string) {
					_, err := c.core.CoreV1().Nodes().Patch(context.Background(), "a-002", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
					Expect(err).NotTo(HaveOccurred())
				}
				change(before)
				c.Start("release", controller(usual))
				c.create(fresh(1, "picky", 4000)...)
				c.settle()
				Expect(c.replicas()).To(Equal("a=1"))
				change(after)
				c.settle()
				Expect(c.replicas()).To(Equal("a=2"))
			})
		},
		Entry("since another taint is gone", `{"spec":{"taints":[{"key":"`+v1alpha1.ReserveTaintKey+`","effect":"NoSchedule"},{"key":"maintenance","effect":"NoSchedule"}]}}`,
			`{"spec":{"taints":[{"key":"`+v1alpha1.ReserveTaintKey+`","effect":"NoSchedule"}]}}`),
		Entry("since it has become larger", `{"status":{"allocatable":{"cpu":"2"}}}`, `{"status":{"allocatable":{"cpu":"4"}}}`, "status"),
		Entry("since it is ready", `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "status"),
	)

	It("is looked at again when it gets the label that a pod waits for", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:10")
			c.Start("release", controller(usual))
			c.create(fresh(1, "picky", 1000, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "fast"} })...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			_, err := c.core.CoreV1().Nodes().Patch(context.Background(), "a-002", types.MergePatchType, []byte(`{"metadata":{"labels":{"disk":"fast"}}}`), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})
})
