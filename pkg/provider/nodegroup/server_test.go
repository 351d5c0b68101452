// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/nodegroup"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// nodeOf is a Node as the API server has it.
func (c *cluster) nodeOf(machine string) *corev1.Node {
	GinkgoHelper()
	node, err := c.core.CoreV1().Nodes().Get(context.Background(), "node-"+machine, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return node
}

var _ = Describe("Groups", func() {
	It("are all MachineDeployments with bounds that can be read, sorted, with both bounds", func() {
		play(func(c *cluster) {
			c.pool("z2", "0:7:2", 3)
			c.pool("z1", "1:5", 3)
			c.pool("z3", "2:4:5%", 9)
			c.pool("plain", "", 3)
			c.pool("typo", "5:1", 3)
			c.lull()
			Expect(c.begin()).To(Succeed())
			var all []string
			for _, g := range c.all() {
				all = append(all, fmt.Sprintf("%s %d:%d", g.Id, g.MinSize, g.MaxSize))
			}
			Expect(all).To(Equal([]string{"z1 1:5", "z2 0:7", "z3 2:4"}))
			Expect(c.target("z3")).To(BeEquivalentTo(9), "a user may pass max")
		})
	})

	It("come and go with their bounds, and no other group is affected (law 10)", func() {
		play(func(c *cluster) {
			c.pool("z1", "1:5", 3)
			c.pool("z2", "1:5", 3)
			c.running("z1", "a")
			c.lull()
			Expect(c.begin()).To(Succeed())
			Expect(c.all()).To(HaveLen(2))
			c.patch("z1", `{"metadata":{"annotations":{%q:"1:x"}}}`, v1alpha1.BoundsAnnotation)
			c.lull()
			before := c.deployment("z1")
			Expect(code(c.increase("z1", 1))).To(Equal(codes.FailedPrecondition))
			Expect(code(c.remove("z1", "node-a"))).To(Equal(codes.FailedPrecondition))
			Expect(code(c.decrease("z1", -1))).To(Equal(codes.FailedPrecondition))
			Expect(c.deployment("z1")).To(Equal(before))
			Expect(c.begin()).To(Succeed())
			Expect(c.all()).To(HaveLen(1))
			Expect(c.homeOf(c.nodeOf("a"))).To(BeNil())
			Expect(c.increase("z2", 1)).To(Succeed())
			c.patch("z1", `{"metadata":{"annotations":{%q:"1:4"}}}`, v1alpha1.BoundsAnnotation)
			c.lull()
			Expect(c.begin()).To(Succeed())
			Expect(c.all()[0].MaxSize).To(BeEquivalentTo(4), "bounds may change while the caller runs")
			Expect(c.ours.MachineDeployments(ns).Delete(context.Background(), "z2", metav1.DeleteOptions{})).To(Succeed())
			c.lull()
			Expect(code(c.increase("z2", 1))).To(Equal(codes.NotFound))
		})
	})

	It("are none any more as soon as they are being deleted", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:5", 3, func(d *v1alpha1.MachineDeployment) { d.Finalizers = []string{"example.org/slow"} })
			c.running("pool", "a")
			Expect(c.ours.MachineDeployments(ns).Delete(context.Background(), "pool", metav1.DeleteOptions{})).To(Succeed())
			c.lull()
			Expect(c.begin()).To(Succeed())
			Expect(c.all()).To(BeEmpty())
			Expect(c.homeOf(c.nodeOf("a"))).To(BeNil())
			Expect(code(c.increase("pool", 1))).To(Equal(codes.NotFound))
		})
	})

	It("hold Nodes according to the request and the record (rule 2)", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9:2", 3)
			c.running("pool", "serves")
			c.machine("pool", "waits", mcm.MachineRunning, builders.InReserve)
			c.machine("pool", "boots", mcm.MachinePending)
			c.machine("pool", "reserved", mcm.MachinePending, builders.InReserve)
			c.machine("pool", "leaving", mcm.MachineRunning, priority("1"), doomed)
			c.lull()
			Expect(c.begin()).To(Succeed())
			home := func(node *corev1.Node) string { return c.homeOf(node).GetId() }
			Expect(home(c.nodeOf("serves"))).To(Equal("pool"))
			Expect(c.homeOf(c.nodeOf("serves")).MinSize).To(BeEquivalentTo(1), "scale-down takes min from here")
			Expect(home(c.nodeOf("waits"))).To(BeEmpty())
			Expect(home(c.nodeOf("leaving"))).To(Equal("pool"))
			Expect(home(standIn("requested://boots"))).To(Equal("pool"))
			Expect(home(standIn("requested://reserved"))).To(BeEmpty())
			Expect(home(standIn("requested://unknown"))).To(BeEmpty())
			Expect(home(fixture.Node("stranger"))).To(BeEmpty())

			By("a Node that has registered and carries no mark yet, though its Machine does")
			bare := c.nodeOf("waits")
			bare.Annotations = nil
			Expect(home(bare)).To(BeEmpty())
			By("a Node as the caller saw it before it was released")
			old := c.nodeOf("waits")
			c.patchMachine("waits", `{"metadata":{"annotations":{%q:null}}}`, v1alpha1.ReserveAnnotation)
			c.patchNode("node-waits", `{"metadata":{"annotations":{%q:null}}}`, v1alpha1.ReserveAnnotation)
			c.lull()
			Expect(c.begin()).To(Succeed())
			Expect(home(old)).To(BeEmpty())
			By("and as it is since: no group is never remembered")
			Expect(home(c.nodeOf("waits"))).To(Equal("pool"))
			By("what MCM puts on every Node of a rollout is no mark")
			c.patchNode("node-serves", `{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.ScaleDownDisabledAnnotation)
			Expect(c.begin()).To(Succeed())
			Expect(home(c.nodeOf("serves"))).To(Equal("pool"))
		})
	})

	It("hold a Node that keeps its mark long after its Machine was released: else the caller stops in every loop", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9:2", 3)
			c.machine("pool", "stuck", mcm.MachineRunning, builders.InReserve)
			c.lull()
			node := c.nodeOf("stuck")
			c.patchMachine("stuck", `{"metadata":{"annotations":{%q:null}}}`, v1alpha1.ReserveAnnotation)
			c.lull()
			for range 59 {
				Expect(c.begin()).To(Succeed())
				Expect(c.homeOf(node)).To(BeNil())
				time.Sleep(10 * time.Second)
			}
			time.Sleep(10 * time.Second)
			Expect(c.begin()).To(Succeed())
			Expect(c.homeOf(node).GetId()).To(Equal("pool"))
			c.patchMachine("stuck", `{"metadata":{"annotations":{%q:"{}"}}}`, v1alpha1.ReserveAnnotation)
			c.lull()
			Expect(c.begin()).To(Succeed())
			Expect(c.homeOf(node)).To(BeNil())
			c.patchMachine("stuck", `{"metadata":{"annotations":{%q:null}}}`, v1alpha1.ReserveAnnotation)
			c.lull()
			Expect(c.begin()).To(Succeed())
			Expect(c.homeOf(node)).To(BeNil(), "patience begins anew")
			time.Sleep(9 * time.Minute)
			released := node.DeepCopy()
			released.Annotations = nil
			Expect(c.homeOf(released).GetId()).To(Equal("pool"))
			time.Sleep(2 * time.Minute)
			Expect(c.begin()).To(Succeed())
			Expect(c.homeOf(node)).To(BeNil(), "it did not keep its mark all the time")
		})
	})
})

var _ = Describe("Instances", func() {
	It("are all machines but those in reserve, each once (rule 4)", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9:2", 6)
			c.pool("other", "1:9", 1)
			c.running("pool", "a", "b")
			c.running("other", "o")
			c.machine("pool", "c", mcm.MachinePending)
			c.machine("pool", "d", mcm.MachineCrashLoopBackOff, failing("ResourceExhausted"))
			c.machine("pool", "e", mcm.MachineTerminating)
			c.machine("pool", "r", mcm.MachineRunning, builders.InReserve)
			c.machine("pool", "s", mcm.MachineCrashLoopBackOff, builders.InReserve, failing("ResourceExhausted"))
			c.lull()
			Expect(c.said("pool")).To(Equal([]string{
				"virtual:///node-a Running", "virtual:///node-b Running", "requested://c Creating",
				"requested://d Creating ResourceExhausted/1", "requested://e Deleting",
			}))
			Expect(c.said("other")).To(Equal([]string{"virtual:///node-o Running"}))
			Expect(c.target("pool")).To(BeEquivalentTo(6))
			c.patchNode("node-a", `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.ReserveAnnotation, builders.NoonText)
			c.lull()
			Expect(c.said("pool")).To(ContainElement("virtual:///node-a Running"), "the record decides, not a Node that was not asked about")
		})
	})

	It("that cannot be created are reported for ten minutes: for one that it cannot remove, the caller stops in every loop", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 1)
			c.machine("pool", "a", mcm.MachineCrashLoopBackOff, failing("ResourceExhausted"))
			failed, booting := Equal([]string{"requested://a Creating ResourceExhausted/1"}), Equal([]string{"requested://a Creating"})
			last := func(o mcm.LastOperation) {
				m, err := c.ours.Machines(ns).Get(context.Background(), "a", metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				m.Status.LastOperation = o
				_, err = c.ours.Machines(ns).UpdateStatus(context.Background(), m, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				c.lull()
			}
			c.lull()
			for range 60 {
				Expect(c.said("pool")).To(failed)
				Expect(code(c.remove("pool", "requested://a"))).To(Equal(codes.FailedPrecondition), "replicas are at min")
				time.Sleep(10 * time.Second)
			}
			for range 60 {
				Expect(c.said("pool")).To(booting, "it is one that has yet to register")
				time.Sleep(10 * time.Second)
			}
			last(mcm.LastOperation{})
			Expect(c.said("pool")).To(booting)
			last(builders.Machine("", failing("ResourceExhausted")).Status.LastOperation)
			Expect(c.said("pool")).To(failed, "it fails anew")
			Expect(c.ours.Machines(ns).Delete(context.Background(), "a", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(time.Minute)
			Expect(c.wire.server.remembered()).To(HaveKeyWithValue("failures", 0))
		})
	})

	It("that cannot be created are reported at once after a time without any", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 2)
			c.machine("pool", "a", mcm.MachineCrashLoopBackOff, failing("ResourceExhausted"))
			c.lull()
			Expect(c.said("pool")).To(Equal([]string{"requested://a Creating ResourceExhausted/1"}))
			Expect(c.ours.Machines(ns).Delete(context.Background(), "a", metav1.DeleteOptions{})).To(Succeed())
			c.lull()
			Expect(c.said("pool")).To(BeEmpty())
			time.Sleep(stuckAfter)
			c.machine("pool", "b", mcm.MachineCrashLoopBackOff, failing("ResourceExhausted"))
			c.lull()
			Expect(c.said("pool")).To(Equal([]string{"requested://b Creating ResourceExhausted/1"}))
		})
	})
})

