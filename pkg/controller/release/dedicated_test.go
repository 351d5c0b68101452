// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var _ = Describe("The controller with dedicated machines", func() {
	const forWeb = "default/Deployment/web=4"
	web := RunBy(ns, "Deployment", "web")
	grownFor := func(c *cluster, owner string, change ...func(*v1alpha1.MachineDeployment)) {
		c.grow("a", 1, 6, "1:12", append(change, func(d *v1alpha1.MachineDeployment) {
			d.Annotations[v1alpha1.DedicatedAnnotation] = owner
		})...)
	}
	grown := func(c *cluster, change ...func(*v1alpha1.MachineDeployment)) { grownFor(c, forWeb, change...) }
	// released is a cluster of such a pool whose release controller has started.
	released := func(body func(c *cluster)) {
		play(func(c *cluster) {
			grown(c)
			c.Start("release", controller(usual))
			c.settle()
			body(c)
		})
	}
	// placed is how many of whose pods have a node.
	placed := func(c *cluster, prefix string) (n int) {
		for _, p := range c.pods() {
			if strings.HasPrefix(p.Name, prefix) && p.Spec.NodeName != "" {
				n++
			}
		}
		return n
	}

	It("gives strangers none of them, however many wait, and its owner all at once, though strangers have waited longer", func() { // law 9
		released(func(c *cluster) {
			c.create(fresh(20, "stranger", 4000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=8"), "12 without the 4 that are dedicated")
			Expect(placed(c, "stranger")).To(Equal(7))

			c.create(fresh(4, "web", 4000, web)...)
			time.Sleep(2 * time.Second)
			Expect(placed(c, "web")).To(Equal(4))
			c.settle()
			Expect(c.replicas()).To(Equal("a=12"))
			Expect(placed(c, "stranger")).To(Equal(7))
		})
	})

	It("counts a nomination only while its node can take the pod", func() { // law 9
		released(func(c *cluster) {
			for _, node := range []string{"gone", c.machines()[6].Name} {
				c.create(Pod("web-"+node, 4000, web, func(p *corev1.Pod) { p.Status.NominatedNodeName = node }))
			}
			c.settle()
			Expect(placed(c, "web")).To(Equal(2))
			Expect(c.replicas()).To(Equal("a=3"))
		})
	})

	It("nominates a pod again if its scheduler removes the nomination before the machine opens", func() { // law 9
		released(func(c *cluster) {
			c.create(fresh(20, "stranger", 4000)...)
			c.settle()
			Expect(placed(c, "stranger")).To(Equal(7))
			Expect(c.taintController.Stop()).To(Succeed())
			c.create(fresh(2, "web", 4000, web)...)
			c.settle()
			before := c.nodesOfNominated()
			Expect(before).To(And(HaveKey("web-0"), HaveKey("web-1")))

			By("removing it, as kube-scheduler does if it tries a pod while no Node takes it")
			var nominated atomic.Int32
			c.OnWrite(func(w sim.Write) error {
				if w.Resource == "pods" && w.User == "release" {
					nominated.Add(1)
				}
				return nil
			})
			c.patchPod("web-1", `{"status":{"nominatedNodeName":null}}`)
			c.settle()
			Expect(c.nodesOfNominated()).To(Equal(before))
			Expect(nominated.Load()).To(BeEquivalentTo(1), "that of the other pod stays")
			Expect(c.replicas()).To(Equal("a=10"))

			By("opening the machines")
			c.taintController = c.Start("machinetaint", c.actor(c.keep))
			c.settle()
			Expect(placed(c, "web")).To(Equal(2))
			Expect(placed(c, "stranger")).To(Equal(7))
			Expect(c.replicas()).To(Equal("a=10"))
		})
	})

	It("raises nothing for a pod that could not be nominated, until it can", func() { // law 9
		released(func(c *cluster) {
			var succeeds atomic.Bool
			c.OnWrite(func(w sim.Write) error {
				if w.Resource == "pods" && w.Subresource == "status" && w.User == "release" && !succeeds.Load() {
					return apierrors.NewInternalError(errors.New("for now"))
				}
				return nil
			})
			c.create(fresh(1, "web", 4000, web)...)
			time.Sleep(10 * time.Second)
			Expect(c.replicas()).To(Equal("a=1"))
			c.set(func() { succeeds.Store(true) })
			c.settle()
			Expect(placed(c, "web")).To(Equal(1))
		})
	})

	// refuse has the API server refuse nominations while it is to, and returns how many it has refused.
	refuse := func(c *cluster, refuses func(refused int) bool) *int {
		refused := 0
		c.OnWrite(func(w sim.Write) error {
			if w.Resource == "pods" && w.Subresource == "status" && w.User == "release" && refuses(refused) {
				refused++
				return apierrors.NewForbidden(schema.GroupResource{Resource: w.Resource}, w.Name, errors.New("the authorizer has no answer yet"))
			}
			return nil
		})
		return &refused
	}

	It("gives strangers none of them where an API server that has just started refuses nominations", func() { // law 9
		released(func(c *cluster) {
			c.create(fresh(20, "stranger", 4000)...)
			c.settle()
			refused := refuse(c, func(refused int) bool { return refused < 3 })
			for i := range 4 {
				c.create(fresh(1, fmt.Sprintf("web%d", i), 4000, web)...)
				c.settle()
			}
			Expect(*refused).To(Equal(3))
			Expect(placed(c, "web")).To(Equal(4))
			Expect(placed(c, "stranger")).To(Equal(7))
		})
	})

	It("claims none twice where the end of a claim is seen before the machine leaves the reserve", func() { // law 9
		released(func(c *cluster) {
			c.create(fresh(20, "stranger", 4000)...)
			c.settle()
			for _, late := range []string{"pods", "nodes", "machines"} {
				c.Lag(late, func() time.Duration { return 300 * time.Millisecond }, "release")
			}
			for i := range 2 {
				c.create(fresh(1, fmt.Sprintf("web%d", i), 4000, web)...)
				time.Sleep(100 * time.Millisecond)
				c.create(fresh(1, fmt.Sprintf("web%d", 2+i), 4000, web)...)
				time.Sleep(240 * time.Millisecond)
				Expect(c.deployment("a").Annotations).To(HaveKey(v1alpha1.ClaimedAnnotation))
				c.patch("a", `{"metadata":{"annotations":{%q:null}}}`, v1alpha1.ClaimedAnnotation)
				c.settle()
			}
			Expect(placed(c, "web")).To(Equal(4))
			Expect(placed(c, "stranger")).To(Equal(7))
		})
	})

	It("releases them also without the right to nominate: the first after some seconds, and others at once", func() { // law 9
		released(func(c *cluster) {
			lacking := true
			refused := refuse(c, func(int) bool { return lacking })
			c.create(fresh(1, "web0", 4000, web)...)
			time.Sleep(5 * time.Second)
			Expect(c.replicas()).To(Equal("a=1"))
			time.Sleep(5 * time.Second)
			Expect(placed(c, "web")).To(Equal(1))
			Expect(*refused).To(BeNumerically("<", 10))
			c.create(fresh(1, "web1", 4000, web)...)
			time.Sleep(time.Second)
			Expect(placed(c, "web")).To(Equal(2))

			c.set(func() { lacking = false })
			c.create(fresh(1, "web2", 4000, web)...)
			c.settle()
			c.set(func() { lacking = true })
			c.create(fresh(1, "web3", 4000, web)...)
			time.Sleep(time.Second)
			Expect(placed(c, "web")).To(Equal(3), "the right was granted meanwhile")
			c.settle()
			Expect(placed(c, "web")).To(Equal(4))
		})
	})

	It("releases them also where an admission policy refuses nominations, after some seconds", func() { // law 9
		released(func(c *cluster) {
			c.OnWrite(func(w sim.Write) error {
				if w.Resource == "pods" && w.Subresource == "status" && w.User == "release" {
					return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, w.Name, nil)
				}
				return nil
			})
			c.create(fresh(1, "web", 4000, web)...)
			time.Sleep(5 * time.Second)
			Expect(c.replicas()).To(Equal("a=1"))
			time.Sleep(5 * time.Second)
			Expect(placed(c, "web")).To(Equal(1))
		})
	})

	// law 9
	DescribeTable("leaves strangers none in a storm, and its owner none short", func(owner string, owned func(*corev1.Pod)) {
		storm.Seeds(suite, everyAnswer, func(seed uint64) {
			c := inhabit(storm.NewApart(sim.Options{Seed: seed, Resources: served}))
			defer c.End()
			c.Require("additive raise", "inclusive raise", "change to additive", "change to inclusive")
			random := rand.New(rand.NewPCG(seed, 3))
			c.Latency(time.Millisecond)
			within, counts := c.audited(12), accountsOf(seed)
			grownFor(c, owner, counted(counts.first))
			p := c.Start("release", controller(patient))
			c.settle()
			c.Storm(random, p)
			for i := range 4 {
				if i == 1 {
					c.account(counts.then)
				}
				c.create(fresh(1+random.IntN(9), fmt.Sprintf("stranger%d", i), 4000)...)
				time.Sleep(time.Duration(random.IntN(200)) * time.Second)
				if random.IntN(2) == 0 {
					p.CrashFor(time.Duration(random.IntN(5000)) * time.Millisecond)
				}
				c.create(fresh(1, fmt.Sprintf("web%d", i), 4000, owned)...)
				time.Sleep(time.Duration(random.IntN(20)) * time.Second)
			}
			c.Calm()
			within.rest()
			c.expectReserve(12, counts.then)
			Expect(placed(c, "web")).To(Equal(4), c.workload())
			Expect(placed(c, "stranger")).To(BeNumerically("<=", 7), c.workload())
			before := len(c.Writes())
			time.Sleep(2 * time.Hour)
			Expect(c.writes(before)).To(BeEmpty())
		})
	},
		Entry("if that is a workload", forWeb, web),
		Entry("if that is a ProvisioningRequest", "default/ProvisioningRequest/nightly=4", func(p *corev1.Pod) {
			p.Annotations = map[string]string{provisioningv1.ConsumeAnnotation: "nightly"}
		}),
	)

	It("ends the same, wherever it is killed", func() {
		for _, seed := range []uint64{2, 3} {
			counts := accountsOf(seed)
			By(fmt.Sprint(counts))
			scenario := storm.Scenario{
				Options: sim.Options{Seed: 2, Resources: served}, Apart: true,
				Story: func(w *storm.World) {
					c := inhabit(w)
					c.Latency(time.Millisecond)
					within := c.audited(12)
					grown(c, counted(counts.first))
					w.Start("release", controller(usual))
					c.settle()
					c.create(fresh(9, "stranger", 4000)...)
					time.Sleep(time.Second)
					c.account(counts.then)
					c.create(fresh(4, "web", 4000, web)...)
					within.rest()
					c.expectReserve(12, counts.then)
				},
				End: func(w *storm.World) any {
					c := &cluster{World: w}
					return fmt.Sprint(c.workload(), placed(c, "web"), placed(c, "stranger"))
				},
			}
			Expect(storm.CrashPoints(suite, scenario, "release")).To(Succeed())
		}
	})
})

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
