// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
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

var _ = Describe("A reserve", func() {
	It("stays within the maximum of bounds, terminating machines included", func() {
		play(func(c *cluster) {
			c.work(3)
			c.pool(3, bounds("1:5:2"))
			most := world.MostMachines(c.World)
			for _, step := range []struct {
				replicas int
				field    int32
				want     string
			}{
				{3, 2, "3+2 status 2/2 True Complete"}, {4, 1, "4+1 status 1/1 True AtMax"}, {5, 0, "5+0 status 0/0 True AtMax"},
				{5, 0, "5+0 status 0/0 True AtMax"},
			} {
				c.scale(step.replicas)
				c.settle()
				Expect(c.numbers()).To(Equal(step.want))
				Expect(c.deployment().Spec.ExcessReplicas).To(HaveValue(Equal(step.field)))
			}
			c.scale(3)
			deleted := c.deletedMachines()
			c.settle()
			Expect(*deleted).To(BeEmpty(), "the machines that are empty enter the reserve")
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			Expect(*most).To(Equal(5))

			c.patch(`{"metadata":{"annotations":{"%s":"1:4:2"}}}`, api.BoundsAnnotation)
			c.settle()
			Expect(c.numbers()).To(Equal("3+1 status 1/1 True AtMax"))
			c.scale(7)
			c.settle()
			Expect(c.numbers()).To(Equal("7+0 status 0/0 False AboveMax"))
		})
	})

	It("goes where a max leaves no room for it that is set with larger replicas", func() {
		play(func(c *cluster) {
			c.work(6)
			c.pool(4, excess(2))
			c.settle()
			c.patch(`{"spec":{"replicas":6},"metadata":{"annotations":{%q:"1:6"}}}`, api.BoundsAnnotation)
			c.settle()
			Expect(c.totals()).To(Equal("6 = 6 + 0 of 0"))
			Expect(c.numbers()).To(Equal("6+0 status 0/0 True AtMax"))
		})
	})

	It("is requested in percent and in resources, and does not change while the request is invalid", func() {
		play(func(c *cluster) {
			c.pool(3, bounds("0:20:10%"))
			c.settle()
			Expect(c.numbers()).To(Equal("3+1 status 1/1 True Complete"))
			c.scale(11)
			c.settle()
			Expect(c.numbers()).To(Equal("11+2 status 2/2 True Complete"))
			c.patch(`{"metadata":{"annotations":{"%s":"0:20:cpu=10,memory=1Gi"}}}`, api.BoundsAnnotation)
			c.settle()
			Expect(c.numbers()).To(Equal("11+3 status 3/3 True Complete"))
			c.patch(`{"metadata":{"annotations":{"%s":"many"}}}`, api.BoundsAnnotation)
			c.settle()
			Expect(c.numbers()).To(Equal("11+3 status 3/3 False BoundsInvalid"))
			c.patch(`{"metadata":{"annotations":{"%s":"0:20:vendor.example/gpu=1"}}}`, api.BoundsAnnotation)
			c.settle()
			Expect(c.numbers()).To(Equal("11+3 status 3/3 False CapacityUnknown"))
			c.patch(`{"metadata":{"annotations":{"%s":"0:20:max(1,10%%)","%s":"yes"}}}`, api.BoundsAnnotation, api.DrainReserveAnnotation)
			c.settle()
			Expect(c.numbers()).To(Equal("11+3 status 3/3 False AnnotationInvalid"))
			c.patch(`{"metadata":{"annotations":{"%s":"false"}}}`, api.DrainReserveAnnotation)
			c.settle()
			Expect(c.numbers()).To(Equal("11+2 status 2/2 True Complete"))
			c.patch(`{"metadata":{"annotations":{"%s":"0:20:1"}}}`, api.BoundsAnnotation)
			c.settle()
			Expect(c.numbers()).To(Equal("11+1 status 1/1 True Complete"))
		})
	})

	It("is requested in resources as soon as its MachineClass shows the capacity of machines", func() {
		play(func(c *cluster) {
			c.pool(0, bounds("0:20:cpu=8"))
			c.settle()
			Expect(c.numbers()).To(Equal("0+0 status 0/0 False CapacityUnknown"))
			_, err := c.user.MachineV1alpha1().MachineClasses(ns).Create(context.Background(), fixture.MachineClass(fixture.Class, func(class *mcmapi.MachineClass) {
				class.NodeTemplate = &mcmapi.NodeTemplate{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}}
			}), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.settle()
			Expect(c.numbers()).To(Equal("0+2 status 2/2 True Complete"))
		})
	})
})

