// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	builders "github.com/evenkeel/evenkeel/test/builders/nodegroup"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = Describe("A machine whose name has left the annotation", func() {
	slow := func(c *cluster) {
		c.pool("pool", "1:9", 3)
		c.running("pool", "a", "b", "c")
		c.lull()
		c.Hold("machines", serving)
	}
	// takeOut does what machine-controller-manager does once a named machine terminates.
	takeOut := func(c *cluster) {
		c.patch("pool", `{"metadata":{"annotations":{%q:null}}}`, machineutils.TriggerDeletionByMCM)
	}

	It("is being deleted for a minute from then on, however long its name was there", func() {
		play(func(c *cluster) {
			slow(c)
			c.patch("pool", `{"metadata":{"annotations":{%q:"c~2026-03-01T12:00:00Z"}}}`, machineutils.TriggerDeletionByMCM)
			time.Sleep(10 * time.Minute)
			takeOut(c)
			time.Sleep(50 * time.Second)
			Expect(c.said("pool")).To(ContainElement("virtual:///node-c Deleting"))
			time.Sleep(15 * time.Second)
			Expect(c.said("pool")).To(ContainElement("virtual:///node-c Running"))
		})
	})

	It("is being deleted, too, if no watch has ever shown its name, because we wrote it", func() {
		play(func(c *cluster) {
			slow(c)
			c.Hold("machinedeployments", serving)
			Expect(c.remove("pool", "node-c")).To(Succeed())
			takeOut(c)
			c.Compact() // the watch lists again, and sees only the end
			c.Release("machinedeployments", serving)
			time.Sleep(30 * time.Second)
			Expect(c.said("pool")).To(ContainElement("virtual:///node-c Deleting"))
		})
	})
})

var _ = Describe("The template of a group", func() {
	It("is its Node as it was before it was cordoned, though nothing was heard of that Node since it became ready", func() {
		play(func(c *cluster) {
			ctx := context.Background()
			class := fixture.MachineClass(fixture.Class)
			class.NodeTemplate = builders.Class("z1")
			_, err := c.ours.MachineClasses(ns).Create(ctx, class, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.pool("pool", "0:9", 1)
			c.running("pool", "a")
			c.patchMachine("a", `{"spec":{"class":{"name":%q}}}`, fixture.Class)
			time.Sleep(2 * time.Minute)
			c.patchNode("node-a", `{"spec":{"unschedulable":true}}`)
			c.lull()
			node, err := c.template("pool")
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Status.Allocatable.Cpu().String()).To(Equal("4"), "what the Node has; the class promises 3920m")
		})
	})

	// quiet makes a pool with a MachineClass, a machine, and its Node. There are no more events about the Node once it is ready.
	quiet := func(c *cluster, classes map[string]string, order ...string) {
		GinkgoHelper()
		class := fixture.MachineClass(fixture.Class)
		class.NodeTemplate = builders.Class("z1")
		_, err := c.ours.MachineClasses(ns).Create(context.Background(), class, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		c.pool("pool", "0:9", 1)
		for _, name := range order {
			c.running("pool", name)
			c.patchMachine(name, `{"spec":{"class":{"name":%q}}}`, classes[name])
			c.patchNode("node-"+name, `{"metadata":{"labels":{"from":%q}}}`, name)
			time.Sleep(10 * time.Second)
		}
		time.Sleep(2 * time.Minute)
	}

	It("is not a Node of a machine of another class", func() {
		play(func(c *cluster) {
			quiet(c, map[string]string{"a": "former"}, "a")
			node, err := c.template("pool")
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Status.Allocatable.Cpu().String()).To(Equal("3920m"), "what the class promises; the Node has 4")
		})
	})

	It("is the oldest Node of its class, where nothing was heard of any since it became ready", func() {
		play(func(c *cluster) {
			quiet(c, map[string]string{"c": "former", "b": fixture.Class, "a": fixture.Class}, "c", "b", "a")
			node, err := c.template("pool")
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Labels).To(HaveKeyWithValue("from", "b"))
		})
	})

	It("is not a Node that is losing its reserve mark while its Machine still has it", func() {
		play(func(c *cluster) {
			ctx := context.Background()
			class := fixture.MachineClass(fixture.Class)
			class.NodeTemplate = builders.Class("z1")
			_, err := c.ours.MachineClasses(ns).Create(ctx, class, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			c.pool("pool", "0:9:1", 0)
			c.machine("pool", "r", mcm.MachineRunning, builders.InReserve)
			c.patchMachine("r", `{"spec":{"class":{"name":%q}}}`, fixture.Class)
			time.Sleep(2 * time.Minute)
			c.patchNode("node-r", `{"metadata":{"annotations":{%q:null}}}`, v1alpha1.ReserveAnnotation)
			c.lull()
			node, err := c.template("pool")
			Expect(err).NotTo(HaveOccurred())
			Expect(node.Status.Allocatable.Cpu().String()).To(Equal("3920m"), "what the class promises; the Node has 4")
		})
	})
})

