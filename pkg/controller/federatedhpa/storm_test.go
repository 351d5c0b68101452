// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/workloads"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

var _ = Describe("Storms", func() {
	It("never let the maxima pass the limit, and end as calm weather does", func() {
		storm.Seeds(suite, 4, func(seed uint64) {
			f := newFederation(seed, "c1", "c2", "c3", "c4")
			defer f.End()
			f.guard(30, "shop")
			random := rand.New(rand.NewPCG(seed, 1))
			first, second := f.Twins("federatedhpa", storm.Probing(probe, f.controller))
			f.Storm(random, first, second)
			f.create(Federated(4, 30))
			f.disturbAll(random, first, second)
			f.Calm()
			f.reachAll()
			f.change("shop", everywhere)
			f.loads("shop", 20, 1, 1, 1)
			f.settle()
			f.excused.Store(false)
			f.judge(30, "shop")
			Expect(f.clusters[0].hpa("shop").Spec.MaxReplicas).To(BeNumerically(">=", 20), f.bounds("shop"))
			Expect(f.object("shop").Status.MaxReplicas).To(BeEquivalentTo(30))
			Expect(f.condition("shop", "Ready")).To(Equal("True UnderControl"))
			Expect(f.condition("shop", "Balanced")).To(Equal("True AtGoal"))
			before := len(f.ours())
			time.Sleep(2 * time.Hour)
			Expect(f.ours()[before:]).To(BeEmpty())
		})
	})

	It("end the same wherever the hub's controller is killed at one of its writes there", func() {
		Expect(storm.CrashPoints(suite, storm.Scenario{
			Options: sim.Options{Seed: 2, Resources: hubServes},
			Story: func(w *storm.World) {
				f := adopt(w, "c1", "c2", "c3")
				f.story()
				ended[w] = f.end()
			},
			End: func(w *storm.World) any { return ended[w] },
		}, "federatedhpa")).To(Succeed())
	})

	It("end the same wherever it is killed at one of its writes to a cluster", func() {
		usual, writes := killedAt(0, sim.Before)
		Expect(writes).To(BeNumerically(">", 5))
		for n := 1; n <= writes; n++ {
			for _, moment := range []sim.Moment{sim.Before, sim.After} {
				end, _ := killedAt(n, moment)
				Expect(end).To(Equal(usual), "killed at write %d, %v", n, moment)
			}
		}
	})
})

var ended = map[*storm.World]string{}

// story is one from the first autoscaler to the second balance.
func (f *federation) story() {
	f.guard(30, "shop")
	f.options.ProbePeriod = time.Minute
	f.start()
	f.tell()
	f.stop()
	f.actors.Wait()
}

func (f *federation) tell() {
	f.create(Federated(3, 30))
	f.settle()
	f.loads("shop", 25, 2, 2)
	f.settle()
	f.loads("shop", 2, 18, 2)
	f.settle()
}

// end is what does not depend on who was asked first: what runs, and what all may run.
func (f *federation) end() string {
	var words []string
	for _, c := range f.clusters {
		words = append(words, fmt.Sprint(c.replicas("shop")))
	}
	return fmt.Sprintf("%s of %d %s", strings.Join(words, "/"), f.object("shop").Status.MaxReplicas, f.condition("shop", "Balanced"))
}

// killedAt plays the story, and kills the controller at its nth write to a cluster, which 0 is not.
func killedAt(n int, moment sim.Moment) (end string, writes int) {
	storm.Bubble(suite, func() {
		f := newFederation(3, "c1", "c2", "c3")
		defer f.End()
		var mu sync.Mutex
		var p *storm.Process
		f.guard(30, "shop")
		for _, c := range f.clusters {
			count := func(at sim.Moment) func(sim.Write) error {
				return func(w sim.Write) error {
					mu.Lock()
					defer mu.Unlock()
					if w.User != "federatedhpa" {
						return nil
					}
					if at == sim.Before {
						writes++
					}
					if at == moment && writes == n {
						n = -1
						p.CrashFor(10 * time.Second)
						return fmt.Errorf("the connection breaks")
					}
					return nil
				}
			}
			c.OnWrite(count(sim.Before))
			c.AfterWrite(count(sim.After))
		}
		f.options.ProbePeriod = time.Minute
		p = f.start()
		f.tell()
		end = f.end()
	})
	return end, writes
}

// guard looks at all members whenever one of them is written to.
func (f *federation) guard(limit int64, name string) {
	poke, done := make(chan struct{}, 1), make(chan struct{})
	for _, c := range f.clusters {
		c.AfterWrite(func(w sim.Write) error {
			if w.Resource == "horizontalpodautoscalers" && w.User == "federatedhpa" && !w.NoOp() {
				c.used.Store(true)
				c.forgotten.Store(0)
				f.note("%s %s %v", c.name, w.Verb, w.Object["spec"].(map[string]any)["maxReplicas"])
			}
			select {
			case poke <- struct{}{}:
			default:
			}
			return nil
		})
	}
	before := f.stop
	f.stop = func() {
		before()
		select {
		case <-done:
		default:
			close(done)
		}
	}
	f.actors.Go(func() {
		defer GinkgoRecover()
		for {
			select {
			case <-poke:
				f.judge(limit, name)
			case <-done:
				return
			}
		}
	})
}

