// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("The controller", func() {
	It("decides on no cache that is older than its own writes", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Lag("machinedeployments", sim.Constantly(7*time.Second), "balance")
			tried := 0
			c.OnWrite(func(w sim.Write) error {
				if w.User == "balance" && w.Resource != "events" {
					tried++
				}
				return nil
			})
			c.Start("balance", controller())
			c.settle()
			c.scale("a", 8)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("4/4/4"))
			Expect(tried).To(Equal(c.wrote(0)), "a write that conflicts, or changes nothing, was decided on something old")
		})
	})

	It("loses nothing that is asked for while its cache is behind", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Start("balance", controller())
			c.settle()
			c.Lag("machinedeployments", sim.Constantly(5*time.Second), "balance")
			c.scale("a", 8)
			time.Sleep(13 * time.Second)
			Expect(c.annotations(v1alpha1.MoveAnnotation, "b")).To(ContainSubstring("taken"))
			Expect(c.sizes(abc...)).To(Equal("8/4/4"), "a is to lose 4 in two seconds")
			c.scale("a", 11)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("5/5/5"))
		})
	})

	It("keeps no replicas that another one may take, also where the answer to a write is lost", func() {
		play(func(c *cluster) {
			c.deploy(NewMember("a", 2, ScaleUp))
			c.deploy(NewMember("b", 2, ScaleUp, Annotate(v1alpha1.BoundsAnnotation, "0:2")))
			c.Lag("machinedeployments", sim.Constantly(7*time.Second), "balance")
			losing, lost := false, false
			c.AfterWrite(func(w sim.Write) error {
				if w.User != "balance" || w.Resource != "machinedeployments" || w.Subresource != "" || !losing {
					return nil
				}
				losing, lost = false, true
				return errors.New("the answer is lost")
			})
			c.Start("balance", controller())
			c.settle()
			losing = true
			c.patch("a", `{"spec":{"replicas":3},"metadata":{"annotations":{"`+v1alpha1.AppliedReplicasAnnotation+`":"2","`+v1alpha1.MoveAnnotation+`":"{\"id\":\"2\",\"to\":{\"b\":1}}"}}}`)
			time.Sleep(5 * time.Second)
			c.annotate("b", v1alpha1.BoundsAnnotation, "0:9")
			c.settle()
			Expect(Sum(c.sizes("a", "b"))).To(Equal(5))
			Expect(lost).To(BeTrue())
		})
	})

	It("ends also where it reads late", func() {
		play(func(c *cluster) {
			c.deployAll([]Change{Continuous}, 6, 2, 1)
			c.Lag("machinedeployments", sim.Constantly(7*time.Second), "balance")
			c.Lag("machines", sim.Constantly(3*time.Second), "balance")
			c.Start("balance", controller())
			c.settle()
			c.scale("a", c.size("a")+3)
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("4/4/4"))
		})
	})
})

var _ = It("Nothing is decided while the control cluster does not answer, and all of it when it is back", func() {
	play(func(c *cluster) {
		cut, control := c.probe("control")
		c.deployAll([]Change{ScaleUp}, 2, 2, 2)
		c.Start("balance", adjusted(func(o *Options) { o.Control = control }))
		c.settle()
		cut.Store(true)
		time.Sleep(time.Minute)
		c.scale("a", 8)
		before := len(c.Writes())
		time.Sleep(10 * time.Minute)
		Expect(c.wrote(before)).To(BeZero())
		cut.Store(false)
		time.Sleep(time.Minute)
		Expect(c.sizes(abc...)).To(Equal("4/4/4"))
	})
})

var _ = Describe("While the target cluster does not answer", func() {
	It("the controller notices by itself, and goes on when it is back", func() {
		play(func(c *cluster) {
			cut, target := c.probe("target")
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Start("balance", reaching(target))
			c.settle()
			cut.Store(true)
			time.Sleep(time.Minute)
			Expect(c.condition("a", plan.ConditionBalanced)).To(Equal("False " + plan.ReasonUnreachable))
			c.scale("a", 8)
			time.Sleep(time.Minute)
			Expect(c.sizes(abc...)).To(Equal("8/2/2"))
			cut.Store(false)
			time.Sleep(time.Minute)
			c.scale("b", 5)
			time.Sleep(10 * time.Minute)
			Expect(c.sizes(abc...)).To(Equal("8/4/3"))
			Expect(c.condition("a", plan.ConditionBalanced)).To(Equal("True Even"))
		})
	})

	It("nothing is decided on pods that the watch has yet to show", func() {
		play(func(c *cluster) {
			cut, target := c.probe("target", func() string {
				if last := c.Target.Get(corev1.SchemeGroupVersion.WithResource("pods"), ns, "last"); last != nil {
					return last.GetResourceVersion()
				}
				return ""
			})
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Start("balance", reaching(target))
			c.settle()
			c.Target.Hold("pods", "balance")
			cut.Store(true)
			time.Sleep(time.Minute)
			c.run("last")
			time.Sleep(time.Minute)
			world.Create(c.core.CoreV1().Nodes(), fixture.Node("later"))
			c.budget(1)
			cut.Store(false)
			time.Sleep(10 * time.Second)
			c.scale("a", 8)
			time.Sleep(10 * time.Second)
			Expect(c.sizes(abc...)).To(Equal("8/2/2"))
			c.Target.Release("pods", "balance")
			time.Sleep(2 * time.Minute)
			Expect(c.condition("a", plan.ConditionBalanced)).To(Equal("True Even"))
		})
	})

	It("no zone stands in for one whose Nodes fail, until it is back", func() {
		play(func(c *cluster) {
			cut, target := c.probe("target")
			c.deployAll([]Change{Labelled("p"), Excess("3")}, 2, 2, 2)
			c.Start("balance", reaching(target))
			c.settle()
			cut.Store(true)
			time.Sleep(time.Minute)
			c.nodesFail("b")
			time.Sleep(10 * time.Minute)
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("1/1/1"))
			cut.Store(false)
			time.Sleep(time.Minute)
			Expect(c.annotations(v1alpha1.ShareAnnotation, abc...)).To(Equal("2/1/1"))
			Expect(c.condition("a", plan.ConditionShare)).To(Equal("True FailedOver"))
		})
	})
})

// probe asks a cluster whether it answers, and for its version: not while it is cut off.
func (c *cluster) probe(name string, version ...func() string) (cut *atomic.Bool, probed *reachability.Cluster) {
	cut = &atomic.Bool{}
	probed = reachability.New(name, func(context.Context) (string, error) {
		if cut.Load() {
			return "", errors.New("cut off")
		}
		if len(version) > 0 {
			return version[0](), nil
		}
		return "", nil
	}, reachability.Options{})
	c.Start("probe", func(ctx context.Context, _ *rest.Config) error { return probed.Run(ctx) })
	return cut, probed
}

// nodesFail has no Node of a zone be ready any more.
func (c *cluster) nodesFail(zone string) {
	GinkgoHelper()
	for _, n := range world.List[corev1.Node](c, corev1.SchemeGroupVersion.WithResource("nodes")) {
		if n.Labels[corev1.LabelTopologyZone] != zone {
			continue
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.Now()}}
		_, err := c.core.CoreV1().Nodes().UpdateStatus(context.Background(), n, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}
