// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("The controller", func() {
	It("takes reserve machines that replicas include, once even if an answer is lost, and replicas stay", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:9")
			c.patch("a", `{"spec":{"replicas":3,"excessReplicas":0},"metadata":{"annotations":{%q:"2,max=9,counted=2,replicas=3"}}}`, v1alpha1.AppliedExcessAnnotation)
			c.Start("release", controller(usual))
			c.settle()
			lost := false
			c.AfterWrite(func(w sim.Write) error {
				if w.User != "release" || w.Resource != "machinedeployments" || lost {
					return nil
				}
				lost = true
				return errors.New("the answer is lost")
			})
			for _, left := range []string{"1,max=9,counted=1,replicas=3", "0"} {
				c.create(fresh(1, "p"+left[:1], 4000)...)
				time.Sleep(time.Second)
				Expect(c.waiting()).To(BeZero())
				Expect(c.replicas()).To(Equal("a=3"))
				Expect(c.deployments()[0].Annotations[v1alpha1.AppliedExcessAnnotation]).To(Equal(left))
			}
			c.create(fresh(1, "q", 4000)...)
			c.settle()
			Expect(c.waiting()).To(Equal(1))
			Expect(c.writes(0)).To(HaveLen(2))
		})
	})

	DescribeTable("writes applied replicas together with replicas", func(applied string) {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10", func(d *v1alpha1.MachineDeployment) { d.Annotations[v1alpha1.AppliedReplicasAnnotation] = applied })
			c.Start("release", controller(usual))
			c.create(fresh(1, "p", 1000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
			Expect(c.deployments()[0].Annotations).To(HaveKeyWithValue(v1alpha1.AppliedReplicasAnnotation, "2"))
		})
	},
		Entry("while growth is being split", "1"),
		Entry("also where the applied replicas are out of date", "7"),
	)
})
