// SPDX-License-Identifier: Apache-2.0

package machinedeployment_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment"
	"github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// keeping is the program under test with reserves. Watched starts what is read of the target cluster.
func keeping(watched func(*target.Informers) world.Informers) storm.Program {
	return keepingWith(watched, func(*Controller) {})
}

// keepingWith shows the controller, too.
func keepingWith(watched func(*target.Informers) world.Informers, show func(*Controller)) storm.Program {
	return func(ctx context.Context, config *rest.Config) error {
		core, ours := world.Clients(config)
		machines, nodes := stores.New(ours, fixture.Namespace), target.New(core, nil)
		near, far := world.ControlCluster(ours), world.TargetCluster(core)
		settings := machinetaint.Settings{Effects: []corev1.TaintEffect{corev1.TaintEffectNoSchedule}, SurplusPatience: 10 * time.Minute, BootPatience: 15 * time.Minute}
		c, err := New(Clients{ours.MachineV1alpha1(), core.CoreV1()}, Informers{Machines: machines, Target: nodes}, &record.FakeRecorder{}, Options{
			Cluster: near, Target: far, Settings: plan.Settings{ProtectInRollout: true, SafetyUp: 2, SafetyDown: 1}, Reserve: settings,
		})
		if err != nil {
			return err
		}
		show(c)
		world.Process{Clusters: []*reachability.Cluster{near, far}, Informers: []world.Informers{machines, watched(nodes)}}.Run(ctx, c.Run)
		return nil
	}
}

func everything(n *target.Informers) world.Informers { return n }

// reserved is a simulated cluster with a MachineDeployment that is called pool.
type reserved struct {
	*cluster
	core kubernetes.Interface
}

// playReserved runs body on a cluster with a MachineDeployment that has its machines, a pod on each that serves.
func playReserved(o sim.Options, replicas int32, change func(*v1alpha1.MachineDeployment), program storm.Program, body func(c *reserved)) {
	storm.Bubble(suite, func() {
		c := adoptReserved(storm.NewApart(o))
		defer c.End()
		c.Start(name, program)
		world.Create(c.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), world.MachineDeployment("pool", replicas, change))
		c.settle()
		body(c)
	})
}

// adoptReserved returns a cluster whose Nodes register with what their machines' templates say.
func adoptReserved(w *storm.World) *reserved {
	c := &reserved{cluster: adopt(w)}
	c.core = kubernetes.NewForConfigOrDie(c.ConfigFor("user"))
	c.Set(func() { c.cloud.ChangeNode = taintLikeMachine })
	return c
}

// taintLikeMachine gives a Node the mark of its Machine.
func taintLikeMachine(m *mcm.Machine, node *corev1.Node) {
	template := m.Spec.NodeTemplateSpec
	node.Spec.Taints, node.Annotations = slices.Clone(template.Spec.Taints), maps.Clone(template.Annotations)
}

// spared asks for an excess.
func spared(x int32) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) { d.Spec.ExcessReplicas = &x }
}

func (c *reserved) edit(format string, args ...any) {
	GinkgoHelper()
	world.Patch(c.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), "pool", format, args...)
}

// these returns the names of machines that stay, in reserve or not.
func (c *reserved) these(inReserve bool) (names []string) {
	for _, m := range world.List[mcm.Machine](c, machineGVR) {
		if m.DeletionTimestamp == nil && pool.Marked(m) == inReserve {
			names = append(names, m.Name)
		}
	}
	return names
}

func (c *reserved) serving() []string { return c.these(false) }
func (c *reserved) spare() []string   { return c.these(true) }

// bind creates a pod that runs on a Node, and that would be created again elsewhere.
func (c *reserved) bind(nodes ...string) {
	GinkgoHelper()
	for _, node := range nodes {
		world.Create(c.core.CoreV1().Pods(fixture.Namespace), fixture.Pod("on-"+node, func(p *corev1.Pod) {
			p.Spec.NodeName = node
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "2", Controller: new(true)}}
		}))
	}
}

// isBound reports whether a pod of bind runs on a Node.
func (c *reserved) isBound(node string) bool {
	return slices.ContainsFunc(world.List[corev1.Pod](c, corev1.SchemeGroupVersion.WithResource("pods")), func(p *corev1.Pod) bool { return p.Name == "on-"+node })
}