var _ = Describe("The other answers", func() {
	It("are those that do no harm (rule 7)", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			ctx := context.Background()
			_, err := c.NodeGroupGetOptions(ctx, &pb.NodeGroupAutoscalingOptionsRequest{Id: "pool"})
			Expect(code(err)).To(Equal(codes.Unimplemented))
			_, err = c.PricingNodePrice(ctx, &pb.PricingNodePriceRequest{})
			Expect(code(err)).To(Equal(codes.Unimplemented))
			_, err = c.PricingPodPrice(ctx, &pb.PricingPodPriceRequest{})
			Expect(code(err)).To(Equal(codes.Unimplemented))
			label, err := c.GPULabel(ctx, &pb.GPULabelRequest{})
			Expect(label.GetLabel(), err).To(Equal("gardener.cloud/accelerator"))
			types, err := c.GetAvailableGPUTypes(ctx, &pb.GetAvailableGPUTypesRequest{})
			Expect(types.GetGpuTypes(), err).To(BeEmpty())
			_, err = c.Cleanup(ctx, &pb.CleanupRequest{})
			Expect(err).NotTo(HaveOccurred())
			_, err = c.template("pool")
			Expect(code(err)).To(Equal(codes.Unimplemented), "there is no class and no Node; an empty answer would crash the caller")
		})
	})

	It("tell what a fresh Node is like, and remember it when there is none any more", func() {
		play(func(c *cluster) {
			ctx := context.Background()
			class := fixture.MachineClass(fixture.Class)
			class.NodeTemplate = builders.Class("z1")
			_, err := c.ours.MachineClasses(ns).Create(ctx, class, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.pool("pool", "0:9", 1)
			c.lull()
			node, err := c.template("pool")
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Status.Allocatable.Cpu().String()).To(Equal("3920m"), "scale from zero, by the class")

			ofClass := func(m *v1alpha1.Machine) { m.Spec.Class.Name = fixture.Class }
			c.machine("pool", "a", mcm.MachineRunning, ofClass)
			c.machine("pool", "r", mcm.MachineRunning, ofClass, builders.InReserve)
			c.patchNode("node-r", `{"metadata":{"labels":{"from":"reserve"}}}`)
			node, err = c.template("pool")
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Status.Allocatable.Cpu().String()).To(Equal("3920m"), "its DaemonSets are not all there yet")
			time.Sleep(2 * time.Minute)
			c.patchNode("node-a", `{"metadata":{"labels":{"from":"cloud"}}}`)
			c.lull()
			node, err = c.template("pool")
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Status.Allocatable.Cpu().String()).To(Equal("4"), "by its Node")
			Expect(node.Labels).To(HaveKeyWithValue("from", "cloud"))

			Expect(c.core.CoreV1().Nodes().Delete(ctx, "node-a", metav1.DeleteOptions{})).To(Succeed())
			Expect(c.ours.Machines(ns).Delete(ctx, "a", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(time.Hour)
			node, err = c.template("pool")
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Labels).To(HaveKeyWithValue("from", "cloud"), "there was one once")
			c.patch("pool", `{"spec":{"template":{"spec":{"class":{"name":"another"}}}}}`)
			c.lull()
			_, err = c.template("pool")
			Expect(code(err)).To(Equal(codes.Unimplemented), "another class is unknown")
		})
	})
})

