// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("A reserve within replicas", func() {
	It("takes a reduction that names no machine, also of replicas that were raised before, and deletes no machine that serves (I3)", func() {
		inclusiveStory(func(c *cluster) {
			c.work(1)
			c.scale(6)
			c.settle()
			busy := c.busy()
			Expect(busy).To(HaveLen(4))
			c.scale(4)
			time.Sleep(30 * time.Second)
			Expect(c.totals()).To(Equal("4 = 4 + 0 of 0"))
			Expect(c.busy()).To(Equal(busy))
			c.settle()
			Expect(c.busy()).To(Equal(busy))
			Expect(c.totals()).To(Equal("6 = 4 + 2 of 2"))
		})
	})

	It("stays when a machine that serves is named", func() {
		inclusiveStory(func(c *cluster) {
			busy := c.busy()
			c.name(4, busy[1])
			c.settle()
			Expect(c.totals()).To(Equal("4 = 2 + 2 of 2"))
			Expect(c.busy()).NotTo(ContainElement(busy[1]))
		})
	})

	It("takes a reduction that names no machine, drains nothing, and grows again ever later", func() {
		inclusiveStory(func(c *cluster) {
			busy := c.busy()
			for n, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
				c.scale(3)
				time.Sleep(pause - 15*time.Second)
				Expect(c.totals()).To(Equal("3 = 3 + 0 of 0"), "after reduction %d", n)
				Expect(c.numbers()).To(HaveSuffix(" True ReplicasLowered"))
				time.Sleep(75 * time.Second)
				Expect(c.totals()).To(Equal("5 = 3 + 2 of 2"))
				Expect(c.busy()).To(Equal(busy))
			}
		})
	})

	It("grows again at once when replicas are raised, or another excess is desired", func() {
		for want, change := range map[string]func(*cluster){
			"6 = 4 + 2 of 2": func(c *cluster) { c.scale(4) },
			"4 = 3 + 1 of 1": func(c *cluster) { c.want(1) },
		} {
			inclusiveStory(func(c *cluster) {
				c.scale(3)
				time.Sleep(15 * time.Second)
				Expect(c.totals()).To(Equal("3 = 3 + 0 of 0"))
				change(c)
				time.Sleep(35 * time.Second)
				Expect(c.totals()).To(Equal(want))
			})
		}
	})

	It("takes its part of a larger reduction, and no more machines that serve go than the rest", func() {
		inclusiveStory(func(c *cluster) {
			since := len(c.Writes())
			c.scale(2)
			time.Sleep(45 * time.Second)
			Expect(c.totals()).To(Equal("2 = 2 + 0 of 0"))
			Expect(c.numbers()).To(HavePrefix("2+0 "))
			made, deleted := c.born(since)
			Expect([]int{made, deleted}).To(Equal([]int{0, 3}))
		})
	})

	It("becomes smaller by a machine of it that is named", func() {
		inclusiveStory(func(c *cluster) {
			busy := c.busy()
			_, reserve := c.names()
			c.name(4, reserve[0])
			time.Sleep(45 * time.Second)
			Expect(c.totals()).To(Equal("4 = 3 + 1 of 1"))
			c.settle()
			Expect(c.totals()).To(Equal("5 = 3 + 2 of 2"))
			Expect(c.busy()).To(Equal(busy))
		})
	})

	It("does not restore replicas for a machine of it that is named and gone, also once there is no reserve any more", func() {
		inclusiveStory(func(c *cluster) {
			_, reserve := c.names()
			c.name(4, reserve[0])
			c.settle()
			c.want(0)
			c.settle()
			Expect(c.totals()).To(Equal("3 = 3 + 0 of 0"))
			c.patch(`{"spec":{"replicas":2}}`)
			c.settle()
			Expect(c.totals()).To(Equal("2 = 2 + 0 of 0"))
		})
	})

	It("gives way to a max that was lowered, and to a reduction to it", func() {
		for _, clamped := range []bool{false, true} {
			play(func(c *cluster) {
				c.work(3)
				c.pool(3, bounds("1:5:2"), inclusive)
				c.settle()
				busy := c.busy()
				Expect(c.totals()).To(Equal("5 = 3 + 2 of 2"))
				c.patch(`{"metadata":{"annotations":{%q:"1:4:2"}}}`, api.BoundsAnnotation)
				if clamped {
					c.scale(4)
				}
				c.settle()
				Expect(c.totals()).To(Equal("4 = 3 + 1 of 1"))
				Expect(c.busy()).To(Equal(busy))
			})
		}
	})

	It("gives a machine to workload where replicas are raised beyond max with it, and replicas fall to max", func() {
		play(func(c *cluster) {
			c.work(3)
			c.pool(3, bounds("1:5:2"), inclusive)
			c.settle()
			since := len(c.Writes())
			c.work(1)
			c.scale(6)
			c.settle()
			Expect(c.totals()).To(Equal("5 = 4 + 1 of 1"))
			Expect(c.numbers()).To(Equal("4+1 status 1/1 True AtMax"))
			made, deleted := c.born(since)
			Expect([]int{made, deleted}).To(Equal([]int{0, 0}))
		})
	})

	It("does not grow beyond the max to which an extension of Gardener reduces replicas, until more is asked for", func() {
		playWith(sim.Options{Seed: 1, Resources: served, ManagedFields: true}, func(c *cluster) {
			scaleAs := func(manager string, replicas int) {
				_, err := c.user.MachineV1alpha1().MachineDeployments(ns).Patch(context.Background(), "pool", types.MergePatchType,
					fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{FieldManager: manager})
				Expect(err).NotTo(HaveOccurred())
			}
			c.work(3)
			c.pool(3, bounds("1:9:2"), inclusive)
			c.settle()
			Expect(c.totals()).To(Equal("5 = 3 + 2 of 2"))
			busy := c.busy()
			scaleAs("gardener-extension-provider-local", 4)
			for range 6 {
				time.Sleep(4 * time.Hour)
				Expect(c.totals()).To(Equal("4 = 3 + 1 of 1"))
			}
			Expect(c.numbers()).To(HaveSuffix(" True ReplicasLowered"))
			Expect(c.busy()).To(Equal(busy))
			scaleAs("kubectl", 5)
			c.settle()
			Expect(c.totals()).To(Equal("6 = 4 + 2 of 2"))
			scaleAs("kubectl", 5)
			c.settle()
			Expect(c.totals()).To(Equal("6 = 4 + 2 of 2"), "others know no max")
		})
	})

	It("does not take replicas below min: what it does not need serves", func() {
		play(func(c *cluster) {
			c.work(3)
			c.pool(3, bounds("1:9:2"), inclusive)
			c.settle()
			since := len(c.Writes())
			c.patch(`{"metadata":{"annotations":{%q:"5:9:0"}}}`, api.BoundsAnnotation)
			c.settle()
			Expect(c.totals()).To(Equal("5 = 5 + 0 of 0"))
			made, deleted := c.born(since)
			Expect([]int{made, deleted}).To(Equal([]int{0, 0}))
		})
	})

	It("goes at once when the cluster hibernates, and comes back with it", func() {
		inclusiveStory(func(c *cluster) {
			c.scale(0)
			time.Sleep(30 * time.Second)
			Expect(c.machines()).To(BeEmpty())
			time.Sleep(3 * time.Hour)
			Expect(c.machines()).To(BeEmpty())
			c.scale(3)
			c.settle()
			Expect(c.totals()).To(Equal("5 = 3 + 2 of 2"))
		})
	})

	It("stays away while the cluster hibernates, whatever MachineDeployments of other namespaces do", func() {
		inclusiveStory(func(c *cluster) {
			other := &api.MachineDeployment{ObjectMeta: fixture.MachineDeployment("theirs", 0).ObjectMeta}
			other.Namespace, other.Spec.Replicas = "other", 3
			_, err := c.user.MachineV1alpha1().MachineDeployments("other").Create(context.Background(), other, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.scale(0)
			time.Sleep(3 * time.Hour)
			Expect(c.machines()).To(BeEmpty())
		})
	})

	It("stays when a client names a machine of it that boots, and so lowers replicas to 0", func() {
		play(func(c *cluster) {
			c.work(1)
			c.pool(1, inclusive)
			c.settle()
			c.want(2)
			time.Sleep(bootTime / 2)
			_, reserve := c.names()
			Expect(reserve).NotTo(BeEmpty())
			since, applied := len(c.Writes()), []string{}
			c.AfterWrite(func(w sim.Write) error {
				if w.Resource == "machinedeployments" && w.Object != nil {
					text, _, _ := unstructured.NestedString(w.Object, "metadata", "annotations", api.AppliedExcessAnnotation)
					applied = append(applied, text)
				}
				return nil
			})
			c.name(0, reserve[0])
			c.settle()
			Expect(c.totals()).To(Equal("3 = 1 + 2 of 2"))
			Expect(applied).NotTo(ContainElement(""), "the reserve is not given up meanwhile")
			made, deleted := c.born(since)
			Expect([]int{made, deleted}).To(Equal([]int{1, 1}))
		})
	})
})

