// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// story returns what is written to MachineDeployments from now on, one line per write.
func (c *cluster) story() func() string {
	var lines []string
	c.AfterWrite(func(w sim.Write) error {
		if w.Resource == "machinedeployments" && w.Subresource == "" && !w.NoOp() {
			replicas, _, _ := unstructured.NestedInt64(w.Object, "spec", "replicas")
			annotations, _, _ := unstructured.NestedStringMap(w.Object, "metadata", "annotations")
			lines = append(lines, fmt.Sprint(w.Time.Format("15:04:05.000"), " ", w.User, " ", w.Verb, " ", w.Name, ": ", replicas, " ", annotations))
		}
		return nil
	})
	return func() string { return strings.Join(lines, "\n") }
}

// expectEven expects so many replicas in total, and zones that differ by at most one.
func (c *cluster) expectEven(total int, story func() string) {
	GinkgoHelper()
	sizes := Numbers(c.sizes(abc...))
	Expect(sizes[0]+sizes[1]+sizes[2]).To(Equal(total), story)
	Expect(slices.Max(sizes)-slices.Min(sizes)).To(BeNumerically("<=", 1), story)
}

// rests expects that nothing of a move is left, that what is applied is what is asked for, that this many machines are in
// reserve, and that nothing is written any more.
func (c *cluster) rests(reserve int) {
	GinkgoHelper()
	Expect(c.annotations(v1alpha1.MoveAnnotation, abc...)).To(Equal("-/-/-"))
	Expect(c.annotations(v1alpha1.AppliedReplicasAnnotation, abc...)).To(Equal(c.sizes(abc...)))
	Expect(Sum(c.ready(true, abc...))).To(Equal(reserve))
	before := len(c.Writes())
	time.Sleep(time.Hour) // three times as long as the longest pause
	Expect(c.wrote(before)).To(BeZero())
}

func (c *cluster) calm() {
	c.Calm()
	c.set(func() { c.out = map[string]bool{} })
}

// disturb does one thing that happens in clusters.
func (c *cluster) disturb(random *rand.Rand, p *storm.Process) {
	name := abc[random.IntN(3)]
	switch random.IntN(5) {
	case 0:
		p.CrashFor(time.Duration(random.IntN(30)) * time.Second)
	case 1:
		c.set(func() { c.out[name] = !c.out[name] })
	case 2:
		c.annotate(name, v1alpha1.BalanceAnnotation, []string{"Off", "ScaleUp", "Continuous"}[random.IntN(3)])
	case 3:
		c.Compact()
	case 4:
		c.budget(int32(random.IntN(2)))
	}
}

var _ = Describe("Storms", func() {
	It("1 and 9: change no sum, leave what is even, and then nothing is written", func() {
		storm.Seeds(suite, 4, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			random := rand.New(rand.NewPCG(seed, 1))
			c.deployAll([]Change{Continuous, Labelled("p"), Excess("3")}, random.IntN(7), random.IntN(7), random.IntN(7))
			total := Sum(c.sizes(abc...))
			for i := range total / 2 {
				c.run(fmt.Sprint("p", i))
			}
			c.WatchLists(seed%2 == 0, "balance")
			first, second := c.Twins("balance", controller())
			story := c.story()
			c.Storm(random, first, second)
			for range 8 {
				time.Sleep(time.Duration(random.IntN(120)) * time.Second)
				c.disturb(random, first)
			}
			c.calm()
			c.budget(9)
			for _, name := range abc {
				c.annotate(name, v1alpha1.BalanceAnnotation, "Continuous")
			}
			c.settle()
			c.expectEven(total, story)
			Expect(Sum(c.annotations(v1alpha1.ShareAnnotation, abc...))).To(Equal(3))
			c.rests(3)
		})
	})

	It("2: split all growth that is asked for in them, no replica more or less", func() {
		storm.Seeds(suite, 4, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			random := rand.New(rand.NewPCG(seed, 2))
			c.WatchLists(seed%2 == 0, "balance")
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			first, second := c.Twins("balance", controller())
			c.settle()
			story := c.story()
			c.Storm(random, first, second)
			total := 6
			for round := range 8 {
				time.Sleep(time.Duration(random.IntN(80)) * time.Second)
				if round%3 == 1 {
					for _, p := range []*storm.Process{first, second} {
						p.CrashFor(time.Duration(random.IntN(10)) * time.Second)
					}
				}
				// Growth is often asked for in the middle of a move, before the watch shows what was asked for last.
				for range 3 {
					more := 1 + random.IntN(3)
					c.add(abc[random.IntN(3)], more)
					total += more
					time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
				}
			}
			c.calm()
			c.settle()
			c.expectEven(total, story)
			c.rests(0)
		})
	})

	It("1: a backup of the control cluster that is restored in them takes back what was asked for since, and no more", func() {
		storm.Seeds(suite, 4, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			c.Require("restore")
			random := rand.New(rand.NewPCG(seed, 5))
			c.WatchLists(seed%2 == 0, "balance")
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			first, second := c.Twins("balance", controller())
			c.settle()
			story := c.story()
			c.Storm(random, first, second)
			total := 6
			grow := func(rounds int) {
				for range rounds {
					time.Sleep(time.Duration(random.IntN(80)) * time.Second)
					more := 1 + random.IntN(4)
					c.add(abc[random.IntN(3)], more)
					total += more
				}
			}
			grow(3)
			time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond) // in the middle of a move, or after it
			backup, then := c.Control.Snapshot(), total
			grow(3)
			// Our daemons end when they see that a backup was restored.
			for _, p := range []*storm.Process{first, second} {
				p.CrashFor(20 * time.Second)
			}
			c.Control.Restore(backup)
			total = then
			grow(3)
			c.calm()
			c.settle()
			c.expectEven(total, story)
			c.rests(0)
		})
	})
})

