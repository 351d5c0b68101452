// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/sim"
)

// nominatedFor returns a pod that is nominated for the machine which serves. It fills that, unless
// changed.
func nominatedFor(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	return Pod(name, 4000, append(change, func(p *corev1.Pod) { p.Status.NominatedNodeName = "a-001" })...)
}

func ofOtherScheduler(p *corev1.Pod) { p.Spec.SchedulerName = "other" }

// others are of another scheduler, and each of them fills the machine.
func others(name string) (all []*corev1.Pod) {
	for i := range 5 {
		all = append(all, nominatedFor(fmt.Sprintf("%s-%d", name, i), ofOtherScheduler))
	}
	return all
}

func ofPriority(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Priority = ptr.To(n) }
}

func neverPreempting(p *corev1.Pod) { p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever) }

func half(p *corev1.Pod) {
	p.Spec.Containers[0].Resources.Requests = Pod("half", 2000).Spec.Containers[0].Resources.Requests
}

// nominations are the names of pods that are nominated for a Node.
func (c *cluster) nominations() string {
	return strings.Join(slices.Sorted(maps.Keys(c.nodesOfNominated())), " ")
}

// nodesOfNominated are the Nodes that pods are nominated for, by the name of the pod.
func (c *cluster) nodesOfNominated() map[string]string {
	nodes := map[string]string{}
	for _, p := range c.pods() {
		if p.Status.NominatedNodeName != "" {
			nodes[p.Name] = p.Status.NominatedNodeName
		}
	}
	return nodes
}

func (c *cluster) patchPod(name, patch string) {
	GinkgoHelper()
	_, err := c.core.CoreV1().Pods(ns).Patch(context.Background(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("Nominations for one Node", func() {
	remove := func(c *cluster, name string) {
		GinkgoHelper()
		Expect(c.core.CoreV1().Pods(ns).Delete(context.Background(), name, metav1.DeleteOptions{})).To(Succeed())
	}
	// crowd has a machine that serves, two in reserve, and no scheduler. Pods run and wait before the
	// controller starts.
	crowd := func(running, waiting []*corev1.Pod, body func(c *cluster)) {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:12")
			Expect(c.scheduler.Stop()).To(Succeed())
			remove(c, "filler-a-001")
			for _, p := range running {
				p.Spec.NodeName = "a-001"
				c.create(p)
			}
			c.create(waiting...)
			body(c)
		})
	}
	// ended crowds until the controller has nothing more to do.
	ended := func(c *cluster) {
		GinkgoHelper()
		c.Start("release", controller(usual))
		c.settle()
	}
	p, q := func() *corev1.Pod { return nominatedFor("p") }, func() *corev1.Pod { return nominatedFor("q") }

	DescribeTable("are withdrawn from pods that others of their priority keep from it",
		func(running, waiting []*corev1.Pod, left, replicas string) {
			crowd(running, waiting, func(c *cluster) {
				ended(c)
				Expect(c.nominations()).To(Equal(left))
				Expect(c.replicas()).To(Equal(replicas))
			})
		},
		Entry("all but the first", nil, []*corev1.Pod{nominatedFor("p"), nominatedFor("q"), nominatedFor("r")}, "p", "a=3"),
		Entry("not if all fit", nil, []*corev1.Pod{nominatedFor("p", half), nominatedFor("q", half)}, "p q", "a=1"),
		Entry("those that do not fit beside the first two", nil, []*corev1.Pod{nominatedFor("p", half), nominatedFor("q", half), nominatedFor("r", half)}, "p q", "a=2"),
		Entry("not one that fits, after some that do not", nil, slices.Concat([]*corev1.Pod{nominatedFor("p", half)}, others("q"), []*corev1.Pod{nominatedFor("r", half)}), "p q-0 q-1 q-2 q-3 q-4 r", "a=1"),
		Entry("all but the most important", nil, []*corev1.Pod{nominatedFor("p"), nominatedFor("q", ofPriority(5))}, "q", "a=2"),
		Entry("one where a pod of its priority runs", []*corev1.Pod{Pod("x", 1000)}, []*corev1.Pod{nominatedFor("p")}, "", "a=2"),
		Entry("not one that preempts what runs there", []*corev1.Pod{Pod("x", 4000)}, []*corev1.Pod{nominatedFor("p", ofPriority(5))}, "p", "a=1"),
		Entry("one that never preempts what runs there", []*corev1.Pod{Pod("x", 4000)}, []*corev1.Pod{nominatedFor("p", ofPriority(5), neverPreempting)}, "", "a=2"),
		Entry("those that repel each other", nil, []*corev1.Pod{nominatedFor("p-1", half, Apart), nominatedFor("p-2", half, Apart)}, "p-1", "a=2"),
		Entry("not those of another scheduler", nil, []*corev1.Pod{nominatedFor("p"), nominatedFor("q", ofOtherScheduler), nominatedFor("r")}, "p q", "a=2"),
		Entry("not those for a Node that they could not use alone", nil, []*corev1.Pod{nominatedFor("p", InZone("elsewhere")), nominatedFor("q", InZone("elsewhere"))}, "p q", "a=1"),
	)

	It("stay where the pod that runs there is being deleted", func() {
		leaves := Pod("x", 4000, func(p *corev1.Pod) { p.Finalizers = []string{"test/keep"} })
		crowd([]*corev1.Pod{leaves}, []*corev1.Pod{p()}, func(c *cluster) {
			remove(c, "x")
			ended(c)
			Expect(c.nominations()).To(Equal("p"))
		})
	})

	It("stay where the pod that ran there has ended", func() {
		crowd([]*corev1.Pod{Pod("x", 4000)}, []*corev1.Pod{p()}, func(c *cluster) {
			c.patchPod("x", `{"status":{"phase":"Succeeded"}}`)
			ended(c)
			Expect(c.nominations()).To(Equal("p"))
		})
	})

	It("let the scheduler place each pod", func() {
		crowd(nil, []*corev1.Pod{p(), q()}, func(c *cluster) {
			c.Start("scheduler", c.actor(schedule))
			ended(c)
			for _, p := range c.pods() {
				Expect(p.Spec.NodeName).NotTo(BeEmpty(), p.Name)
			}
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	It("are withdrawn as soon as the API server accepts that", func() {
		crowd(nil, []*corev1.Pod{p(), q()}, func(c *cluster) {
			fails := true
			c.OnWrite(func(w sim.Write) error {
				if w.Resource == "pods" && w.Subresource == "status" && w.User == "release" && fails {
					return apierrors.NewInternalError(errors.New("for now"))
				}
				return nil
			})
			c.Start("release", controller(usual))
			time.Sleep(10 * time.Second)
			Expect(c.nominations()).To(Equal("p q"))
			c.set(func() { fails = false })
			c.settle()
			Expect(c.nominations()).To(Equal("p"))
		})
	})

	It("are not withdrawn from a pod that has changed since it was read", func() {
		crowd(nil, []*corev1.Pod{p()}, func(c *cluster) {
			c.Start("release", controller(usual))
			c.settle()
			c.Lag("pods", func() time.Duration { return time.Second }, "release")
			c.create(q())
			time.Sleep(900 * time.Millisecond)
			c.patchPod("q", `{"status":{"nominatedNodeName":"a-002"}}`)
			c.settle()
			Expect(c.nominations()).To(Equal("p q"))
		})
	})
})
