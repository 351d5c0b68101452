// SPDX-License-Identifier: Apache-2.0

package machinedeployment_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machines "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var (
	poolGVR = mcm.SchemeGroupVersion.WithResource("machinedeployments")
	nodeGVR = corev1.SchemeGroupVersion.WithResource("nodes")
)

// updated is a cluster with a MachineDeployment called pool, whose machines are updated in place.
type updated struct {
	*cluster
	agents *world.Updates
}

func updating(c *cluster) *updated {
	u := &updated{c, &world.Updates{Waker: c.Waker, Time: 30 * time.Second}}
	c.World.Start("agents", world.Actor{Waker: c.Waker, Delay: time.Second, Reconcile: u.agents.Reconcile}.Run)
	return u
}

func (u *updated) pools() machines.MachineDeploymentInterface {
	return u.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace)
}

func (u *updated) nodes() corev1client.NodeInterface {
	core, _ := world.Clients(u.ConfigFor("user"))
	return core.CoreV1().Nodes()
}

// begin creates the MachineDeployment.
func (u *updated) begin(replicas int32, how mcm.OrchestrationType, surge, unavailable int) {
	GinkgoHelper()
	most, fewer := intstr.FromInt(surge), intstr.FromInt(unavailable)
	d := &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "pool"}}
	d.Spec.Replicas = replicas
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "pool"}}
	d.Spec.Template.Labels = map[string]string{"name": "pool"}
	d.Spec.Template.Spec.Class = mcm.ClassSpec{Kind: "MachineClass", Name: fixture.Class}
	d.Spec.Strategy = mcm.MachineDeploymentStrategy{
		Type: mcm.InPlaceUpdateMachineDeploymentStrategyType,
		InPlaceUpdate: &mcm.InPlaceUpdateMachineDeployment{
			UpdateConfiguration: mcm.UpdateConfiguration{MaxSurge: &most, MaxUnavailable: &fewer}, OrchestrationType: how,
		},
	}
	world.Create(u.pools(), d)
}

// roll changes the template so that machines have to be updated.
func (u *updated) roll(class string) {
	GinkgoHelper()
	world.Patch(u.pools(), "pool", `{"spec":{"template":{"spec":{"class":{"name":%q}}}}}`, class)
}

func (u *updated) resize(replicas int) {
	GinkgoHelper()
	world.Patch(u.pools(), "pool", `{"spec":{"replicas":%d}}`, replicas)
}

func (u *updated) failUpdates(fail bool) { u.Set(func() { u.agents.Fail = fail }) }

