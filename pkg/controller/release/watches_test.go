// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan/plantest"
)

var _ = Describe("While pods wait, the controller decides again", func() {
	DescribeTable("when a kind is seen after all others",
		func(late string) {
			play(func(c *cluster) {
				c.Start("release", controller(usual))
				c.settle()
				c.Lag(late, func() time.Duration { return 5 * time.Minute }, "release")
				c.create(Pods(1, "p", 4000)...)
				c.grow("a", 1, 1, "1:3")
				time.Sleep(4 * time.Minute)
				Expect(c.replicas()).To(Equal("a=1"))
				c.settle()
				Expect(c.replicas()).To(Equal("a=2"))
			})
		},
		Entry(nil, "machinedeployments"),
		Entry(nil, "machinesets"),
		Entry(nil, "machines"),
		Entry(nil, "nodes"),
	)

	It("when a DaemonSet is gone", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:3")
			c.create(Pods(1, "p", 4000)...)
			sets := c.core.AppsV1().DaemonSets(ns)
			set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}
			set.Spec.Template.Spec = Pod("agent", 500).Spec
			_, err := sets.Create(context.Background(), set, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.Start("release", controller(usual))
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			Expect(sets.Delete(context.Background(), "agent", metav1.DeleteOptions{})).To(Succeed())
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})
})
