// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// group creates a PodGroup that starts once this many pods can start together.
func (c *cluster) group(name string, least int32) {
	GinkgoHelper()
	g := &schedulingv1alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Spec.SchedulingPolicy.Gang = &schedulingv1alpha2.GangSchedulingPolicy{MinCount: least}
	world.Create(c.core.SchedulingV1alpha2().PodGroups(ns), g)
}

// gang creates a PodGroup with so many pods, which all start together.
func (c *cluster) gang(name string, pods int, milli int64, change ...func(*corev1.Pod)) {
	GinkgoHelper()
	c.group(name, int32(pods))
	c.create(fresh(pods, name, milli, append(change, member(name))...)...)
}

// member makes a pod one of a group.
func member(group string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels["gang"] = group
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(group)}
	}
}

// admitted makes a pod one of a group of so many that Kueue admits.
func admitted(group string, pods string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels["kueue.x-k8s.io/pod-group-name"] = group
		p.Annotations = map[string]string{"kueue.x-k8s.io/pod-group-total-count": pods}
	}
}

// gated makes a pod wait for its queue.
func gated(p *corev1.Pod) {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
}

// halves are the groups of which some pods have a Node and others have none, as in "g: 2 of 3".
func (c *cluster) halves() (all []string) {
	pods, bound := map[string]int{}, map[string]int{}
	for _, p := range c.pods() {
		if name := p.Labels["gang"]; name != "" {
			pods[name]++
			if p.Spec.NodeName != "" {
				bound[name]++
			}
		}
	}
	for name, n := range pods {
		if bound[name] > 0 && bound[name] < n {
			all = append(all, fmt.Sprintf("%s: %d of %d", name, bound[name], n))
		}
	}
	slices.Sort(all)
	return all
}

// waitFor returns how many machines hold each group that waits and is complete, and each other pod that waits.
func (c *cluster) waitFor() map[string]int {
	pods, machines := map[string]int{}, map[string]int{}
	for _, p := range c.pods() {
		name := cmp.Or(p.Labels["gang"], p.Name)
		if pods[name]++; p.Spec.NodeName == "" {
			perMachine := int(4000 / p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue())
			machines[name] = (pods[name] + perMachine - 1) / perMachine
		}
	}
	maps.DeleteFunc(machines, func(name string, _ int) bool { return pods[name] < c.least(name) })
	return machines
}

// least returns how many pods of a group start together, 0 if there is no such group.
func (c *cluster) least(group string) int {
	g, err := c.core.SchedulingV1alpha2().PodGroups(ns).Get(context.Background(), group, metav1.GetOptions{})
	if err != nil {
		return 0
	}
	return int(g.Spec.SchedulingPolicy.Gang.MinCount)
}

// spare returns how many machines the reserves hold together at rest.
func (c *cluster) spare(limit int) (all int) {
	for _, d := range c.deployments() {
		all += max(0, min(int(ptr.Deref(d.Spec.ExcessReplicas, 0)), limit-int(pool.Requested(&d))))
	}
	return all
}

var _ = Describe("A PodGroup", func() {
	It("gets machines for all of its pods with one write, and causes none at rest", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.gang("g", 3, 4000)
			c.settle()
			Expect(c.replicas()).To(Equal("a=4"))
			Expect(c.waiting()).To(BeZero())
			Expect(c.writes(0)).To(Equal([]string{"patch machinedeployments a"}))
		})
	})

	It("gets machines once the reserve has enough of them, and nothing before that", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.gang("g", 3, 4000)
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			Expect(c.waiting()).To(Equal(3))
			lacks := func(machines string) string {
				return "ReserveTooSmall: 3 pods must start together, and the reserve lacks " + machines + " of MachineDeployment " + ns + "/a (zone a)"
			}
			Expect(c.events()).To(Equal([]string{lacks("2 machines")}))
			c.patch("a", `{"spec":{"excessReplicas":2}}`)
			c.settle()
			Expect(c.events()).To(Equal([]string{lacks("2 machines"), lacks("1 machine")}))
			Expect(c.writes(0)).To(BeEmpty(), "it was said once")
			c.patch("a", `{"spec":{"excessReplicas":3}}`)
			c.settle()
			Expect(c.replicas()).To(Equal("a=4"))
			Expect(c.waiting()).To(BeZero())
		})
	})

	It("gets an event that says what it lacks, each time its pods are created again", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.gang("g", 2, 4000)
			c.settle()
			for _, pod := range []string{"g-0", "g-1"} {
				c.delete(pod)
			}
			c.settle()
			c.create(fresh(2, "g", 4000, member("g"))...)
			c.settle()
			g, err := c.core.SchedulingV1alpha2().PodGroups(ns).Get(context.Background(), "g", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			about := []string{}
			for _, e := range stored[corev1.Event](c, eventGVR) {
				about = append(about, fmt.Sprintf("%s of %s %s %s", e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.InvolvedObject.UID))
			}
			said := fmt.Sprintf("ReserveTooSmall of PodGroup g %s", g.UID)
			Expect(about).To(Equal([]string{said, said}))
		})
	})

	It("of a single pod gets a machine, although groups are read only once it waits", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.gang("g", 1, 4000)
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
		})
	})

	It("gets machines once it exists, after its pods", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.create(Pods(3, "g", 4000, member("g"))...)
			c.create(Pod("other", 4000, InZone("b"))) // has the groups read
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			c.group("g", 3)
			c.settle()
			Expect(c.replicas()).To(Equal("a=4"))
		})
	})

	It("is left to the autoscaler where the cluster serves no PodGroups, also as they come later", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			o, asked := usual, make(chan struct{})
			o.PodGroupsServed = func(ctx context.Context) bool {
				close(asked)
				<-ctx.Done()
				return false
			}
			c.Start("release", controller(o))
			c.settle()
			Expect(asked).NotTo(BeClosed(), "no pod has named one")
			c.gang("g", 3, 4000)
			c.settle()
			Expect(asked).To(BeClosed())
			Expect(c.replicas()).To(Equal("a=1"))
		})
	})

	It("gets what is missing if some of its pods are deleted and come again", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 4, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.gang("g", 3, 4000)
			c.settle()
			Expect(c.core.CoreV1().Pods(ns).Delete(context.Background(), "g-0", metav1.DeleteOptions{GracePeriodSeconds: new(int64)})).To(Succeed())
			c.create(Pod("filler", 4000))
			c.settle()
			c.create(fresh(1, "again", 4000, member("g"))...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=5"))
			Expect(c.waiting()).To(BeZero())
		})
	})
})