// names are those of all machines that stay.
func (u *updated) names() (names []string) {
	for _, m := range world.List[mcm.Machine](u, machineGVR) {
		if m.DeletionTimestamp == nil {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names
}

// rests expects that all machines belong to the newest MachineSet and run, that no mark is left, and that
// nothing is written.
func (u *updated) rests(replicas int) {
	GinkgoHelper()
	d := world.Stored[machine.MachineDeployment](u, poolGVR, fixture.Namespace, "pool")
	Expect(d.Status).To(And(HaveField("Replicas", BeEquivalentTo(replicas)), HaveField("UpdatedReplicas", BeEquivalentTo(replicas)),
		HaveField("AvailableReplicas", BeEquivalentTo(replicas)), HaveField("UnavailableReplicas", BeEquivalentTo(0))))
	newest := ""
	for _, s := range world.List[mcm.MachineSet](u, setGVR) {
		if s.Spec.Template.Spec.Class.Name == d.Spec.Template.Spec.Class.Name {
			newest = s.Name
			Expect(s.Spec.Replicas).To(BeEquivalentTo(replicas))
		} else {
			Expect(s.Spec.Replicas).To(BeZero(), s.Name)
		}
	}
	all := u.machinesOf(newest)
	Expect(all).To(HaveLen(replicas))
	for _, m := range all {
		Expect(m.DeletionTimestamp).To(BeNil())
		Expect(m.Labels).NotTo(HaveKey(mcm.LabelKeyNodeUpdateResult))
		Expect(m.Status.CurrentStatus.Phase).To(Equal(mcm.MachineRunning))
		node := world.Stored[corev1.Node](u, nodeGVR, "", m.Name)
		Expect(node.Spec.Unschedulable).To(BeFalse())
		Expect(node.Labels).NotTo(Or(HaveKey(mcm.LabelKeyNodeSelectedForUpdate), HaveKey(mcm.LabelKeyNodeUpdateResult)))
	}
	since := len(u.Writes())
	time.Sleep(time.Hour)
	Expect(u.wrote(since)).To(BeEmpty())
}

// guard watches whether the controller selects so many machines that too few others serve. It knows
// each machine as it is stored.
type guard struct {
	machines map[string]*mcm.Machine
	nodes    map[string]*corev1.Node
	least    int
	broken   []string
	selected int
}

// watchSelections begins that for at least so many machines that serve.
func (u *updated) watchSelections(least int) *guard {
	g := &guard{machines: map[string]*mcm.Machine{}, nodes: map[string]*corev1.Node{}, least: least}
	for _, m := range world.List[mcm.Machine](u, machineGVR) {
		g.machines[m.Name] = m
	}
	for _, n := range world.List[corev1.Node](u, nodeGVR) {
		g.nodes[n.Name] = n
	}
	u.AfterWrite(func(w sim.Write) error {
		switch {
		case w.Effect == "":
		case w.Effect == sim.Deleted:
			delete(g.machines, w.Name)
			delete(g.nodes, w.Name)
		case w.Resource == "machines":
			m := world.Decoded[mcm.Machine](w.Object)
			g.machines[m.Name] = m
		case w.Resource == "nodes":
			g.observe(w, world.Decoded[corev1.Node](w.Object))
		}
		return nil
	})
	return g
}

func (g *guard) observe(w sim.Write, node *corev1.Node) {
	was := g.nodes[node.Name]
	g.nodes[node.Name] = node
	if w.User != name || was == nil || isSelected(was) || !isSelected(node) {
		return
	}
	g.selected++
	serving := 0
	for _, m := range g.machines {
		node := g.nodes[m.Name]
		over := node != nil && node.Labels[mcm.LabelKeyNodeUpdateResult] == mcm.LabelValueNodeUpdateSuccessful
		if m.DeletionTimestamp == nil && m.Status.CurrentStatus.Phase == mcm.MachineRunning && node != nil && (over || !isSelected(node)) {
			serving++
		}
	}
	if serving < g.least {
		g.broken = append(g.broken, fmt.Sprintf("%s: %s is selected, and %d others serve", time.Now().Format(time.TimeOnly), node.Name, serving))
	}
}

func isSelected(node *corev1.Node) bool {
	_, is := node.Labels[mcm.LabelKeyNodeSelectedForUpdate]
	return is
}

var _ = Describe("Updates in place", func() {
	It("I3, I6, I8: storms neither create nor delete a machine, and never too many are selected", func() {
		storm.Seeds(suite, 2, func(seed uint64) {
			u := updating(newCluster(sim.Options{Seed: seed}))
			defer u.End()
			random := rand.New(rand.NewPCG(seed, 4))
			replicas, unavailable := 3+random.IntN(4), 1+random.IntN(2)
			u.begin(int32(replicas), mcm.OrchestrationTypeAuto, 0, unavailable)
			u.WatchLists(seed%2 == 0, name)
			process := u.Start(name, controller)
			u.settle()
			begun := u.names()
			g := u.watchSelections(replicas - unavailable)
			u.Storm(random, process)
			for i := range 6 {
				u.roll(fmt.Sprint("class-", i%4)) // goes back to earlier ones, too
				u.failUpdates(random.IntN(3) == 0)
				time.Sleep(time.Duration(20+random.IntN(300)) * time.Second)
			}
			u.failUpdates(false)
			u.Calm()
			u.settle()
			Expect(u.names()).To(Equal(begun))
			u.rests(replicas)
			Expect(g.broken).To(BeEmpty())
			Expect(g.selected).NotTo(BeZero())
		})
	})

	It("D7, I2: storms end with all replicas in the newest set, whatever changes meanwhile", func() {
		storm.Seeds(suite, 2, func(seed uint64) {
			u := updating(newCluster(sim.Options{Seed: seed}))
			defer u.End()
			random := rand.New(rand.NewPCG(seed, 5))
			u.begin(3, mcm.OrchestrationTypeAuto, random.IntN(2), 1+random.IntN(2))
			process := u.Start(name, controller)
			u.settle()
			u.Storm(random, process)
			for range 12 {
				switch random.IntN(4) {
				case 0:
					u.resize(random.IntN(7))
				case 1:
					u.roll(fmt.Sprint("class-", random.IntN(3)))
				case 2:
					u.failUpdates(random.IntN(2) == 0)
				case 3:
					if names := u.names(); len(names) > 0 {
						world.Delete(u.machines(), names[random.IntN(len(names))])
					}
				}
				time.Sleep(time.Duration(random.IntN(120)) * time.Second)
			}
			u.failUpdates(false)
			u.resize(4)
			u.Calm()
			u.settle()
			u.rests(4)
		})
	})

	It("I3, I6: end the same wherever the controller is killed, with the same machines", func() {
		Expect(storm.CrashPoints(suite, storm.Scenario{
			Options: sim.Options{Seed: 1}, Apart: true,
			Story: func(w *storm.World) {
				u := updating(adopt(w))
				u.begin(2, mcm.OrchestrationTypeAuto, 0, 1)
				u.Start(name, controller)
				u.settle()
				u.roll("other")
				u.settle()
			},
			End: func(w *storm.World) any {
				u := &updated{cluster: &cluster{World: w}}
				var end []string
				for _, s := range world.List[mcm.MachineSet](u, setGVR) {
					end = append(end, fmt.Sprint(s.Spec.Template.Spec.Class.Name, s.Spec.Replicas, s.Status.Replicas, s.Status.ReadyReplicas))
				}
				for _, m := range world.List[mcm.Machine](u, machineGVR) {
					labels := maps.Clone(m.Labels)
					delete(labels, mcm.NodeLabelKey)
					node := world.Stored[corev1.Node](u, nodeGVR, "", m.Name)
					end = append(end, fmt.Sprint(labels, m.Spec.Class.Name, m.Status.CurrentStatus.Phase, node.Spec.Unschedulable, node.Spec.Taints, len(node.Labels), node.Annotations))
				}
				slices.Sort(end)
				gone := slices.ContainsFunc(w.Writes(), func(write sim.Write) bool { return write.Resource == "machines" && write.Verb == "delete" })
				return fmt.Sprint(end, gone)
			},
		}, name)).To(Succeed())
	})

	It("I4: count a machine that has moved only once the set that it has left does not count it", func() {
		play(func(c *cluster) {
			u := updating(c)
			u.begin(2, mcm.OrchestrationTypeAuto, 0, 1)
			u.settle()
			first := world.List[mcm.MachineSet](u, setGVR)[0].Name
			moved, refuses := false, true
			u.AfterWrite(func(w sim.Write) error {
				moved = moved || w.Resource == "machines" && world.Decoded[mcm.Machine](w.Object).Labels[mcm.LabelKeyNodeUpdateResult] != ""
				return nil
			})
			u.OnWrite(func(w sim.Write) error {
				if refuses && moved && w.Name == first && w.Subresource == "" {
					return apierrors.NewInternalError(errors.New("no"))
				}
				return nil
			})
			u.roll("other")
			time.Sleep(10 * time.Minute)
			sizes := map[string]int32{}
			for _, s := range world.List[mcm.MachineSet](u, setGVR) {
				sizes[s.Name] = s.Spec.Replicas
			}
			Expect(sizes).To(And(HaveLen(2), HaveKeyWithValue(first, int32(2)), ContainElement(int32(0))))
			u.Set(func() { refuses = false })
			u.settle()
			u.rests(2)
		})
	})

	It("I9: wait until the machine controller knows that an update has not failed after all", func() {
		play(func(c *cluster) {
			u := updating(c)
			u.failUpdates(true)
			u.begin(2, mcm.OrchestrationTypeAuto, 0, 1)
			u.settle()
			u.roll("other")
			u.settle()
			Expect(world.List[mcm.Machine](u, machineGVR)).To(ContainElement(HaveField("Status.CurrentStatus.Phase", mcm.MachineInPlaceUpdateFailed)))
			u.failUpdates(false)
			u.settle()
			u.rests(2)
		})
	})

	It("I7: go on at once where the store of Nodes is later than that of Machines", func() {
		play(func(c *cluster) {
			u := updating(c)
			u.begin(2, mcm.OrchestrationTypeAuto, 0, 1)
			u.settle()
			u.Lag("nodes", func() time.Duration { return 5 * time.Second }, name)
			u.roll("other")
			time.Sleep(3 * time.Minute)
			u.rests(2)
		})
	})

	It("I5: change sizes and the status while a machine boots", func() {
		play(func(c *cluster) {
			u := updating(c)
			u.begin(2, mcm.OrchestrationTypeAuto, 0, 1)
			time.Sleep(5 * time.Second)
			u.resize(3)
			time.Sleep(5 * time.Second)
			d := world.Stored[machine.MachineDeployment](u, poolGVR, fixture.Namespace, "pool")
			Expect(d.Status.Replicas).To(BeEquivalentTo(3))
			Expect(d.Finalizers).To(ConsistOf(plan.Finalizer))
		})
	})

	It("I2: give machines to a set that is the newest again", func() {
		play(func(c *cluster) {
			u := updating(c)
			u.begin(2, mcm.OrchestrationTypeAuto, 0, 1)
			u.settle()
			u.roll("other")
			u.settle()
			u.roll(fixture.Class)
			u.settle()
			u.resize(3)
			world.Delete(u.machines(), u.names()[0])
			u.settle()
			u.rests(3)
		})
	})

	It("D7, I11: scale while people select machines one by one", func() {
		play(func(c *cluster) {
			u := updating(c)
			u.begin(3, mcm.OrchestrationTypeManual, 0, 1)
			u.settle()
			u.roll("other")
			u.settle()
			selectOne := func() {
				for _, node := range world.List[corev1.Node](u, nodeGVR) {
					if node.Labels[mcm.LabelKeyNodeCandidateForUpdate] != "" {
						world.Patch(u.nodes(), node.Name, `{"metadata":{"labels":{%q:"true"}}}`, mcm.LabelKeyNodeSelectedForUpdate)
						u.settle()
						return
					}
				}
				Fail("no candidate is left")
			}
			selectOne()
			begun := u.names()
			u.resize(4)
			u.settle()
			Expect(u.names()).To(And(HaveLen(4), ContainElements(begun)))
			u.resize(3)
			u.settle()
			Expect(u.names()).To(HaveLen(3))
			selectOne()
			u.rests(3)
		})
	})
})
