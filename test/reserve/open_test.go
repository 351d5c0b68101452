// SPDX-License-Identifier: Apache-2.0

//go:build !race

package reserve_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	mcmapi "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// retireBooting has the reserve contain one machine that was created to serve and still boots. Its Node will register without the
// taint, as one does whose start-up script was made before its Machine was marked.
func (c *cluster) retireBooting() (name string) {
	GinkgoHelper()
	name = c.bootLate()
	c.want(1)
	c.settle()
	_, reserve := c.names()
	Expect(reserve).To(Equal([]string{name}), "another machine serves in its place")
	return name
}

// boundAtRegistration has the Node of a machine register without the taint, and one of so many new pods be bound there before the
// process sees the Node. Then it sees that, does these things, and at last sees the pods.
func (c *cluster) boundAtRegistration(pods int, machine string, things ...func()) {
	GinkgoHelper()
	c.Target.Hold("nodes", evenkeel)
	c.Target.Hold("pods", evenkeel)
	c.cloud.set(func() { c.cloud.late, c.cloud.bare, c.cloud.Settle = nil, true, 0 })
	c.work(pods)
	time.Sleep(bootTime + 5*time.Second)
	Expect(c.busy()).To(ContainElement(machine))
	c.Target.Release("nodes", evenkeel)
	time.Sleep(3 * time.Second)
	for _, do := range things {
		do()
		time.Sleep(3 * time.Second)
	}
	c.Target.Release("pods", evenkeel)
	time.Sleep(5 * time.Minute)
}

// machinesBeside returns the machines that are not among the given ones.
func (c *cluster) machinesBeside(before []*mcmapi.Machine) []*mcmapi.Machine {
	return slices.DeleteFunc(c.machines(), func(m *mcmapi.Machine) bool {
		return slices.ContainsFunc(before, func(other *mcmapi.Machine) bool { return other.Name == m.Name })
	})
}

// deletedMachines returns the machines that are deleted from now on.
func (c *cluster) deletedMachines() *[]string {
	names := &[]string{}
	c.AfterWrite(func(w sim.Write) error {
		if w.Resource == "machines" && w.Verb == "delete" {
			*names = append(*names, w.Name)
		}
		return nil
	})
	return names
}

var _ = Describe("A machine in reserve that pods may still be bound to", func() {
	It("is not deleted for a smaller excess until its Node is seen to be closed, if it was created to serve (6, I3)", func() {
		story(func(c *cluster) {
			machine := c.retireBooting()
			deleted := c.deletedMachines()
			c.want(0)
			time.Sleep(time.Minute)
			Expect(c.reason()).To(HaveSuffix("Shrinking"))
			Expect(*deleted).To(BeEmpty())
			c.boundAtRegistration(2, machine)
			Expect(*deleted).To(BeEmpty(), "more machines serve than replicas, and patience has not ended")
			Expect(c.busy()).To(ContainElement(machine))
		})
	})

	It("is deleted for a smaller excess without delay if it was created in reserve (6)", func() {
		story(func(c *cluster) {
			deleted := c.deletedMachines()
			c.want(3)
			time.Sleep(3 * time.Second)
			c.want(2)
			time.Sleep(3 * time.Second)
			Expect(*deleted).To(HaveLen(1))
		})
	})

	It("is not deleted for a smaller excess if a pod was bound before its Node was closed, and is not seen yet (6, I3)", func() {
		story(func(c *cluster) {
			before := c.machines()
			c.want(3)
			time.Sleep(3 * time.Second)
			machine := c.machinesBeside(before)[0].Name
			deleted := c.deletedMachines()
			c.boundAtRegistration(1, machine, func() { c.want(2) })
			Expect(*deleted).NotTo(ContainElement(machine))
			Expect(c.busy()).To(ContainElement(machine))
			c.settle()
			Expect(*deleted).To(HaveLen(1))
		})
	})

	// refuseTaint has a policy refuse the taint for new Nodes, and returns the one machine that is created for a larger excess.
	refuseTaint := func(c *cluster) (machine string) {
		c.Admit(func(a sim.Admission) error {
			if a.Resource == "nodes" && tainted(world.Decoded[corev1.Node](a.Object.Object).Spec.Taints) {
				return apierrors.NewForbidden(corev1.Resource("nodes"), a.Object.GetName(), errors.New("a policy says so"))
			}
			return nil
		})
		c.AfterWrite(func(w sim.Write) error {
			if w.Resource == "machines" && w.Effect == sim.Added {
				machine = w.Name
			}
			return nil
		})
		c.cloud.set(func() { c.cloud.bare, c.cloud.Settle = true, 0 })
		c.want(3)
		time.Sleep(bootTime + 10*time.Second)
		return machine
	}

	It("is deleted for a smaller excess although its Node cannot be given the taint", func() {
		story(func(c *cluster) {
			machine, deleted, tainted := refuseTaint(c), c.deletedMachines(), false
			c.AfterWrite(func(w sim.Write) error {
				annotations, _, _ := unstructured.NestedStringMap(w.Object, "metadata", "annotations")
				tainted = tainted || w.Name == machine && strings.Contains(annotations[api.ReserveStateAnnotation], "carries")
				return nil
			})
			c.want(0)
			time.Sleep(time.Minute)
			Expect(*deleted).To(And(HaveLen(3), ContainElement(machine)))
			Expect(tainted).To(BeFalse(), "it is not said to have the taint")
		})
	})

	It("is not deleted for a smaller excess if its Node cannot be given the taint, and a pod is not seen yet that runs there", func() {
		story(func(c *cluster) {
			machine, deleted := refuseTaint(c), c.deletedMachines()
			c.safeToEvict("true", c.busy()...) // the cache of pods is newer than the Node
			time.Sleep(time.Second)
			c.Target.Hold("pods", evenkeel)
			c.work(1)
			time.Sleep(3 * time.Second)
			Expect(c.busy()).To(ContainElement(machine))
			c.want(0)
			time.Sleep(time.Minute)
			Expect(*deleted).To(And(HaveLen(2), Not(ContainElement(machine))))
			c.Target.Release("pods", evenkeel)
			time.Sleep(5 * time.Minute)
			Expect(c.busy()).To(ContainElement(machine))
			Expect(*deleted).To(HaveLen(2))
		})
	})

	DescribeTable("is deleted although the pods of its Node are seen too late, if these do not keep it",
		func(prepare func(c *cluster), removed func(c *cluster)) {
			story(func(c *cluster) {
				prepare(c)
				time.Sleep(3 * time.Second)
				c.Target.Hold("pods", evenkeel)
				for _, m := range c.machines() {
					_, err := c.core.CoreV1().Nodes().Patch(context.Background(), m.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"newer":"true"}}}`), metav1.PatchOptions{})
					Expect(err).NotTo(HaveOccurred())
				}
				deleted := c.deletedMachines()
				removed(c)
				Expect(*deleted).To(HaveLen(1))
				c.Target.Release("pods", evenkeel)
			})
		},
		Entry("because they tolerate the taint", func(*cluster) {}, func(c *cluster) {
			_, reserve := c.names()
			for _, machine := range reserve {
				pod := fixture.Pod("agent-"+machine, replicated)
				pod.Spec.NodeName, pod.Spec.Tolerations = machine, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
				_, err := c.core.CoreV1().Pods(ns).Create(context.Background(), pod, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			c.want(1)
			time.Sleep(3 * time.Second)
		}),
		Entry("because it serves, and patience with a surplus has ended", func(c *cluster) { c.overstay() }, func(*cluster) {
			time.Sleep(11 * time.Minute)
		}),
	)
})