var _ = Describe("Storms over groups", func() {
	It("never leave half of one at rest, and help each that the reserve can hold", func() {
		storm.Seeds(suite, everyAnswer, func(seed uint64) {
			random := rand.New(rand.NewPCG(seed, 7))
			c := inhabit(storm.NewApart(sim.Options{Seed: seed, Resources: served}))
			defer c.End()
			c.Require(struckByAccounts...)
			c.Latency(time.Millisecond)
			within, counts := c.audited(few), accountsOf(seed)
			bounds := fmt.Sprintf("1:%d", few)
			c.grow("a", 1, 4, bounds, counted(counts.first))
			c.grow("b", 1, 1+random.IntN(3), bounds, counted(counts.first))
			p := c.Start("release", controller(patient))
			c.settle()
			c.Storm(random, p)
			for step := range 16 {
				if step == 5 {
					c.account(counts.then)
				}
				if random.IntN(2) == 0 {
					c.gang(fmt.Sprintf("g%d", step), 1+random.IntN(4), []int64{1000, 2000, 4000}[random.IntN(3)])
				} else {
					c.disturb(random, p, step)
				}
				time.Sleep(time.Duration(random.IntN(80)) * time.Second)
				within.verdict()
			}
			c.Calm()
			within.rest()
			Expect(c.halves()).To(BeEmpty())
			c.expectReserve(few, counts.then)
			for what, machines := range c.waitFor() {
				Expect(machines).To(BeNumerically(">", c.spare(few)), "%s waits, %s", what, c.workload())
			}
			before := len(c.Writes())
			time.Sleep(2 * time.Hour)
			Expect(c.writes(before)).To(BeEmpty())
		})
	})
})

var _ = Describe("A group of pods that Kueue admits", func() {
	It("gets machines once all of its pods are admitted, and none before that", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.create(Pods(2, "g", 4000, admitted("g", "3"))...)
			c.create(Pod("late", 4000, admitted("g", "3"), gated))
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			world.Patch(c.core.CoreV1().Pods(ns), "late", `{"spec":{"schedulingGates":null}}`)
			c.settle()
			Expect(c.replicas()).To(Equal("a=4"))
			Expect(c.waiting()).To(BeZero())
		})
	})

	It("counts without the pods of a group of the same name in another namespace", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.create(fresh(1, "g", 4000, admitted("g", "2"))...)
			for _, p := range fresh(1, "g", 4000, admitted("g", "2"), InNamespace("other")) {
				p.UID, p.Status = "", corev1.PodStatus{}
				world.Create(c.core.CoreV1().Pods("other"), p)
			}
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"), "of each, one pod is missing")
		})
	})

	It("is as old as its oldest pod, and comes before younger ones", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			for _, name := range []string{"x-0", "b-0", "b-1", "x-1"} {
				c.create(Pod(name, 4000, admitted(name[:1], "2")))
				time.Sleep(time.Second)
			}
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			c.patch("a", `{"spec":{"excessReplicas":2}}`)
			c.settle()
			Expect(c.events()).To(ContainElement(HavePrefix("ReserveNeeded: Raised replicas from 1 to 3 for pods default/x-0, default/x-1, ")))
		})
	})

	It("gets none while the reserve has too few, which an event on a pod says", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.create(Pods(3, "g", 4000, admitted("g", "3"))...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"))
			Expect(c.events()).To(Equal([]string{"ReserveTooSmall: 3 pods must start together, and the reserve lacks 1 machine of MachineDeployment " + ns + "/a (zone a)"}))
		})
	})

	It("starts again with the pods that have not succeeded", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 1, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			for name, phase := range map[string]string{"done": "Succeeded", "broken": "Failed"} {
				c.create(Pod(name, 4000, admitted("g", "3"), func(p *corev1.Pod) { p.Spec.NodeName = "gone" }))
				c.patchPod(name, `{"status":{"phase":"`+phase+`"}}`)
			}
			c.create(Pods(2, "again", 4000, admitted("g", "3"))...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=1"), "one machine is too few for two pods")
			c.patch("a", `{"spec":{"excessReplicas":2}}`)
			c.settle()
			Expect(c.replicas()).To(Equal("a=3"))
			Expect(c.waiting()).To(BeZero())
		})
	})

	It("is served pod by pod if Kueue admits it before all of them exist", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 3, "1:10")
			c.Start("release", controller(usual))
			c.settle()
			c.create(Pods(2, "g", 4000, admitted("g", "3"), func(p *corev1.Pod) { p.Annotations["kueue.x-k8s.io/pod-group-fast-admission"] = "true" })...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=3"))
		})
	})
})
