// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	. "github.com/evenkeel/evenkeel/pkg/controller/balancer"
	builders "github.com/evenkeel/evenkeel/test/builders/balancer"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// node makes a Node, or changes whether it is ready. Its pods stay as they are, as after a kubelet has restored them.
func (c *cluster) node(name string, ready corev1.ConditionStatus) {
	GinkgoHelper()
	ctx, nodes := context.Background(), c.user.CoreV1().Nodes()
	n, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		n, err = nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.Now()},
	}
	_, err = nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// onNodes is a Balancer of ten replicas over a and b, whose pods run on the Nodes of these names.
func (c *cluster) onNodes() {
	GinkgoHelper()
	for _, name := range []string{"a", "b"} {
		c.node(name, corev1.ConditionTrue)
		c.deploy(name, 5, func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeName = name })
	}
	c.balance("shop", 10, builders.Even(), "a", "b")
	time.Sleep(time.Minute)
}

// allowed is the controller with the rights that a function leaves it.
func allowed(limit func(http.RoundTripper) http.RoundTripper) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		config = rest.CopyConfig(config)
		config.Wrap(limit)
		return controller(Options{})(ctx, config)
	}
}

var _ = Describe("Pods on Nodes that are not ready", func() {
	DescribeTable("do not run, from the moment that the Node shows it, and run again once it has been ready for a while", func(status corev1.ConditionStatus) {
		play(func(c *cluster) {
			c.onNodes()
			c.Start("balancer", controller(Options{}))
			time.Sleep(time.Minute)
			c.node("a", status)
			time.Sleep(59 * time.Second)
			Expect(c.sizes("a", "b")).To(Equal("5/5"))
			time.Sleep(3 * time.Second)
			Expect(c.sizes("a", "b")).To(Equal("5/10"))
			time.Sleep(time.Minute)
			c.node("a", corev1.ConditionTrue)
			time.Sleep(29 * time.Second)
			Expect(c.sizes("a", "b")).To(Equal("5/10"))
			time.Sleep(3 * time.Second)
			Expect(c.sizes("a", "b")).To(Equal("5/5"))
		})
	},
		Entry("because their kubelet is silent", corev1.ConditionUnknown),
		Entry("because their kubelet says so", corev1.ConditionFalse),
	)

	It("do not run again because their Node is deleted before they are", func() {
		play(func(c *cluster) {
			c.onNodes()
			c.Start("balancer", controller(Options{}))
			time.Sleep(time.Minute)
			Expect(c.user.CoreV1().Nodes().Delete(context.Background(), "a", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(63 * time.Second)
			Expect(c.sizes("a", "b")).To(Equal("5/10"))
			c.node("a", corev1.ConditionUnknown)
			time.Sleep(2 * time.Minute)
			before := len(c.Writes())
			Expect(c.user.CoreV1().Nodes().Delete(context.Background(), "a", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(10 * time.Minute)
			Expect(c.writes(before)).NotTo(ContainElement(HavePrefix("scale")))
			Expect(c.sizes("a", "b")).To(Equal("5/10"))
		})
	})

	It("move nothing if their Node comes and goes before the timeout, and nothing is written for other changes of a Node", func() {
		play(func(c *cluster) {
			c.onNodes()
			c.Start("balancer", controller(Options{}))
			time.Sleep(time.Minute)
			before := len(c.Writes())
			for range 10 {
				c.node("a", corev1.ConditionUnknown)
				time.Sleep(50 * time.Second)
				c.node("a", corev1.ConditionTrue)
				time.Sleep(10 * time.Second)
			}
			Expect(c.writes(before)).NotTo(ContainElement(HavePrefix("scale")))
		})
	})

	It("are not taken for running by a process that starts before it knows their Nodes", func() {
		play(func(c *cluster) {
			c.onNodes()
			first := c.Start("balancer", controller(Options{}))
			c.node("a", corev1.ConditionUnknown)
			time.Sleep(2 * time.Minute)
			Expect(c.sizes("a", "b")).To(Equal("5/10"))
			first.Crash()
			before, since := len(c.Writes()), time.Now()
			c.Start("balancer", allowed(refusing(func(path string) bool {
				return strings.HasSuffix(path, "/nodes") && time.Since(since) < 2*time.Second // retries come after at most 1.6 s and 4.8 s, and the next one may come too late
			}, http.StatusForbidden, metav1.StatusReasonForbidden)))
			time.Sleep(2 * time.Minute)
			Expect(c.writes(before)).To(BeEmpty())
		})
	})

	It("count as running until they are evicted, if the controller may not read Nodes", func() {
		play(func(c *cluster) {
			c.onNodes()
			c.Start("balancer", allowed(forbidden("/nodes")))
			time.Sleep(time.Minute)
			Expect(c.condition("shop", "Ready")).To(Equal("True UnderControl"))
			c.node("a", corev1.ConditionUnknown)
			time.Sleep(10 * time.Minute)
			Expect(c.sizes("a", "b")).To(Equal("5/5"))
			c.scale("shop", 20)
			time.Sleep(time.Minute)
			Expect(c.sizes("a", "b")).To(Equal("10/10"))
		})
	})
})
