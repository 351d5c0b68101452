// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// slowly makes the API server take that long before requests of a verb for a resource have an effect.
func (c *cluster) slowly(verb, resource string, delay time.Duration) {
	c.delays(map[string]time.Duration{verb + " " + resource: delay})
}

// delays has the API server take so long, by verb and resource, before requests of the process have an effect.
func (c *cluster) delays(delays map[string]time.Duration) {
	c.LatencyOf(func(r sim.Request) (before, after time.Duration) {
		if delay, slow := delays[r.Verb+" "+r.Resource]; slow && r.User == evenkeel && r.Subresource == "" {
			return delay, time.Millisecond
		}
		return time.Millisecond, time.Millisecond
	})
}

// annotate Machines; nil removes the annotation.
func (c *cluster) annotate(machines []string, key string, value any) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	Expect(err).NotTo(HaveOccurred())
	for _, name := range machines {
		_, err := c.stock.MachineV1alpha1().Machines(ns).Patch(context.Background(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

// bootLate leaves a pool without a reserve, and raises its replicas by one for a machine that goes on booting.
func (c *cluster) bootLate() (name string) {
	GinkgoHelper()
	c.want(0)
	c.settle()
	before, _ := c.names()
	c.scale(4)
	time.Sleep(3 * time.Second)
	serving, _ := c.names()
	booting := slices.DeleteFunc(serving, func(name string) bool { return slices.Contains(before, name) })
	Expect(booting).To(HaveLen(1))
	c.cloud.set(func() { c.cloud.late = map[string]bool{booting[0]: true} })
	return booting[0]
}

var _ = Describe("A machine that boots for workload", func() {
	It("enters the reserve only after the machine that serves in its place has left it (I2)", func() {
		story(func(c *cluster) {
			booting := c.bootLate()
			serving, _ := c.names()
			var refused atomic.Int32
			c.Admit(func(a sim.Admission) error {
				if a.Resource == "machines" && !slices.Contains(serving, a.Object.GetName()) && a.Object.GetAnnotations()[api.ReserveAnnotation] == "" && refused.Add(1) < 5 {
					return apierrors.NewServiceUnavailable("an admission webhook is down")
				}
				return nil
			})
			marked, most := map[string]bool{}, 0
			c.AfterWrite(func(w sim.Write) error {
				if w.Resource == "machines" {
					annotations, _, _ := unstructured.NestedStringMap(w.Object, "metadata", "annotations")
					delete(marked, w.Name)
					if annotations[api.ReserveAnnotation] != "" {
						marked[w.Name] = true
					}
					most = max(most, len(marked))
				}
				return nil
			})
			c.want(1)
			c.settle()
			Expect(refused.Load()).To(BeNumerically(">=", 5))
			_, reserve := c.names()
			Expect(reserve).To(Equal([]string{booting}))
			Expect(most).To(Equal(1), "machines in reserve at once")
		})
	})
})

var _ = Describe("A machine that pods run on", func() {
	DescribeTable("is not deleted by a request that was made while it was in reserve (I3)", func(ctx SpecContext, excess int, end string) {
		story(func(c *cluster) {
			c.slowly("delete", "machines", 8*time.Second)
			c.want(excess)
			time.Sleep(time.Second)
			c.work(2)
			c.scale(5)
			time.Sleep(3 * time.Second)
			busy := c.busy()
			Expect(busy).To(HaveLen(5))
			c.settle()
			Expect(c.busy()).To(Equal(busy))
			Expect(c.deleted()).To(BeEmpty())
			Expect(c.numbers()).To(Equal(end))
		})
	},
		Entry("when one was to go", 1, "5+1 status 1/1 True Complete"),
		Entry("when all were to go", 0, "5+0 status 0/0"),
	)

	It("is not created to be deleted when the excess falls while replicas grow (I3)", func() {
		story(func(c *cluster) {
			var served []string
			c.AfterWrite(func(w sim.Write) error {
				if w.Resource == "machines" && w.Verb == "delete" && !marked(world.Decoded[mcmapi.Machine](w.Object)) {
					served = append(served, w.Name)
				}
				return nil
			})
			c.slowly("update", "machinesets", time.Second)
			c.work(2)
			c.patch(`{"spec":{"replicas":5,"excessReplicas":0}}`)
			c.settle()
			Expect(served).To(BeEmpty())
			Expect(c.numbers()).To(Equal("5+0 status 0/0"))
		})
	})

	It("is not deleted when replicas grow and fall again before a new reserve machine has its priority (I3)", func() {
		story(func(c *cluster) {
			busy, refusing := c.busy(), true
			c.Admit(func(a sim.Admission) error {
				if refusing && a.Verb == "patch" && a.Resource == "machines" {
					return apierrors.NewServiceUnavailable("an admission webhook is down")
				}
				return nil
			})
			c.scale(4)
			time.Sleep(5 * time.Minute)
			Expect(c.machines()).To(HaveLen(6))
			c.scale(3)
			time.Sleep(time.Minute)
			Expect(c.busy()).To(Equal(busy))
			refusing = false
			c.settle()
			Expect(c.busy()).To(Equal(busy))
			Expect(c.numbers()).To(Equal("3+2 status 2/2 True Complete"))
		})
	})

	It("does not enter the reserve because its pod is not shown yet (I2)", func() {
		story(func(c *cluster) {
			serving, reserve := c.names()
			c.cloud.set(func() { c.cloud.sick = map[string]bool{serving[0]: true} })
			time.Sleep(3 * time.Second)
			c.Hold("pods", evenkeel)
			c.work(1)
			time.Sleep(3 * time.Second)
			c.cloud.set(func() { c.cloud.sick = nil })
			time.Sleep(time.Minute)
			Expect(c.busy()).To(HaveLen(4))
			Expect(reserve).To(ContainElement(BeElementOf(c.busy())), "one of them stood in")
			_, held := c.split()
			Expect(held).NotTo(ContainElement(BeElementOf(c.busy())))
			c.Release("pods", evenkeel)
			time.Sleep(time.Minute)
			Expect(c.numbers()).To(ContainSubstring("SurplusServing"))
		})
	})

	It("is not deleted by a request that was under way when it left the reserve (I3)", func() {
		story(func(c *cluster) {
			moved := c.countMoves()
			c.delays(map[string]time.Duration{"delete machines": 8 * time.Second, "patch machines": 3 * time.Second})
			c.want(0)
			time.Sleep(9500 * time.Millisecond)
			c.work(2)
			c.scale(5)
			c.settle()
			Expect(*moved).To(BeZero())
			Expect(c.numbers()).To(Equal("5+0 status 0/0"))
		})
	})
})