// nameAll names machines for deletion as an autoscaler does, in one write of the whole object with as many replicas fewer.
func (c *cluster) nameAll(machines ...string) {
	GinkgoHelper()
	now := time.Now().UTC().Format(time.RFC3339)
	c.typed(func(d *mcmapi.MachineDeployment) {
		d.Spec.Replicas -= int32(len(machines))
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, machineutils.TriggerDeletionByMCM, strings.Join(machines, "~"+now+",")+"~"+now)
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, machineutils.LastDeploymentReplicaChangeByScalerTime, now)
	})
}

// countFrozen counts the writes that freeze something.
func countFrozen(n *int) func(sim.Write) error {
	return func(w sim.Write) error {
		metadata, _ := w.Object["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		if labels["freeze"] == "True" {
			*n++
		}
		return nil
	}
}

var _ = Describe("Machines that an autoscaler names", func() {
	for name, accounting := range map[string]func(*api.MachineDeployment){"additive": func(*api.MachineDeployment) {}, "inclusive": inclusive} {
		It("are not replaced before their MachineSet becomes smaller, which could freeze it (V13), "+name, func() {
			play(func(c *cluster) {
				c.work(5)
				c.pool(5, bounds("3:9:2"), accounting)
				c.settle()
				Expect(c.numbers()).To(Equal("5+2 status 2/2 True Complete"))
				frozen, since := 0, len(c.Writes())
				c.AfterWrite(countFrozen(&frozen))
				c.slowly("update", "machinesets", 3*time.Second)
				serving, _ := c.names()
				c.nameAll(serving[:2]...)
				c.settle()
				Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
				made, deleted := c.born(since)
				Expect([]int{made, deleted, frozen}).To(Equal([]int{0, 2, 0}))
			})
		})
	}
})
