// SPDX-License-Identifier: Apache-2.0

//go:build !race

package machinetaint_test

import (
	"context"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

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
			time.Sleep(8 * time.Second)
			live := 0
			for _, m := range c.machines() {
				if m.DeletionTimestamp == nil {
					live++
				}
			}
			Expect(live).To(Equal(3), "first it shrinks, then it fills up")
			c.settle()
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