var _ = Describe("A group that does not exist", func() {
	DescribeTable("is not found, whatever the caller asks",
		func(ask func(context.Context, *cluster) error) {
			play(func(c *cluster) {
				c.pool("z1", "1:5", 3)
				c.lull()
				ctx, cancel := waiting()
				defer cancel()
				Expect(code(ask(ctx, c))).To(Equal(codes.NotFound))
			})
		},
		Entry("its size", func(ctx context.Context, c *cluster) error {
			_, err := c.NodeGroupTargetSize(ctx, &pb.NodeGroupTargetSizeRequest{Id: "gone"})
			return err
		}),
		Entry("its machines", func(ctx context.Context, c *cluster) error {
			_, err := c.NodeGroupNodes(ctx, &pb.NodeGroupNodesRequest{Id: "gone"})
			return err
		}),
		Entry("what its machines offer", func(ctx context.Context, c *cluster) error {
			_, err := c.NodeGroupTemplateNodeInfo(ctx, &pb.NodeGroupTemplateNodeInfoRequest{Id: "gone"})
			return err
		}),
		Entry("to raise it", func(_ context.Context, c *cluster) error { return c.increase("gone", 1) }),
		Entry("to lower it", func(_ context.Context, c *cluster) error { return c.decrease("gone", -1) }),
		Entry("to remove a machine", func(_ context.Context, c *cluster) error { return c.remove("gone", "node-a") }),
	)

	It("is not found, if it is deleted while it is being raised", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 3)
			c.lull()
			c.LatencyOf(func(r sim.Request) (time.Duration, time.Duration) {
				if r.User != serving || r.Verb != "patch" {
					return 0, 0
				}
				go func() {
					time.Sleep(time.Millisecond)
					Expect(c.ours.MachineDeployments(ns).Delete(context.Background(), "pool", metav1.DeleteOptions{})).To(Succeed())
				}()
				return 10 * time.Millisecond, 0
			})
			Expect(code(c.increase("pool", 1))).To(Equal(codes.NotFound))
		})
	})
})