// isOpen reports whether pods may be bound to a Node.
func (c *reserved) isOpen(node string) bool {
	GinkgoHelper()
	return !pool.HasReserveTaint(world.Stored[corev1.Node](c, nodeGVR, "", node).Spec.Taints)
}

// slow makes requests of the controller take effect late, or be answered late.
func (c *reserved) slow(verb, resource string, before, after time.Duration) {
	c.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) {
		if r.User == name && r.Verb == verb && r.Resource == resource && r.Subresource == "" {
			return before, after
		}
		return 2 * time.Millisecond, 2 * time.Millisecond
	})
}

// order returns the kinds of objects with a name that the controller has written since a number of writes.
func (c *reserved) order(since int, object string) (kinds []string) {
	for _, w := range world.WritesOf(c.World, name, since) {
		if w.Name == object && w.Verb == "patch" && w.Subresource == "" {
			kinds = append(kinds, w.Resource)
		}
	}
	return kinds
}

var _ = Describe("A MachineDeployment with a reserve", func() {
	usual := sim.Options{Seed: 1}

	It("has it, says so, and then nothing is written", func() {
		playReserved(usual, 2, spared(2), keeping(everything), func(c *reserved) {
			Expect(c.serving()).To(HaveLen(2))
			Expect(c.spare()).To(HaveLen(2))
			for _, node := range c.spare() {
				Expect(c.isOpen(node)).To(BeFalse())
			}
			d := world.Stored[v1alpha1.MachineDeployment](c, deploymentGVR, fixture.Namespace, "pool")
			Expect(d.Status.ReadyExcessReplicas).To(BeEquivalentTo(2))
			since := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.wrote(since)).To(BeEmpty())
		})
	})

	It("lets a machine serve on which a pod arrives after its Node was closed, and before it is in reserve", func() {
		playReserved(usual, 3, spared(0), keeping(everything), func(c *reserved) {
			var marked []string
			c.AfterWrite(func(w sim.Write) error {
				if w.Resource == "machines" && w.User == name && w.Verb == "patch" && pool.Marked(world.Decoded[mcm.Machine](w.Object)) {
					marked = append(marked, w.Name)
				}
				return nil
			})
			c.slow("patch", "nodes", 0, 2*time.Second)
			c.edit(`{"spec":{"replicas":2,"excessReplicas":1}}`)
			time.Sleep(time.Second)
			closed := slices.DeleteFunc(c.serving(), c.isOpen)
			Expect(closed).To(HaveLen(1))
			c.bind(closed...)
			c.settle()
			Expect(marked).NotTo(ContainElement(closed[0]))
			Expect(c.isOpen(closed[0])).To(BeTrue())
			Expect(c.serving()).To(And(HaveLen(2), ContainElement(closed[0])))
			Expect(c.spare()).To(HaveLen(1), "another one, which is empty")
		})
	})

	It("keeps a machine in reserve on which a pod runs that its cache does not show yet", func() {
		playReserved(usual, 1, spared(1), keeping(everything), func(c *reserved) {
			c.bind(c.serving()...)
			c.settle()
			spare := c.spare()
			c.Hold("pods", name)
			c.bind(spare...)
			c.edit(`{"spec":{"excessReplicas":0}}`)
			time.Sleep(time.Minute)
			Expect(c.spare()).To(Equal(spare))
			c.Release("pods", name)
			time.Sleep(10 * time.Second)
			Expect(c.spare()).To(BeEmpty())
			Expect(c.serving()).To(HaveLen(2), "until one of them is empty, or a while has passed")
			Expect(c.isOpen(spare[0])).To(BeTrue())
		})
	})

	It("deletes a machine in reserve on which only pods run that its cluster runs everywhere", func() {
		playReserved(usual, 1, spared(1), keeping(everything), func(c *reserved) {
			c.bind(c.serving()...)
			world.Create(c.core.CoreV1().Pods(fixture.Namespace), fixture.Pod("agent", func(p *corev1.Pod) {
				p.Spec.NodeName = c.spare()[0]
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "1", Controller: new(true)}}
			}))
			c.edit(`{"spec":{"excessReplicas":0}}`)
			c.settle()
			Expect(c.spare()).To(BeEmpty())
			Expect(c.serving()).To(HaveLen(1))
		})
	})

	It("releases machines while slow requests create others", func() {
		playReserved(usual, 2, spared(1), keeping(everything), func(c *reserved) {
			c.bind(c.serving()...)
			spare := c.spare()[0]
			c.slow("create", "machines", time.Minute, 0)
			c.edit(`{"spec":{"excessReplicas":3}}`)
			time.Sleep(5 * time.Second)
			since := len(c.Writes())
			c.edit(`{"spec":{"replicas":3}}`)
			time.Sleep(500 * time.Millisecond)
			Expect(c.serving()).To(ContainElement(spare))
			Expect(c.isOpen(spare)).To(BeTrue())
			Expect(c.order(since, spare)).To(HaveExactElements("nodes", "machines"), "pods wait for the Node")
			Expect(world.List[mcm.Machine](c, machineGVR)).To(HaveLen(3))
			c.settle()
			Expect(c.serving()).To(HaveLen(3))
			Expect(c.spare()).To(HaveLen(3))
		})
	})

	It("releases a machine while a slow request deletes it, which fails then, before its Node is open", func() {
		playReserved(usual, 2, spared(2), keeping(everything), func(c *reserved) {
			c.bind(c.serving()...)
			c.settle()
			spare := c.spare()
			c.slow("delete", "machines", 20*time.Second, 0)
			c.edit(`{"spec":{"excessReplicas":0}}`)
			time.Sleep(5 * time.Second)
			since := len(c.Writes())
			c.edit(`{"spec":{"replicas":3}}`)
			time.Sleep(500 * time.Millisecond)
			released := slices.DeleteFunc(slices.Clone(spare), func(name string) bool { return !slices.Contains(c.serving(), name) })
			Expect(released).To(HaveLen(1))
			Expect(c.isOpen(released[0])).To(BeTrue())
			Expect(c.order(since, released[0])).To(HaveExactElements("machines", "nodes"))
			c.settle()
			Expect(c.serving()).To(And(HaveLen(3), ContainElement(released[0])))
			Expect(c.spare()).To(BeEmpty())
		})
	})

	It("releases machines, and does nothing else of the plan, while slow requests do the rest", func() {
		playReserved(usual, 2, spared(1), keeping(everything), func(c *reserved) {
			c.bind(c.serving()...)
			c.settle()
			spare := c.spare()[0]
			c.slow("patch", "machinesets", time.Minute, 0)
			c.edit(`{"spec":{"replicas":3,"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{"new":"yes"}}}}}}}`)
			time.Sleep(500 * time.Millisecond)
			Expect(c.serving()).To(ContainElement(spare))
			Expect(c.isOpen(spare)).To(BeTrue())
			labeled := func(m *mcm.Machine) bool { return m.Spec.NodeTemplateSpec.Labels["new"] == "yes" }
			machines := world.List[mcm.Machine](c, machineGVR)
			Expect(slices.IndexFunc(machines, func(m *mcm.Machine) bool { return m.Name != spare && labeled(m) })).To(Equal(-1))
			c.settle()
			machines = world.List[mcm.Machine](c, machineGVR)
			Expect(machines).To(HaveLen(4))
			Expect(machines).To(HaveEach(Satisfy(labeled)))
		})
	})

	It("releases a machine again at once whose release has failed", func() {
		playReserved(usual, 2, spared(0), keeping(everything), func(c *reserved) {
			c.Set(func() { c.cloud.BootBlocked = func(*mcm.Machine) bool { return true } }) // so that nothing else wakes it
			c.edit(`{"spec":{"excessReplicas":1}}`)
			time.Sleep(time.Minute)
			spare := c.spare()
			Expect(spare).To(HaveLen(1))
			c.slow("patch", "machines", 30*time.Second, 0)
			failed := false
			c.OnWrite(func(w sim.Write) error {
				if w.User == name && w.Resource == "machines" && w.Name == spare[0] && !failed {
					failed = true
					return errors.New("connection reset")
				}
				return nil
			})
			c.edit(`{"spec":{"replicas":3}}`)
			time.Sleep(65 * time.Second)
			Expect(failed).To(BeTrue())
			Expect(c.serving()).To(ContainElement(spare[0]))
		})
	})

	It("releases a machine at once that another client has written, however late the watch of Machines is", func() {
		playReserved(usual, 2, spared(1), keeping(everything), func(c *reserved) {
			c.bind(c.serving()...)
			c.settle()
			spare := c.spare()[0]
			c.Lag("machines", sim.Constantly(time.Minute), name)
			world.Patch(c.machines(), spare, `{"metadata":{"annotations":{"key":"value"}}}`)
			c.edit(`{"spec":{"replicas":3}}`)
			time.Sleep(2 * time.Second)
			Expect(c.serving()).To(ContainElement(spare))
		})
	})

	It("gets its first machines together with its set, where nobody asks for a reserve", func() {
		playReserved(usual, 2, func(*v1alpha1.MachineDeployment) {}, keeping(everything), func(c *reserved) {
			var verbs []string
			for _, w := range world.WritesOf(c.World, name, 0) {
				verbs = append(verbs, w.Verb+" "+w.Resource)
			}
			i := slices.Index(verbs, "create machinesets")
			Expect(verbs[i+1:i+3]).To(HaveEach("create machines"), "in one plan")
		})
	})

	It("has as many machines as are asked for, and those that serve the first of them, though several are created at once", func() {
		playReserved(usual, 3, spared(4), keeping(everything), func(c *reserved) {
			Expect(c.serving()).To(HaveLen(3))
			Expect(c.spare()).To(HaveLen(4))
			most, least := world.MostMachines(c.World), len(c.serving())
			c.edit(`{"spec":{"replicas":9}}`)
			c.AfterWrite(func(w sim.Write) error {
				if w.Resource == "machines" && w.Verb == "create" && !pool.Marked(world.Decoded[mcm.Machine](w.Object)) {
					least++
				}
				return nil
			})
			c.settle()
			Expect(*most).To(Equal(13))
			Expect(least).To(Equal(5), "two are created to serve, and four were in reserve")
		})
	})

	It("deletes no machine whose Node is open already because it is released", func() {
		playReserved(usual, 2, spared(1), keeping(everything), func(c *reserved) {
			c.bind(c.serving()...)
			c.settle()
			spare := c.spare()[0]
			delays := map[string]time.Duration{"patch machinesets": 5 * time.Second, "patch machines": 30 * time.Second, "delete machines": 5 * time.Second}
			c.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) {
				if r.User == name && r.Subresource == "" {
					return delays[r.Verb+" "+r.Resource], 0
				}
				return 2 * time.Millisecond, 0
			})
			c.edit(`{"spec":{"excessReplicas":0}}`)
			time.Sleep(time.Second)
			c.edit(`{"spec":{"replicas":3}}`)
			time.Sleep(time.Second)
			Expect(c.isOpen(spare)).To(BeTrue())
			time.Sleep(6 * time.Second)
			c.bind(spare)
			c.settle()
			Expect(c.serving()).To(And(HaveLen(3), ContainElement(spare)))
		})
	})

	It("is at rest with an API server that drops its fields", func() {
		kinds := slices.Concat(sim.Core, sim.Machine)
		for i := range kinds {
			if kinds[i].Name == "machinedeployments" {
				kinds[i].Known = &sim.Known{
					Spec:   []string{"replicas", "selector", "template", "strategy", "minReadySeconds", "paused", "revisionHistoryLimit", "progressDeadlineSeconds"},
					Status: []string{"conditions", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas", "observedGeneration", "failedMachines"},
				}
			}
		}
		wish := func(d *v1alpha1.MachineDeployment) { d.Annotations[v1alpha1.BoundsAnnotation] = "1:9:2" }
		playReserved(sim.Options{Seed: 1, Resources: kinds}, 1, wish, keeping(everything), func(c *reserved) {
			Expect(c.spare()).To(HaveLen(2))
			since := len(c.Writes())
			time.Sleep(24 * time.Hour)
			Expect(c.wrote(since)).To(BeEmpty())
			c.edit(`{"metadata":{"annotations":{%q:"1:9:1"}}}`, v1alpha1.BoundsAnnotation)
			c.settle()
			Expect(c.spare()).To(HaveLen(1))
		})
	})

	It("gets machines while the target cluster does not answer, and loses none but those that were never created", func() {
		playReserved(usual, 1, spared(1), keeping(everything), func(c *reserved) {
			c.bind(c.serving()...)
			spare := c.spare()
			c.Target.Silence(true, name)
			time.Sleep(10 * time.Minute)
			c.Set(func() { c.cloud.Refused = func(m *mcm.Machine) bool { return true } })
			since := len(c.Writes())
			c.edit(`{"spec":{"excessReplicas":3}}`)
			time.Sleep(500 * time.Millisecond)
			Expect(c.spare()).To(HaveLen(3))
			time.Sleep(30 * time.Second)
			Expect(c.spare()).To(Equal(spare), "those go that cannot be created")
			c.edit(`{"spec":{"excessReplicas":0}}`)
			time.Sleep(10 * time.Minute)
			Expect(c.spare()).To(Equal(spare))
			Expect(c.wrote(since)).NotTo(ContainElement(ContainSubstring("nodes")))
			d := world.Stored[v1alpha1.MachineDeployment](c, deploymentGVR, fixture.Namespace, "pool")
			Expect(machinetaint.Condition(d)).To(HaveField("Reason", "ClusterUnreachable"))
			c.Target.Silence(false, name)
			c.settle()
			Expect(c.spare()).To(BeEmpty())
			Expect(c.serving()).To(HaveLen(1))
		})
	})

	It("needs no pods before it has a reserve, and decides nothing that depends on them until they are read", func() {
		nodesAlone := keeping(func(n *target.Informers) world.Informers { return onlyNodes{n} })
		playReserved(usual, 2, spared(0), nodesAlone, func(c *reserved) {
			Expect(c.serving()).To(HaveLen(2))
			c.edit(`{"spec":{"replicas":1}}`)
			c.settle()
			Expect(c.serving()).To(HaveLen(1))
			c.edit(`{"spec":{"replicas":2,"excessReplicas":1}}`)
			time.Sleep(time.Hour)
			Expect(c.serving()).To(HaveLen(2))
			Expect(c.spare()).To(HaveLen(1))
			c.edit(`{"spec":{"excessReplicas":0}}`)
			time.Sleep(time.Hour)
			Expect(c.spare()).To(HaveLen(1))
			d := world.Stored[v1alpha1.MachineDeployment](c, deploymentGVR, fixture.Namespace, "pool")
			Expect(machinetaint.Condition(d).Message).To(ContainSubstring("the pods of the target cluster have not been read yet"))
		})
	})

	It("remembers nothing of a reserve that has gone", func() {
		var c0 *Controller
		playReserved(usual, 1, spared(1), keepingWith(everything, func(c *Controller) { c0 = c }), func(c *reserved) {
			Expect(c0.Remembered()).To(Equal(1))
			c.edit(`{"spec":{"excessReplicas":0}}`)
			c.settle()
			Expect(c.spare()).To(BeEmpty())
			Expect(c0.Remembered()).To(BeZero())
			c.edit(`{"spec":{"excessReplicas":1}}`)
			c.settle()
			Expect(c0.Remembered()).To(Equal(1))
			Expect(c.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).Delete(context.Background(), "pool", metav1.DeleteOptions{})).To(Succeed())
			c.settle()
			Expect(c0.Remembered()).To(BeZero())
		})
	})

	It("remembers of a reserve what it did while it adopts a machine, about which nothing else is decided", func() {
		var c0 *Controller
		playReserved(usual, 1, spared(1), keepingWith(everything, func(c *Controller) { c0 = c }), func(c *reserved) {
			remembered := -1
			c.AfterWrite(func(w sim.Write) error {
				if w.User == name && w.Resource == "machines" && w.Name == "orphan" && remembered < 0 {
					remembered = c0.Remembered()
				}
				return nil
			})
			like := world.List[mcm.Machine](c, machineGVR)[0]
			orphan := fixture.Machine("orphan", func(m *mcm.Machine) { m.Labels, m.Spec = maps.Clone(like.Labels), *like.Spec.DeepCopy() })
			delete(orphan.Labels, mcm.NodeLabelKey)
			world.Create(c.machines(), orphan)
			c.settle()
			Expect(remembered).To(Equal(1))
		})
	})

	It("remembers nothing of one that was gone before it could be seen leaving", func() {
		var c0 *Controller
		playReserved(usual, 1, spared(1), keepingWith(everything, func(c *Controller) { c0 = c }), func(c *reserved) {
			c.Hold("machinedeployments", name)
			world.Delete(c.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), "pool")
			c.edit(`{"metadata":{"finalizers":null}}`)
			c.Release("machinedeployments", name)
			c.settle()
			Expect(world.List[v1alpha1.MachineDeployment](c, deploymentGVR)).To(BeEmpty())
			Expect(c0.Remembered()).To(BeZero())
		})
	})

	It("remembers nothing of a Node that no Machine names, once it has gone", func() {
		var c0 *Controller
		playReserved(usual, 0, spared(0), keepingWith(everything, func(c *Controller) { c0 = c }), func(c *reserved) {
			world.Create(c.core.CoreV1().Nodes(), fixture.Node("stranger", func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.RegistrationTaintKey, Effect: corev1.TaintEffectNoSchedule}}
			}))
			time.Sleep(time.Second)
			Expect(c0.Held()).To(Equal(1))
			Expect(c.core.CoreV1().Nodes().Delete(context.Background(), "stranger", metav1.DeleteOptions{})).To(Succeed())
			c.settle()
			Expect(c0.Held()).To(BeZero())
		})
	})

	DescribeTable("remembers nothing of a Node that goes while it is to be closed", func(answer error) {
		var c0 *Controller
		playReserved(usual, 2, spared(0), keepingWith(everything, func(c *Controller) { c0 = c }), func(c *reserved) {
			written := false
			c.OnWrite(func(w sim.Write) error {
				if w.User == name && w.Resource == "nodes" && !written {
					written = true
					return answer
				}
				return nil
			})
			c.slow("patch", "nodes", 2*time.Second, 2*time.Second)
			c.edit(`{"spec":{"replicas":1,"excessReplicas":1}}`)
			time.Sleep(time.Second)
			for _, node := range c.serving() {
				Expect(c.core.CoreV1().Nodes().Delete(context.Background(), node, metav1.DeleteOptions{})).To(Succeed())
				world.Delete(c.machines(), node)
			}
			c.settle()
			Expect(written).To(BeTrue())
			c.edit(`{"spec":{"excessReplicas":0}}`)
			c.settle()
			Expect(c.spare()).To(BeEmpty())
			Expect(c0.Held()).To(BeZero())
		})
	},
		Entry("which is not found then", nil),
		Entry("which is not answered", errors.New("connection reset")),
	)

	It("remembers since when too many serve, though requests fail that have nothing to do with it", func() {
		playReserved(usual, 2, spared(1), keeping(everything), func(c *reserved) {
			c.bind(slices.Concat(c.serving(), c.spare())...) // one pod too many, as if a Node had been open
			c.OnWrite(func(w sim.Write) error {
				if w.User == name && w.Resource == "machinedeployments" && w.Subresource == "status" {
					return errors.New("refused")
				}
				return nil
			})
			time.Sleep(9 * time.Minute)
			Expect(c.serving()).To(HaveLen(3))
			time.Sleep(3 * time.Minute)
			Expect(c.serving()).To(HaveLen(2))
		})
	})

	It("remembers nothing of one that has gone", func() {
		playReserved(usual, 1, spared(1), keeping(everything), func(c *reserved) {
			Expect(c.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).Delete(context.Background(), "pool", metav1.DeleteOptions{})).To(Succeed())
			c.settle()
			Expect(world.List[mcm.Machine](c, machineGVR)).To(BeEmpty())
			Expect(world.List[v1alpha1.MachineDeployment](c, deploymentGVR)).To(BeEmpty())
		})
	})
})