var _ = Describe("Wherever the controller is killed", func() {
	killed := func(seed uint64, story func(c *cluster), process string) {
		GinkgoHelper()
		scenario := storm.Scenario{
			Options: sim.Options{Seed: seed, Resources: served}, Apart: true,
			Story: func(w *storm.World) {
				c := adopt(w)
				story(c)
				c.settle()
			},
			End: func(w *storm.World) any {
				c := &cluster{World: w}
				return strings.Join([]string{c.sizes(abc...), c.ready(false, abc...), c.ready(true, abc...), c.annotations(v1alpha1.MoveAnnotation, abc...), c.annotations(v1alpha1.ShareAnnotation, abc...)}, " ")
			},
		}
		Expect(storm.CrashPoints(suite, scenario, process)).To(Succeed())
	}

	It("1: growth is split once", func() {
		killed(1, func(c *cluster) {
			c.deployAll([]Change{ScaleUp}, 2, 2, 2)
			c.Start("balance", controller())
			c.settle()
			c.scale("a", 8)
		}, "balance")
	})

	It("1 and 4: a machine moves once, no pod twice, and none is missing", func() {
		killed(2, func(c *cluster) {
			c.deployAll([]Change{Continuous}, 4, 2, 3)
			for i := range 9 {
				c.run(fmt.Sprint("p", i))
			}
			time.Sleep(5 * time.Minute)
			c.Start("balance", controller())
			seen := -1
			for range 600 {
				time.Sleep(time.Second)
				if n := c.Wakeups(); n == seen {
					continue
				} else if seen = n; Sum(c.ready(false, abc...)) < 9 {
					Fail(fmt.Sprintf("only %s machines run", c.ready(false, abc...)))
				}
			}
			for pod, n := range c.moved {
				Expect(n).To(Equal(1), pod)
			}
			Expect(len(c.moved)).To(BeNumerically("<=", 1))
		}, "balance")
	})

	It("6: a pool's excess is what was asked for", func() {
		killed(3, func(c *cluster) {
			c.deployAll([]Change{Labelled("p"), Excess("4")}, 2, 2, 2)
			time.Sleep(time.Minute)
			c.set(func() { c.out["a"] = true }) // where a machine in reserve is to be created next
			c.Start("balance", controller())
			time.Sleep(20 * time.Minute)
			Expect(c.annotations(v1alpha1.ShareAnnotation, "a")).NotTo(Equal("2"), "others stand in")
			c.set(func() { c.out["a"] = false })
			c.settle()
			Expect(Sum(c.annotations(v1alpha1.ShareAnnotation, abc...))).To(Equal(4))
			Expect(c.annotations(v1alpha1.ShareAnnotation, "a")).NotTo(Equal("0"), "its machines are ready again")
		}, "balance")
	})
})