// failing makes the creation of the machine fail.
func failing(code string) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) {
		m.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateFailed, ErrorCode: code, Description: "no luck"}
	}
}

func priority(text string) func(*v1alpha1.Machine) {
	return builders.Annotated(machineutils.MachinePriority, text)
}

var doomed = builders.Annotated(machineutils.MarkedForDeletionTime, builders.NoonText)

func preserved(until time.Duration) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) {
		m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: builders.Noon.Add(until)}
	}
}

// wording describes an instance, as in "Creating ResourceExhausted/1".
func wording(i *pb.Instance) string {
	text := map[pb.InstanceStatus_InstanceState]string{1: "Running", 2: "Creating", 3: "Deleting"}[i.Status.InstanceState]
	if e := i.Status.ErrorInfo; e != nil {
		text += fmt.Sprintf(" %s/%d", e.ErrorCode, e.InstanceErrorClass)
	}
	return text
}

// memberOf reads a Machine and its Node, if there is one. Named reports whether its MachineDeployment names it for deletion.
func memberOf(m *v1alpha1.Machine, node *corev1.Node, named bool) plan.Member {
	GinkgoHelper()
	d := builders.Deployment("1:5", 3)
	if named {
		d.Annotations[machineutils.TriggerDeletionByMCM] = m.Name + "~" + builders.NoonText
	}
	set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "set", Namespace: ns, UID: "uid-set", OwnerReferences: world.OwnedBy("MachineDeployment", d)}}
	m.OwnerReferences = world.OwnedBy("MachineSet", set)
	objects := pool.Objects{Sets: []*v1alpha1.MachineSet{set}, Machines: []*v1alpha1.Machine{m}}
	if node != nil {
		m.Labels = map[string]string{mcm.NodeLabelKey: node.Name}
		objects.Nodes = append(objects.Nodes, node)
	}
	memory := &memory{source: pool.NewList(objects), clock: testingclock.NewFakePassiveClock(builders.Noon)}
	members := memory.members(memory.outline(plan.Group{Deployment: d}))
	Expect(members).To(HaveLen(1))
	return members[0]
}