// terminating are the machines that are being deleted.
func (c *cluster) terminating() (names []string) {
	for _, m := range c.machines() {
		if m.DeletionTimestamp != nil {
			names = append(names, m.Name)
		}
	}
	return names
}

var _ = Describe("A reserve", func() {
	It("shrinks without evictions though its field is removed at any moment meanwhile", func() {
		for _, after := range []time.Duration{0, 4 * time.Millisecond, 8 * time.Millisecond, 16 * time.Millisecond, 40 * time.Millisecond, 5 * time.Second} {
			story(func(c *cluster) {
				serving := c.busy()
				c.want(1)
				time.Sleep(after)
				c.typed(func(*mcmapi.MachineDeployment) {})
				c.settle()
				Expect(c.deployment().Spec.ExcessReplicas).To(HaveValue(Or(BeEquivalentTo(1), BeEquivalentTo(2))), "what it said last, as far as was seen")
				Expect(c.numbers()).To(HavePrefix("3+"))
				Expect(c.busy()).To(Equal(serving))
			})
		}
	})

	It("lowers replicas at once, although an outdated annotation allows more", func() {
		story(func(c *cluster) {
			c.patch(`{"metadata":{"annotations":{%q:"3"}}}`, api.AppliedReplicasAnnotation)
			c.settle()
			c.scale(2)
			c.settle()
			Expect(c.numbers()).To(Equal("2+2 status 2/2 True Complete"))
			Expect(c.deployment().Status.Replicas).To(BeEquivalentTo(4))
		})
	})

	It("is not what goes when replicas shrink, unless it was named", func() {
		story(func(c *cluster) {
			serving, reserve := c.names()
			c.scale(2)
			c.settle()
			Expect(c.numbers()).To(Equal("2+2 status 2/2 True Complete"))
			_, left := c.names()
			Expect(left).To(Equal(reserve))

			left, _ = c.names()
			c.name(1, left[1])
			c.settle()
			Expect(c.numbers()).To(Equal("1+2 status 2/2 True Complete"))
			now, _ := c.names()
			Expect(now).To(Equal(left[:1]))
			Expect(serving).To(ContainElement(left[0]))
		})
	})

	It("has replicas restored for machines that are named while they go", func() {
		for _, gone := range []bool{false, true} {
			for _, accounting := range []api.Accounting{api.AccountingAdditive, api.AccountingInclusive} {
				story(func(c *cluster) {
					busy := c.busy()
					c.account(accounting)
					c.settle()
					if gone {
						c.Lag("machines", func() time.Duration { return time.Second }, evenkeel)
					}
					c.want(0)
					var going []string
					for range 1000 {
						time.Sleep(10 * time.Millisecond)
						if going = c.terminating(); len(going) == 2 {
							break
						}
					}
					Expect(going).To(HaveLen(2))
					if gone {
						c.Hold("machines", evenkeel)
					}
					c.Hold("machinedeployments", evenkeel)
					for _, name := range going {
						c.name(int(c.deployment().Spec.Replicas)-1, name)
					}
					if gone {
						time.Sleep(2 * drainTime)
						Expect(c.machines()).To(HaveLen(3))
					}
					c.Release("machinedeployments", evenkeel)
					time.Sleep(10 * time.Millisecond) // machine-controller-manager waits for 100 ms before it acts
					c.Release("machines", evenkeel)
					c.settle()
					Expect(c.totals()).To(Equal("3 = 3 + 0 of 0"))
					Expect(c.busy()).To(Equal(busy))
					c.scale(2)
					c.settle()
					Expect(c.totals()).To(Equal("2 = 2 + 0 of 0"), "what was restored once is not restored again")
				})
			}
		}
	})

	It("gives replicas back for a machine of its own that was named, once", func() {
		story(func(c *cluster) {
			_, reserve := c.names()
			c.name(2, reserve[0])
			c.settle()
			Expect(c.deployment().Spec.Replicas).To(BeEquivalentTo(3))
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
			_, now := c.names()
			Expect(now).NotTo(ContainElement(reserve[0]))
		})
	})
})