var _ = Describe("Two instances", func() {
	It("end a move that the first was killed in the middle of, also where its last write is still under way", func() {
		storm.Seeds(suite, 4, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			c.deployAll([]Change{Continuous}, 5, 2, 2)
			for i := range 9 {
				c.run(fmt.Sprint("p", i))
			}
			time.Sleep(5 * time.Minute)
			first := c.Start("balance-1", controller())
			random := rand.New(rand.NewPCG(seed, 3))
			writes, after := 0, 1+random.IntN(8)
			handed := make(chan struct{})
			c.AfterWrite(func(w sim.Write) error {
				if w.User == "balance-1" && w.Resource == "machinedeployments" && !w.NoOp() {
					if writes++; writes == after {
						first.Crash()
						close(handed)
					}
				}
				return nil
			})
			<-handed
			c.Start("balance-2", controller())
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("3/3/3"))
			Expect(c.ready(false, abc...)).To(Equal("3/3/3"))
			Expect(len(c.moved)).To(Equal(2))
			for pod, n := range c.moved {
				Expect(n).To(Equal(1), pod)
			}
		})
	})

	It("that both work, since none was elected, move each replica only once", func() {
		storm.Seeds(suite, 4, func(seed uint64) {
			c := newCluster(sim.Options{Seed: seed})
			defer c.End()
			random := rand.New(rand.NewPCG(seed, 4))
			c.deployAll([]Change{Continuous}, 6, 3, 0)
			for i, user := range []string{"balance-1", "balance-2"} {
				c.Lag("machinedeployments", sim.Uniformly(seed+uint64(i), 0, 3*time.Second), user)
				c.Lag("machines", sim.Uniformly(seed+uint64(9+i), 0, 3*time.Second), user)
				c.Start(user, controller())
				time.Sleep(time.Duration(random.IntN(20)) * time.Second)
			}
			c.scale("b", c.size("b")+6)
			c.settle()
			Expect(Sum(c.sizes(abc...))).To(BeNumerically(">=", 15))
			c.settle()
			Expect(c.sizes(abc...)).To(Equal("5/5/5"))
			Expect(c.ready(false, abc...)).To(Equal("5/5/5"))
		})
	})
})

var _ = Describe("What comes and goes", func() {
	It("leaves nothing behind: MachineDeployments that go while they are written, with their MachineSets and MachineClasses", Label("soak"), func() {
		const each = 20
		rounds := storm.Soak(600, 3*each)
		play(func(c *cluster) {
			var held *Controller
			c.Start("balance", exposed(func(it *Controller) { held = it }))
			c.Lag("machinedeployments", sim.Uniformly(1, 0, 3*time.Second), "balance")
			most := 0
			for round := range rounds {
				for i := range each {
					c.deploy(NewMember(fmt.Sprintf("m-%d-%d", round, i), 1, ScaleUp, Labelled("p"), Excess("3")))
				}
				for range 20 {
					time.Sleep(200 * time.Millisecond)
					most = max(most, held.Written())
				}
				c.clear()
			}
			time.Sleep(time.Minute)
			Expect(most).To(BeNumerically(">", 0), "there was something to forget")
			Expect(held.Held()).To(BeZero())
		})
	})
})

// clear deletes everything.
func (c *cluster) clear() {
	GinkgoHelper()
	ctx, all := context.Background(), metav1.ListOptions{}
	ours := c.ours.MachineV1alpha1()
	for _, err := range []error{
		ours.MachineDeployments(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		ours.MachineSets(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		ours.MachineClasses(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		c.core.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, all),
	} {
		Expect(err).NotTo(HaveOccurred())
	}
	machines, err := ours.Machines(ns).List(ctx, all)
	Expect(err).NotTo(HaveOccurred())
	for i := range machines.Items {
		m := &machines.Items[i]
		m.Finalizers = nil
		if _, err := ours.Machines(ns).Update(ctx, m, metav1.UpdateOptions{}); err == nil {
			_ = ours.Machines(ns).Delete(ctx, m.Name, metav1.DeleteOptions{})
		}
	}
}