var _ = Describe("A member", func() {
	registered := fixture.Node("m")
	DescribeTable("is told by what its Machine and its Node say",
		func(m *v1alpha1.Machine, node *corev1.Node, named bool, want, id string) {
			told := instance(memberOf(m, node, named))
			Expect(wording(told)).To(Equal(want))
			Expect(told.Id).To(Equal(id))
		},
		Entry("asked for", builders.Machine(""), nil, false, "Creating", "requested://m"),
		Entry("booting", builders.Machine(mcm.MachinePending), nil, false, "Creating", "requested://m"),
		Entry("registered", builders.Machine(mcm.MachinePending), registered, false, "Running", "virtual:///m"),
		Entry("registered, provider id to come", builders.Machine(mcm.MachinePending), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, false, "Running", "requested://m"),
		Entry("running", builders.Machine(mcm.MachineRunning), registered, false, "Running", "virtual:///m"),
		Entry("running, its Node taken away", builders.Machine(mcm.MachineRunning), nil, false, "Running", "requested://m"),
		Entry("not ready", builders.Machine(mcm.MachineUnknown), registered, false, "Running", "virtual:///m"),
		Entry("updated in place", builders.Machine(mcm.MachineInPlaceUpdating), registered, false, "Running", "virtual:///m"),
		Entry("no capacity", builders.Machine(mcm.MachineCrashLoopBackOff, failing("ResourceExhausted")), nil, false, "Creating ResourceExhausted/1", "requested://m"),
		Entry("no permission", builders.Machine(mcm.MachineCrashLoopBackOff, failing("PermissionDenied")), nil, false, "Creating PermissionDenied/99", "requested://m"),
		Entry("out of reach: tried again in seconds", builders.Machine(mcm.MachineCrashLoopBackOff, failing("Unavailable")), nil, false, "Creating", "requested://m"),
		Entry("an error without a code: tried again in seconds", builders.Machine(mcm.MachineCrashLoopBackOff, failing("")), nil, false, "Creating", "requested://m"),
		Entry("given up: replaced whatever happens", builders.Machine(mcm.MachineFailed, failing("ResourceExhausted")), nil, false, "Deleting", "requested://m"),
		Entry("failed, but preserved", builders.Machine(mcm.MachineFailed, preserved(time.Hour)), registered, false, "Running", "virtual:///m"),
		Entry("failed, preserved until now", builders.Machine(mcm.MachineFailed, preserved(0)), registered, false, "Deleting", "virtual:///m"),
		Entry("terminating", builders.Machine(mcm.MachineTerminating), registered, false, "Deleting", "virtual:///m"),
		Entry("deleted by hand", builders.Machine(mcm.MachineRunning, builders.Deleted), registered, false, "Deleting", "virtual:///m"),
		Entry("named for deletion", builders.Machine(mcm.MachineRunning), registered, true, "Deleting", "virtual:///m"),
		Entry("named by its priority and time", builders.Machine(mcm.MachineRunning, priority("1"), doomed), registered, false, "Deleting", "virtual:///m"),
		Entry("priority 1 alone: its writer may still change it", builders.Machine(mcm.MachineRunning, priority("1")), registered, false, "Running", "virtual:///m"),
		Entry("no capacity, and named: the caller asks no more", builders.Machine(mcm.MachineCrashLoopBackOff, failing("ResourceExhausted")), nil, true, "Deleting", "requested://m"),
		Entry("an old error of one that has run since", builders.Machine(mcm.MachineRunning, failing("ResourceExhausted")), nil, false, "Running", "requested://m"),
	)

	It("tells an error message that is no text as well as it can", func() {
		m := builders.Machine(mcm.MachineCrashLoopBackOff, failing("ResourceExhausted"))
		m.Status.LastOperation.Description = "caf\xe9"
		Expect(instance(memberOf(m, nil, false)).Status.ErrorInfo.ErrorMessage).To(Equal("caf?"))
	})

	It("tells an error message as far as the caller shows it: of longer ones, an answer has room for few", func() {
		play(func(c *cluster) {
			c.pool("pool", "1:9", 5)
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				c.machine("pool", name, mcm.MachineCrashLoopBackOff, failing("ResourceExhausted"), func(m *v1alpha1.Machine) {
					m.Status.LastOperation.Description = "no luck" + strings.Repeat("é", 1<<19)
				})
			}
			c.lull()
			all := c.listed("pool")
			Expect(all).To(HaveLen(5))
			Expect(all[0].Status.ErrorInfo.ErrorMessage).To(Equal("no luck" + strings.Repeat("é", 493)))
		})
	})
})