// Provider ids as AWS has them: the Machine's names the region, the Node's the zone.
const (
	formerMachine, formerNode       = "aws:///eu-west-1/i-1", "aws:///eu-west-1a/i-1"
	successorMachine, successorNode = "aws:///eu-west-1/i-2", "aws:///eu-west-1a/i-2"
)

// vm makes a Machine of the pool with that Node name and provider id.
func (c *cluster) vm(name, node, id string) {
	GinkgoHelper()
	c.machine("pool", name, mcm.MachineUnknown, func(m *v1alpha1.Machine) {
		m.Labels, m.Spec.ProviderID = map[string]string{mcm.NodeLabelKey: node}, id
	})
}

func (c *cluster) registered(name, id string) {
	GinkgoHelper()
	node := fixture.Node(name, func(n *corev1.Node) { n.Spec.ProviderID = id })
	_, err := c.core.CoreV1().Nodes().Create(context.Background(), node, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// removeOne asks for one Node to be deleted.
func (c *caller) removeOne(node *pb.ExternalGrpcNode) error {
	ctx, cancel := waiting()
	defer cancel()
	_, err := c.NodeGroupDeleteNodes(ctx, &pb.NodeGroupDeleteNodesRequest{Id: "pool", Nodes: []*pb.ExternalGrpcNode{node}})
	return err
}

// groupOf is the id of a Node's group.
func (c *caller) groupOf(node *pb.ExternalGrpcNode) string {
	GinkgoHelper()
	ctx, cancel := waiting()
	defer cancel()
	response, err := c.NodeGroupForNode(ctx, &pb.NodeGroupForNodeRequest{Node: node})
	Expect(err).NotTo(HaveOccurred())
	return response.NodeGroup.GetId()
}

var _ = Describe("A Node name that was another machine's before (law 13)", func() {
	DescribeTable("provider id first; a name that contradicts it is refused, and nothing changes",
		func(world func(c *cluster), id, name string, want codes.Code, named ...string) {
			play(func(c *cluster) {
				c.pool("pool", "0:9", 5)
				c.vm("other", "other", "aws:///eu-west-1/i-9")
				c.registered("other", "aws:///eu-west-1a/i-9")
				world(c)
				c.lull()
				node, group := &pb.ExternalGrpcNode{ProviderID: id, Name: name}, ""
				if len(named) > 0 {
					group = "pool"
				}
				Expect(c.groupOf(node)).To(Equal(group))
				Expect(code(c.removeOne(node))).To(Equal(want))
				Expect(c.named("pool")).To(HaveExactElements(named))
				Expect(c.replicas("pool")).To(BeEquivalentTo(5 - len(named)))
				Expect(c.writes()).To(HaveLen(len(named)))
			})
		},
		Entry("the former is gone: its successor stays", successor, formerNode, "ip-1", codes.FailedPrecondition),
		Entry("the former exists beside it: the former is deleted", both, formerNode, "ip-1", codes.OK, "former"),
		Entry("the successor is found by its own provider id", both, successorNode, "ip-1", codes.OK, "successor"),
		Entry("the former's record alone, and the call means the Node of now", formerRecord, successorNode, "ip-1", codes.NotFound),
		Entry("the name is another machine's", both, successorNode, "other", codes.FailedPrecondition),
		Entry("the provider id is unknown and the name another machine's", both, "aws:///eu-west-1a/i-7", "other", codes.FailedPrecondition),
		Entry("a placeholder, and a name of another machine", both, "requested://former", "other", codes.FailedPrecondition),
		Entry("a placeholder as a name, of another machine", both, formerNode, "requested://successor", codes.FailedPrecondition),
		Entry("a placeholder and the machine's own Node name", both, "requested://former", "ip-1", codes.OK, "former"),
		Entry("a provider id alone", both, successorNode, "", codes.OK, "successor"),
		Entry("a name alone", both, "", "ip-1", codes.OK, "successor"),
		Entry("a name alone that two machines without Nodes share", unregistered, "", "ip-1", codes.FailedPrecondition),
		Entry("a provider id and an unknown name", both, successorNode, "ip-7", codes.FailedPrecondition),
		Entry("a placeholder as a name alone", both, "", "requested://former", codes.OK, "former"),
		Entry("an unknown name alone: the machine is gone", both, "", "ip-7", codes.OK),
		Entry("neither is known: the machine is gone", both, "aws:///eu-west-1a/i-7", "ip-7", codes.OK),
		Entry("a provider id whose last part belongs to another machine", twins, "cloud:///b/i-7", "", codes.OK, "twin-b"),
		Entry("Machine and Node write provider ids that cannot be compared", foreign, "cloud-b/7", "ip-1", codes.OK, "odd"),
	)

	It("is the Node of the one machine whose provider id it has", func() {
		play(func(c *cluster) {
			c.pool("pool", "0:9", 5)
			both(c)
			c.lull()
			Expect(c.said("pool")).To(ConsistOf("requested://former Running", successorNode+" Running"))
		})
	})

	It("keeps a whole call from taking effect", func() {
		play(func(c *cluster) {
			c.pool("pool", "0:9", 5)
			successor(c)
			c.running("pool", "a")
			c.lull()
			ctx, cancel := waiting()
			defer cancel()
			_, err := c.NodeGroupDeleteNodes(ctx, &pb.NodeGroupDeleteNodesRequest{Id: "pool", Nodes: []*pb.ExternalGrpcNode{
				told(standIn("node-a")), {ProviderID: formerNode, Name: "ip-1"},
			}})
			Expect(code(err)).To(Equal(codes.FailedPrecondition))
			Expect(c.writes()).To(BeEmpty())
		})
	})
})

func twins(c *cluster) {
	c.vm("twin-a", "node-a", "cloud:///a/i-7")
	c.vm("twin-b", "node-b", "cloud:///b/i-7")
}

func successor(c *cluster) {
	c.vm("successor", "ip-1", successorMachine)
	c.registered("ip-1", successorNode)
}

func both(c *cluster) {
	c.vm("former", "ip-1", formerMachine)
	successor(c)
}

func formerRecord(c *cluster) {
	c.vm("former", "ip-1", formerMachine)
	c.registered("ip-1", successorNode)
}

func unregistered(c *cluster) {
	c.vm("former", "ip-1", formerMachine)
	c.vm("successor", "ip-1", successorMachine)
}

func foreign(c *cluster) {
	c.vm("odd", "ip-1", "cloud-a://x")
	c.registered("ip-1", "cloud-b/7")
}

var _ = Describe("A name that has left the annotation", func() {
	It("counts for a minute from when it was last there", func() {
		begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		after := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
		r := &recentNames{}
		r.addNames(map[string]time.Time{"a": {}}, begun)
		r.addNames(map[string]time.Time{"a": {}, "b": {}}, after(50))
		r.addNames(nil, after(70))
		Expect(r.contains("a", after(109))).To(BeTrue())
		Expect(r.contains("a", after(110))).To(BeFalse())
		r.addNames(nil, after(110))
		Expect(r.last).To(BeEmpty())
	})
})

var _ = Describe("What is remembered", func() {
	gone := func(name string) bool { return name == "a" }

	It("of Nodes is forgotten group by group", func() {
		s, node := &lastNodes{}, &corev1.Node{}
		s.remember("a", templateNode{node, "class"})
		s.remember("b", templateNode{node, "class"})
		Expect([]*corev1.Node{s.nodeOf("a", "class"), s.nodeOf("b", "class")}).To(HaveEach(BeIdenticalTo(node)))
		Expect(s.nodeOf("a", "another")).To(BeNil())
		Expect(s.nodeOf("c", "")).To(BeNil())
		s.forgetIf(gone)
		Expect(s.last).To(And(HaveLen(1), HaveKey("b")))
	})

	It("of marks is forgotten machine by machine", func() {
		f := &machineTimes{}
		f.overdue("a", builders.Noon)
		f.overdue("b", builders.Noon)
		f.forgetIf(gone)
		Expect(f.since).To(Equal(map[string]time.Time{"b": builders.Noon}))
	})

	It("of the caller's loop is forgotten group by group", func() {
		s := &callerView{}
		a, b := builders.Bounded("1:5", 3), builders.Bounded("1:5", 4)
		a.Deployment.Name, b.Deployment.Name = "a", "b"
		s.startLoop(func() []plan.Group { return []plan.Group{a, b} })
		s.forgetIf(gone)
		Expect(s.groups).To(Equal(map[string]expected{"b": {replicas: 4, version: b.Deployment.ResourceVersion}}))
	})

	It("of names does not hold one that was never there", func() {
		Expect((&recentNames{}).contains("a", builders.Noon)).To(BeFalse())
	})
})

var _ = Describe("A gate", func() {
	It("is gone when all who waited for it have left, those who gave up included", func() {
		g := &groupLocks{}
		leave, err := g.acquire(context.Background(), "pool")
		Expect(err).NotTo(HaveOccurred())
		gone, giveUp := context.WithCancel(context.Background())
		giveUp()
		_, err = g.acquire(gone, "pool")
		Expect(code(err)).To(Equal(codes.Unavailable))
		leave()
		Expect(g.byGroup).To(BeEmpty())
	})
})