// A machine recovers while the reserve is given up, so that more serve than replicas, and nobody asked for fewer.
var _ = It("6: Wherever the controller is killed while it deletes machines in reserve, those that serve stay", func() {
	Expect(storm.CrashPoints(suite, storm.Scenario{
		Options: sim.Options{Seed: 1}, Apart: true,
		Story: func(w *storm.World) {
			c := adoptReserved(w)
			c.Start(name, keeping(everything))
			world.Create(c.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), world.MachineDeployment("pool", 2, spared(2)))
			c.settle()
			c.bind(c.serving()...)
			time.Sleep(time.Minute)
			sick := c.serving()[0]
			c.Set(func() { c.sick[sick] = true })
			time.Sleep(30 * time.Second)
			Expect(c.serving()).To(HaveLen(3), "one of them is Unknown")
			c.bind(slices.DeleteFunc(c.serving(), c.isBound)...)
			c.Set(func() { delete(c.sick, sick) })
			time.Sleep(30 * time.Second)
			c.edit(`{"spec":{"excessReplicas":0}}`)
			time.Sleep(time.Minute)
		},
		End: func(w *storm.World) any {
			c := &reserved{cluster: &cluster{World: w}}
			return []int{len(c.serving()), len(c.spare())}
		},
	}, name)).To(Succeed())
})
