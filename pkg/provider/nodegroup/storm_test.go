// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	builders "github.com/evenkeel/evenkeel/test/builders/nodegroup"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// undertaker does what machine-controller-manager does about names: their machines terminate, and it takes the names out.
func undertaker(ctx context.Context, config *rest.Config) error {
	client := versioned.NewForConfigOrDie(config).MachineV1alpha1()
	for ctx.Err() == nil {
		list, err := client.MachineDeployments(ns).List(ctx, metav1.ListOptions{})
		if err == nil {
			for i := range list.Items {
				bury(ctx, client.Machines(ns), &list.Items[i])
				_, _ = client.MachineDeployments(ns).Update(ctx, &list.Items[i], metav1.UpdateOptions{}) // or the next time
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
	return nil
}

// bury deletes the machines that a MachineDeployment names, and leaves the names of those that are not deleted.
func bury(ctx context.Context, machines interface {
	Delete(context.Context, string, metav1.DeleteOptions) error
}, d *v1alpha1.MachineDeployment) {
	var left []string
	for name := range pool.Named(d) {
		if machines.Delete(ctx, name, metav1.DeleteOptions{}) != nil {
			left = append(left, name)
		}
	}
	if delete(d.Annotations, machineutils.TriggerDeletionByMCM); len(left) > 0 {
		d.Annotations[machineutils.TriggerDeletionByMCM] = strings.Join(left, ",")
	}
}

// longest is more than any storm keeps a caller from what it wants.
const longest = 6 * time.Hour

// ledger is what a caller knows of the replicas of a group.
type ledger struct {
	least, most int32
}

func (l *ledger) add(n int32) { l.least += n; l.most += n }

// raise asks once. What the answer leaves open is open here too.
func (c *cluster) raise(l *ledger, delta int32) {
	GinkgoHelper()
	switch err := c.increase("pool", delta); code(err) {
	case codes.OK:
		l.add(delta)
	case codes.Unavailable, codes.Aborted, codes.DeadlineExceeded:
		l.most += delta
	case codes.PermissionDenied, codes.FailedPrecondition, codes.NotFound, codes.OutOfRange: // it was refused, and had no effect
	default:
		Fail(fmt.Sprint("raise: ", err))
	}
}

// drop asks for a machine to go until it is answered, as the caller does from loop to loop.
func (c *cluster) drop(l *ledger, node string) {
	GinkgoHelper()
	for begun := time.Now(); ; {
		err := c.remove("pool", node)
		if err == nil {
			l.add(-1)
			return
		}
		Expect(time.Since(begun)).To(BeNumerically("<", longest), "%s is never removed", node)
		Expect(code(err)).To(BeElementOf(codes.Unavailable, codes.Aborted, codes.DeadlineExceeded, codes.PermissionDenied, codes.FailedPrecondition, codes.NotFound), "%v", err)
		time.Sleep(10 * time.Second)
	}
}

var _ = Describe("Storms", func() {
	It("with two instances, other writers and a restored backup lose no raise, make none twice, and count each deleted machine once", func() {
		storm.Seeds(suite, 8, func(seed uint64) {
			c := adopt(storm.NewApart(sim.Options{Seed: seed}))
			defer c.end()
			c.Require("restore")
			random := rand.New(rand.NewPCG(seed, 1))
			c.Require("additive raise", "inclusive raise", "reserve machines taken", "withdrawal", "change to additive", "change to inclusive")
			counts, limit, more := seed%2 == 0, int32(10_000), int32(50)
			if counts {
				limit, more = narrow, 2
			}
			within := c.audited(limit)
			if c.pool("pool", fmt.Sprintf("0:%d", limit), 20, reserved(limit)); counts {
				c.recount(seed%4 == 0)
			}
			var left []string
			for i := range 20 {
				c.machine("pool", fmt.Sprintf("m%02d", i), mcm.MachineRunning, func(m *v1alpha1.Machine) { m.Finalizers = []string{"e2e/slow"} })
				left = append(left, fmt.Sprintf("node-m%02d", i))
			}
			c.WatchLists(seed%2 == 0, serving)
			first, second := c.Twins(serving, server(c.wire))
			buries := c.Start("undertaker", undertaker)
			c.Storm(random, first, second)
			l := &ledger{20, 20}
			act := func() {
				time.Sleep(time.Duration(random.IntN(20)) * time.Second)
				switch random.IntN(6) {
				case 0, 1:
					c.raise(l, int32(1+random.IntN(2)))
				case 2, 3:
					n := random.IntN(len(left))
					c.drop(l, left[n])
					left = slices.Delete(left, n, n+1)
				case 4:
					if c.replicas("pool")+more <= limit {
						c.others(more)
						l.add(more)
						c.raise(l, 1) // before the server has seen that
					}
				case 5:
					c.withdraw(len(left), 1+random.IntN(3))
				}
			}
			for range 8 {
				act()
			}
			backup, was, there, withdrawn := c.Control.Snapshot(), *l, slices.Clone(left), within.withdrawals()
			for i := range 4 {
				if i == 2 && counts {
					c.recount(seed%4 != 0)
				}
				act()
			}
			// Our daemons end when they see that a backup was restored.
			for _, p := range []*storm.Process{first, second} {
				p.CrashFor(20 * time.Second)
			}
			c.Control.Restore(backup)
			within.restored(withdrawn)
			*l, left = was, there
			for i := range 8 {
				if i == 4 && counts {
					c.recount(seed%4 != 0) // the backup has undone that
				}
				act()
			}
			c.Calm()
			time.Sleep(5 * time.Minute)
			Expect(buries.Stop()).To(Succeed())
			within.verdict()
			got := world.Requested(c.deployment("pool"))
			Expect(got).To(BeNumerically(">=", int(l.least)-within.withdrawals()), "a raise was lost, or a machine counted twice")
			Expect(got).To(BeNumerically("<=", int(l.most)-within.withdrawals()), "a raise was made twice")
			Expect(got).To(BeNumerically(">=", len(left)), "machines that exist were withdrawn")
			Expect(c.begin()).To(Succeed())
			Expect(c.target("pool")).To(BeEquivalentTo(got))
			serves := 0
			for _, line := range c.said("pool") {
				if strings.HasSuffix(line, "Running") {
					serves++
				}
			}
			Expect(serves).To(Equal(len(left)))
			c.drop(l, left[0]) // and it stays named
			time.Sleep(5 * time.Minute)
			before := len(c.writes())
			time.Sleep(24 * time.Hour)
			Expect(c.writes()).To(HaveLen(before), "at rest nothing is written")
		})
	})

	It("end the same wherever the server is killed", func() {
		for name, act := range map[string]func(*cluster) error{
			"raise":    func(c *cluster) error { return c.wish(8) },
			"remove":   func(c *cluster) error { return c.remove("pool", "node-b", "requested://d") },
			"withdraw": func(c *cluster) error { return c.decrease("pool", -3) },
		} {
			for _, counted := range []int32{0, 2} { // of a reserve, in replicas
				By(fmt.Sprint(name, ", counted: ", counted))
				scenario := storm.Scenario{
					Options: sim.Options{Seed: 3}, Apart: true,
					Story: func(w *storm.World) {
						c := adopt(w)
						defer c.hangUp()
						c.pool("pool", "1:9", 6+counted, func(d *v1alpha1.MachineDeployment) {
							if counted > 0 {
								d.Annotations[v1alpha1.AppliedExcessAnnotation] = fmt.Sprintf("2,max=9,counted=%d,replicas=8", counted)
							}
						})
						c.running("pool", "a", "b", "c")
						c.machine("pool", "d", mcm.MachinePending)
						w.Start(serving, server(c.wire))
						c.lull()
						for range 3 { // whether it was answered or not, the caller repeats until it has what it wants
							for begun := time.Now(); c.loop(act) != nil; time.Sleep(10 * time.Second) {
								Expect(time.Since(begun)).To(BeNumerically("<", longest), "the caller never has what it wants")
							}
						}
					},
					End: func(w *storm.World) any {
						c := &cluster{World: w}
						d := c.deployment("pool")
						return fmt.Sprint(pool.Requested(d), pool.AppliedOf(d, d.Spec.Replicas), c.named("pool"), len(c.Objects(machinesGVR)))
					},
				}
				Expect(storm.CrashPoints(suite, scenario, serving)).To(Succeed())
			}
		}
	})
})

// loop is one loop of the caller.
func (c *cluster) loop(act func(*cluster) error) error {
	if err := c.begin(); err != nil {
		return err
	}
	return act(c)
}

// wish raises to the size that some pods need.
func (c *cluster) wish(size int32) error {
	ctx, cancel := waiting()
	defer cancel()
	response, err := c.NodeGroupTargetSize(ctx, targetOf("pool"))
	if err != nil || response.TargetSize >= size {
		return err
	}
	return c.increase("pool", size-response.TargetSize)
}

// withdraw asks, until it is answered, for what is requested beyond the machines that are there to be withdrawn, and for some of those, too.
func (c *cluster) withdraw(there, more int) {
	GinkgoHelper()
	for begun := time.Now(); ; time.Sleep(10 * time.Second) {
		before := world.Requested(c.deployment("pool"))
		err := c.decrease("pool", int32(there-more-before))
		Expect(world.Requested(c.deployment("pool"))).To(BeNumerically(">=", min(before, there)), "machines that exist were withdrawn")
		if err == nil {
			return
		}
		Expect(code(err)).To(BeElementOf(codes.Unavailable, codes.Aborted, codes.DeadlineExceeded, codes.PermissionDenied, codes.FailedPrecondition, codes.NotFound), "%v", err)
		Expect(time.Since(begun)).To(BeNumerically("<", longest), "a withdrawal is never answered")
	}
}

// others raise replicas, as the release controller or a person does.
func (c *cluster) others(delta int32) {
	GinkgoHelper()
	for {
		d := c.deployment("pool")
		body := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"replicas":%d}}`, d.ResourceVersion, d.Spec.Replicas+delta)
		if _, err := c.ours.MachineDeployments(ns).Patch(context.Background(), "pool", types.MergePatchType, body, metav1.PatchOptions{}); err == nil {
			return
		}
	}
}

func targetOf(id string) *pb.NodeGroupTargetSizeRequest {
	return &pb.NodeGroupTargetSizeRequest{Id: id}
}

const (
	// spares is the reserve of a storm, and narrow the max of every other one, which is reached.
	spares = 4
	narrow = 28
)

// reserved gives a new pool of this max a reserve that replicas do not include.
func reserved(limit int32) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) {
		d.Annotations[v1alpha1.AppliedExcessAnnotation] = v1alpha1.AppliedExcess{Machines: spares, Max: &limit}.String()
	}
}

// recount has replicas include the reserve, as far as there is room below max, or not, in one write as the controller of MachineDeployments does.
func (c *cluster) recount(counted bool) {
	GinkgoHelper()
	for {
		d := c.deployment("pool")
		a, r := pool.AppliedOf(d, d.Spec.Replicas), pool.Requested(d)
		if a.Counted = 0; counted {
			a.Counted = max(0, min(a.Excess, narrow-int(r)))
		}
		pool.Apply(d, r, a)
		if _, err := c.ours.MachineDeployments(ns).Update(context.Background(), d, metav1.UpdateOptions{}); err == nil {
			c.Strike(map[bool]string{true: "change to inclusive", false: "change to additive"}[counted])
			return
		}
	}
}

// books watch the server's writes where there is a reserve: replicas do not pass max, and workload takes reserve machines that replicas
// include where there is no room for it otherwise, each once.
type books struct {
	limit int32
	mu    sync.Mutex
	last  *v1alpha1.MachineDeployment
	wrong []string
	// withdrawn counts the machines that were withdrawn.
	withdrawn int
}

func (c *cluster) audited(limit int32) *books {
	b := &books{limit: limit}
	c.AfterWrite(func(w sim.Write) error {
		if w.Resource != "machinedeployments" || w.Subresource != "" {
			return nil
		}
		d := world.Decoded[v1alpha1.MachineDeployment](w.Object)
		b.mu.Lock()
		defer b.mu.Unlock()
		if w.User == serving && b.last != nil {
			b.enter(c, d)
		}
		b.last = d
		return nil
	})
	return b
}

func (b *books) enter(c *cluster, d *v1alpha1.MachineDeployment) {
	was, is := pool.AppliedOf(b.last, b.last.Spec.Replicas), pool.AppliedOf(d, d.Spec.Replicas)
	by, taken := world.Requested(d)-world.Requested(b.last), was.Counted-is.Counted
	switch {
	case by < 0 && d.Annotations[machineutils.TriggerDeletionByMCM] == b.last.Annotations[machineutils.TriggerDeletionByMCM]:
		c.Strike("withdrawal")
		b.withdrawn -= by
	case taken > 0:
		c.Strike("reserve machines taken")
	case by > 0 && was.Counted > 0:
		c.Strike("inclusive raise")
	case by > 0:
		c.Strike("additive raise")
	}
	if was.Excess-is.Excess != taken || taken < 0 || taken > 0 && d.Spec.Replicas != b.limit || d.Spec.Replicas > b.limit {
		b.wrong = append(b.wrong, fmt.Sprintf("replicas from %d to %d, %+v became %+v", b.last.Spec.Replicas, d.Spec.Replicas, was, is))
	}
}

// withdrawals is how many machines have been withdrawn so far.
func (b *books) withdrawals() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.withdrawn
}

// restored begins anew with what a backup contains, which was made after so many machines had been withdrawn.
func (b *books) restored(withdrawn int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last, b.withdrawn = nil, withdrawn
}

func (b *books) verdict() {
	GinkgoHelper()
	b.mu.Lock()
	defer b.mu.Unlock()
	Expect(b.wrong).To(BeEmpty())
}

// remembered is how much a server keeps beside its informers.
func (s *Server) remembered() map[string]int {
	m := s.memory
	return map[string]int{
		"written": m.written.Len(), "named": len(m.recentNames.last), "lastNodes": len(m.lastNodes.last), "callerView": len(m.callerView.groups), "staleMarks": len(m.staleMarks.since), "failures": len(m.failures.since), "reports": len(m.reports.since),
		"locks": len(s.locks.byGroup),
	}
}

var _ = Describe("A soak", func() {
	It("of thousands of objects that come and go leaves nothing behind", Label("soak"), func() {
		const pools = 50 // of a MachineDeployment, a MachineSet, a Machine and a Node each
		rounds := storm.Soak(10_000, 4*pools)
		play(func(c *cluster) {
			s := c.wire.server
			ctx, core := context.Background(), c.core.CoreV1().Nodes()
			for round := range rounds {
				var names []string
				for i := range pools {
					name := fmt.Sprintf("pool-%d-%d", round, i)
					names = append(names, name)
					c.pool(name, "0:9", 1)
					c.running(name, name)
				}
				time.Sleep(time.Minute + time.Second) // until the Nodes can be templates
				Expect(c.begin()).To(Succeed())
				for _, name := range names {
					c.patchNode("node-"+name, `{"metadata":{"labels":{"seen":"again"}}}`)
				}
				c.lull()
				Expect(s.remembered()).To(HaveKeyWithValue("lastNodes", pools), "it does remember")
				for _, name := range names {
					node := told(standIn("node-" + name))
					node.Annotations = map[string]string{"evenkeel.machine.sapcloud.io/reserve": builders.NoonText}
					Expect(c.groupOf(node)).To(BeEmpty())
					Expect(c.increase(name, 1)).To(Succeed())
					_, err := c.NodeGroupDeleteNodes(ctx, &pb.NodeGroupDeleteNodesRequest{Id: name, Nodes: []*pb.ExternalGrpcNode{node}})
					Expect(err).NotTo(HaveOccurred())
				}
				Expect(s.remembered()).To(HaveKeyWithValue("staleMarks", pools), "it does remember")
				for _, name := range names {
					Expect(core.Delete(ctx, "node-"+name, metav1.DeleteOptions{})).To(Succeed())
					Expect(c.ours.Machines(ns).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
					Expect(c.ours.MachineSets(ns).Delete(ctx, name+"-1", metav1.DeleteOptions{})).To(Succeed())
					Expect(c.ours.MachineDeployments(ns).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
				}
				c.lull()
			}
			c.pool("last", "0:9", 1)
			time.Sleep(time.Hour)
			for kept, n := range s.remembered() {
				Expect(n).To(BeNumerically("<=", 1), kept)
			}
		})
	})
})