// note remembers what happens, for the message of a law that is broken.
func (f *federation) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, time.Now().Format(time.TimeOnly+".000 ")+fmt.Sprintf(format, args...))
}

func (f *federation) trail() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.notes[max(0, len(f.notes)-60):], "\n")
}

// judge adds up the maxima. Clusters are read one after the other: what is written meanwhile is judged after that write.
func (f *federation) judge(limit int64, name string) {
	var sum int64
	before := f.bounds(name)
	for _, c := range f.clusters {
		if h := c.hpa(name); h != nil {
			sum += int64(h.Spec.MaxReplicas)
			Expect(*h.Spec.MinReplicas).To(BeNumerically("<=", h.Spec.MaxReplicas))
		} else if c.used.Load() && c.Get(deploymentGVR, ns, name) != nil {
			sum += max(0, int64(c.replicas(name))-c.forgotten.Load()) // left running
		}
	}
	if f.excused.Load() || f.bounds(name) != before {
		return
	}
	Expect(sum).To(BeNumerically("<=", limit), "seed %d: the maxima are %s after\n%s", f.Seed, f.bounds(name), f.trail())
}

// probe is what the process of the hub asks for.
func probe(config *rest.Config) reachability.Probe {
	return reachability.ListingOptional(workloads.NewForConfigOrDie(config).AutoscalingV1alpha1().FederatedHorizontalPodAutoscalers("").List)
}

// disturbAll does many things that happen to fleets. In their midst it restores a backup of the hub, and at last one of a cluster.
func (f *federation) disturbAll(random *rand.Rand, twins ...*storm.Process) {
	f.Require("lease lost", "restore")
	var hub hubBackup
	var member *sim.Snapshot
	for round := range 30 {
		time.Sleep(time.Duration(random.IntN(200)) * time.Second)
		switch round {
		case 8:
			hub, member = f.backUp(), f.clusters[0].Snapshot()
		case 16:
			f.restoreHub(hub)
			f.Storm(random, twins...)
		case 26:
			f.excused.Store(true)
			f.clusters[0].Restore(member)
		default:
			f.disturb(random, twins[0])
		}
	}
}

// hubBackup is a snapshot of the hub, with how many replicas were left in each cluster that had no share then.
type hubBackup struct {
	hub  *sim.Snapshot
	left map[*cluster]int64
}

func (f *federation) backUp() hubBackup {
	b := hubBackup{f.Snapshot(), map[*cluster]int64{}}
	for _, c := range f.clusters {
		switch s := f.ledgerEntry("shop", c.name); {
		case s == nil:
			b.left[c] = 0
		case s.ConfirmedMaxReplicas == 0 && s.Outstanding == nil:
			b.left[c] = int64(s.LeftReplicas)
		}
	}
	return b
}

// restoreHub restores a backup once the hub has not answered for longer than an order may be under way, while all clusters are within
// reach: of one that is not, the hub knows no more than the ledgers of the backup. Nor does it know what a cluster runs that had left
// by the backup, or was not used, if it has been used and has left since.
func (f *federation) restoreHub(b hubBackup) {
	f.Calm()
	f.Down(true, "federatedhpa")
	f.reachAll()
	time.Sleep(2 * time.Minute)
	f.note("the hub is restored")
	f.Restore(b.hub)
	for _, c := range f.clusters {
		if left, unused := b.left[c]; unused && c.hpa("shop") == nil {
			c.forgotten.Store(max(0, int64(c.replicas("shop"))-left))
		}
	}
	f.Down(false, "federatedhpa")
	time.Sleep(3 * time.Minute)
}

// reachAll ends all outages of clusters.
func (f *federation) reachAll() {
	for _, c := range f.clusters {
		c.Down(false, "federatedhpa")
	}
}

// disturb does one thing that happens to fleets.
func (f *federation) disturb(random *rand.Rand, p *storm.Process) {
	c := f.clusters[random.IntN(len(f.clusters))]
	switch random.IntN(8) {
	case 0:
		p.CrashFor(time.Duration(random.IntN(60)) * time.Second)
	case 1:
		c.Down(true, "federatedhpa")
	case 2:
		c.Down(false, "federatedhpa")
	case 3, 4:
		c.set(func(c *cluster) { c.load["shop"] = int64(random.IntN(30)) })
	case 5:
		c.Compact()
	case 6:
		f.change("shop", without(c.name))
	case 7:
		f.change("shop", everywhere)
	}
}