var _ = Describe("A group", func() {
	It("tells both bounds whatever they are", func() {
		told := message(builders.Bounded("0:7:cpu=16", 3))
		Expect([]any{told.Id, told.MinSize, told.MaxSize}).To(Equal([]any{"pool", int32(0), int32(7)}))
		Expect(told.Debug).To(Equal("MachineDeployment default/pool, bounds 0:7:cpu=16"))
		dedicated := builders.Bounded("1:9", 3)
		dedicated.Deployment.Annotations[v1alpha1.DedicatedAnnotation] = "shop=2 ci=1"
		Expect(message(dedicated).MaxSize).To(BeEquivalentTo(6))
	})
})

var _ = It("Machines that fail one after the other are reported with pauses, since the caller compares what is missing in the whole group", func() {
	play(func(c *cluster) {
		c.pool("pool", "4:9", 4)
		var minutes []int
		for minute := range 32 {
			if minute%8 == 0 {
				c.machine("pool", string(rune('a'+minute/8)), mcm.MachineCrashLoopBackOff, failing("ResourceExhausted"))
				c.lull()
			}
			if strings.Contains(fmt.Sprint(c.said("pool")), "ResourceExhausted") {
				minutes = append(minutes, minute)
			}
			time.Sleep(time.Minute)
		}
		Expect(minutes).To(Equal([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 30, 31}))
	})
})
