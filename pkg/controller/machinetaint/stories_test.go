// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim"
)

// story plays on a pool of three busy machines with two in reserve.
func story(body func(c *cluster)) {
	play(func(c *cluster) {
		c.work(3)
		c.pool(3, excess(2))
		c.settle()
		Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
		serving, _ := c.names()
		Expect(c.busy()).To(Equal(serving))
		body(c)
	})
}

var _ = Describe("A reserve", func() {
	It("is born beside the machines that serve, and then nothing is written", func() {
		story(func(c *cluster) {
			since := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.written(since)).To(BeEmpty())
			for _, m := range c.machines() {
				want := "3"
				if marked(m) {
					want = "5"
				}
				Expect(m.Annotations["machinepriority.machine.sapcloud.io"]).To(Equal(want))
			}
		})
	})

	It("leaves the machine-controller nothing to write to the Nodes that it frees", func() {
		story(func(c *cluster) {
			_, reserve := c.names()
			for _, m := range c.machines() {
				if marked(m) {
					text, err := json.Marshal(m.Spec.NodeTemplateSpec)
					Expect(err).NotTo(HaveOccurred())
					patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, lastApplied, text)
					_, err = c.core.CoreV1().Nodes().Patch(context.Background(), m.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
					Expect(err).NotTo(HaveOccurred())
				}
			}
			time.Sleep(1500 * time.Millisecond) // it looks every second from now on: not between two writes of what follows
			Expect(c.node(reserve[0]).Annotations[lastApplied]).To(ContainSubstring(api.ReserveTaintKey))
			since := len(c.Writes())
			c.scale(5)
			c.settle()
			for _, w := range c.Writes()[since:] {
				if w.Resource == "nodes" && slices.Contains(reserve, w.Name) {
					Expect(w.User).To(Equal(evenkeel))
				}
			}
			Expect(c.node(reserve[0]).Annotations[lastApplied]).NotTo(ContainSubstring(api.ReserveTaintKey))
			Expect(c.node(reserve[0]).Annotations).To(HaveKey(lastApplied), "what else it says stays")
		})
	})

	It("serves at once when replicas grow, and grows again behind that", func() {
		story(func(c *cluster) {
			_, before := c.names()
			c.work(1)
			c.scale(4)
			time.Sleep(100 * time.Millisecond)
			serving, reserve := c.names()
			Expect(serving).To(HaveLen(4))
			Expect(serving).To(ContainElement(Or(Equal(before[0]), Equal(before[1]))))
			Expect(c.machines()).To(HaveLen(6))
			Expect(reserve).To(HaveLen(2), "one of them is not made yet, and born in reserve")
			c.settle()
			Expect(c.numbers()).To(Equal("4+2 status 2/2 True Complete"))
			Expect(c.busy()).To(HaveLen(4))
		})
	})

	It("is created and removed without touching machines that serve", func() {
		play(func(c *cluster) {
			c.work(3)
			c.pool(3)
			c.settle()
			serving, _ := c.names()
			c.want(2)
			c.settle()
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			Expect(c.busy()).To(Equal(serving))
			c.want(0)
			c.settle()
			Expect(c.numbers()).To(Equal("3+0 status 0/0"))
			Expect(c.busy()).To(Equal(serving))
			Expect(c.deployment().Annotations).NotTo(HaveKey(HavePrefix(api.AnnotationPrefix)))
		})
	})

	It("loses no machine that serves when its removal is taken back", func() {
		for _, after := range []time.Duration{0, 3 * time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, 2 * time.Second, 15 * time.Second} {
			story(func(c *cluster) {
				serving := c.busy()
				c.want(0)
				time.Sleep(after)
				c.want(2)
				c.settle()
				Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
				Expect(c.busy()).To(Equal(serving))
			})
		}
	})

	It("lasts through a rolling update, which moves each pod once", func() {
		story(func(c *cluster) {
			moved := c.countMoves()
			c.patch(`{"spec":{"template":{"spec":{"class":{"name":"other"}}}}}`)
			time.Sleep(30 * time.Second)
			c.want(1)
			c.settle()
			Expect(c.numbers()).To(Equal("3+1 status 1/1 True Complete"))
			for _, m := range c.machines() {
				Expect(m.Spec.Class.Name).To(Equal("other"))
			}
			Expect(c.busy()).To(HaveLen(3))
			Expect(*moved).To(BeNumerically("<=", 3))
		})
	})

	It("comes back within a second when a client that does not know the field writes", func() {
		story(func(c *cluster) {
			all := len(c.machines())
			c.typed(func(d *mcmapi.MachineDeployment) { d.Spec.Replicas = 4 })
			time.Sleep(time.Second)
			Expect(c.deployment().Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(2)))
			Expect(len(c.machines())).To(Equal(all + 1))
			c.settle()
			Expect(c.numbers()).To(Equal("4+2 status 2/2 True Complete"))
		})
	})

	DescribeTable("is complete also where one kind is seen after all others", func(late string) {
		play(func(c *cluster) {
			c.Lag(late, sim.Constantly(5*time.Minute), evenkeel)
			c.work(3)
			c.pool(3, excess(2))
			c.settle()
			c.settle()
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			c.scale(4)
			c.settle()
			c.settle()
			Expect(c.numbers()).To(Equal("4+2 status 2/2 True Complete"))
		})
	},
		Entry(nil, "machinedeployments"),
		Entry(nil, "machinesets"),
		Entry(nil, "machines"),
		Entry(nil, "machineclasses"),
		Entry(nil, "nodes"),
		Entry(nil, "pods"),
	)

	It("repairs the mark of a Node, and marks one that registers without it", func() {
		story(func(c *cluster) {
			_, reserve := c.names()
			for _, patch := range []string{
				`{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":null}}}`,
				`{"spec":{"taints":null}}`,
			} {
				_, err := c.core.CoreV1().Nodes().Patch(context.Background(), reserve[0], types.MergePatchType, []byte(patch), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
				time.Sleep(50 * time.Millisecond)
				c.names()
			}
			c.cloud.set(func() { c.cloud.bare = true })
			c.want(4)
			c.settle()
			Expect(c.numbers()).To(Equal("3+4 status 4/4 True Complete"))
		})
	})
})
