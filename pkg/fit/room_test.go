// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/fit"
)

func listening(number int32, change ...func(*corev1.ContainerPort)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		port := corev1.ContainerPort{HostPort: number, Protocol: corev1.ProtocolTCP}
		for _, f := range change {
			f(&port)
		}
		p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, port)
	}
}

// inSidecar moves the ports of the container to an init container: a sidecar, or one that ends before the others begin.
func inSidecar(always bool) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		initially("", always)(p)
		p.Spec.InitContainers[0].Ports, p.Spec.Containers[0].Ports = p.Spec.Containers[0].Ports, nil
	}
}

func at(address string) func(*corev1.ContainerPort) {
	return func(p *corev1.ContainerPort) { p.HostIP = address }
}

func udp(p *corev1.ContainerPort) { p.Protocol = corev1.ProtocolUDP }

func unnamed(p *corev1.ContainerPort) { p.Protocol = "" }

// had sets the resources in the status of a container, and running also puts its pod on a Node: the container is being resized.
func had(amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "work", AllocatedResources: amounts(amount), Resources: &corev1.ResourceRequirements{Requests: amounts(amount)},
		}}
	}
}

func running(amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		had(amount)(p)
		p.Spec.NodeName = "n"
	}
}

// asWhole has a pod run that requests something as a whole, and has something else until it is resized.
func asWhole(wants, has string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName, p.Spec.Resources = "n", &corev1.ResourceRequirements{Requests: amounts(wants)}
		p.Status.AllocatedResources, p.Status.Resources = amounts(has), &corev1.ResourceRequirements{Requests: amounts(has)}
	}
}

// infeasible reports that the resize of a pod is more than its Node has.
func infeasible(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
}

func namespaced(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Namespace = name }
}

func leaving(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) }

func inNamespaces(names ...string) func(*corev1.PodAffinityTerm) {
	return func(t *corev1.PodAffinityTerm) { t.Namespaces = names }
}

func anyNamespace(t *corev1.PodAffinityTerm) { t.NamespaceSelector = &metav1.LabelSelector{} }

func someNamespaces(t *corev1.PodAffinityTerm) {
	t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}
}

// on is a node with pods.
func on(n *corev1.Node, pods ...*corev1.Pod) Node { return Node{Object: n, Pods: reads(pods...)} }

var _ = DescribeTable("A pod on node n",
	func(want Obstacle, p *corev1.Pod, nodes ...Node) {
		Expect(NewRoom(nodes).Ask(read(p), "n")).To(Equal(want))
	},
	Entry("beside others", Fits, pod("p", "cpu=2"), on(node("n"), pod("q", "cpu=2"))),
	Entry("no CPU is left", Full, pod("p", "cpu=2"), on(node("n"), pod("q", "cpu=1"), pod("r", "cpu=1001m"))),
	Entry("what leaves still counts", Full, pod("p", "cpu=2"), on(node("n"), pod("q", "cpu=3", leaving))),
	Entry("more runs than there is, and nothing is asked", Fits, pod("p", ""), on(node("n"), pod("q", "cpu=9"))),
	Entry("more CPU is used than there is, and a thousandth is requested", Full, pod("p", "cpu=1m"), on(node("n"), pod("q", "cpu=9"))),
	Entry("more memory is used than there is, and a byte is requested", Full, pod("p", "memory=1"), on(node("n"), pod("q", "memory=9Gi"))),
	Entry("more memory is used than there is, and only CPU is requested", Fits, pod("p", "cpu=1"), on(node("n"), pod("q", "memory=9Gi"))),
	Entry("as many pods as may be", Full, pod("p", ""), on(node("n", has("pods=1")), pod("q", ""))),
	Entry("no device is left", Full, pod("p", "example.com/gpu=1"), on(node("n", has("example.com/gpu=2")), pod("q", "example.com/gpu=2"))),
	Entry("what a pod is still to give back counts", Full, pod("p", "cpu=2"), on(node("n"), pod("q", "cpu=1", running("cpu=3")))),
	Entry("what a pod as a whole is still to give back counts", Full, pod("p", "cpu=2"), on(node("n"), pod("q", "cpu=1", asWhole("cpu=1", "cpu=3")))),
	Entry("what a pod as a whole cannot get does not", Fits, pod("p", "cpu=2"), on(node("n"), pod("q", "cpu=1", asWhole("cpu=9", "cpu=2"), infeasible))),
	Entry("what a pod that waits once had does not", Fits, pod("p", "cpu=1", had("cpu=5")), on(node("n"))),
	Entry("no such node", Elsewhere, pod("p", ""), on(node("m"))),

	Entry("its port is taken", PortTaken, pod("p", "", listening(80)), on(node("n"), pod("q", "", listening(80)))),
	Entry("another port", Fits, pod("p", "", listening(81)), on(node("n"), pod("q", "", listening(80)))),
	Entry("another protocol", Fits, pod("p", "", listening(80, udp)), on(node("n"), pod("q", "", listening(80)))),
	Entry("another address", Fits, pod("p", "", listening(80, at("10.0.0.1"))), on(node("n"), pod("q", "", listening(80, at("10.0.0.2"))))),
	Entry("the protocol that is meant where none is named", PortTaken, pod("p", "", listening(80, unnamed)), on(node("n"), pod("q", "", listening(80)))),
	Entry("every address", PortTaken, pod("p", "", listening(80)), on(node("n"), pod("q", "", listening(80, at("10.0.0.2"))))),
	Entry("one address where another pod has every one", PortTaken, pod("p", "", listening(80, at("10.0.0.2"))), on(node("n"), pod("q", "", listening(80)))),
	Entry("the port of its sidecar is taken", PortTaken, pod("p", "", listening(80), inSidecar(true)), on(node("n"), pod("q", "", listening(80)))),
	Entry("a sidecar has its port", PortTaken, pod("p", "", listening(80)), on(node("n"), pod("q", "", listening(80), inSidecar(true)))),
	Entry("an init container that ends keeps no port", Fits, pod("p", "", listening(80)), on(node("n"), pod("q", "", listening(80), inSidecar(false)))),

	Entry("an init container that fails for good keeps no port", Fits, pod("p", "", listening(80)),
		on(node("n"), pod("q", "", listening(80), inSidecar(false), func(p *corev1.Pod) {
			p.Spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
		}))),

	Entry("away from its like", Repelled, pod("p", "", apart(hostname, "p")), on(node("n"), pod("p-1", ""))),
	Entry("away from its like, on another node", Fits, pod("p", "", apart(hostname, "p")), on(node("n")), on(node("m"), pod("p-1", ""))),
	Entry("away from its like, in one zone", Repelled, pod("p", "", apart(zone, "p")), on(node("n", in("a"))), on(node("m", in("a")), pod("p-1", ""))),
	Entry("away from its like, where there is no zone", Fits, pod("p", "", apart(zone, "p")), on(node("n")), on(node("m", in("a")), pod("p-1", ""))),
	Entry("away from its like, where the zone has no name and another node has no zone", Fits, pod("p", "", apart(zone, "p")), on(node("n", in(""))), on(node("m"), pod("p-1", ""))),
	Entry("away from its like, where there is no zone and the zone of another node has no name", Fits, pod("p", "", apart(zone, "p")), on(node("n")), on(node("m", in("")), pod("p-1", ""))),
	Entry("away from others of the name in its namespace only", Fits, pod("p", "", apart(hostname, "q")), on(node("n"), pod("q", "", namespaced("other")))),
	Entry("away from those of a namespace", Repelled, pod("p", "", apart(hostname, "q", inNamespaces("other"))), on(node("n"), pod("q", "", namespaced("other")))),
	Entry("away from those of any namespace", Repelled, pod("p", "", apart(hostname, "q", anyNamespace)), on(node("n"), pod("q", "", namespaced("other")))),
	Entry("away from those of namespaces by label", Undecided, pod("p", "", apart(hostname, "q", someNamespaces)), on(node("n"))),
	Entry("kept away by one that is there", Repelled, pod("p", ""), on(node("n"), pod("q", "", apart(hostname, "p")))),
	Entry("kept away by one in the zone", Repelled, pod("p", ""), on(node("n", in("a"))), on(node("m", in("a")), pod("q", "", apart(zone, "p")))),
	Entry("not kept away by one that means others", Fits, pod("p", ""), on(node("n"), pod("q", "", apart(hostname, "r")))),
	Entry("maybe kept away by one in the zone", Undecided, pod("p", ""), on(node("n", in("a"))), on(node("m", in("a")), pod("q", "", apart(zone, "p", someNamespaces)))),
	Entry("not kept away by one in another zone, whichever namespaces it means", Fits, pod("p", ""), on(node("n", in("a"))), on(node("m", in("b")), pod("q", "", apart(zone, "p", someNamespaces)))),
	Entry("not kept away where only others may be", Fits, pod("p", ""), on(node("n"), pod("q", "", apart(hostname, "r", someNamespaces)))),

	Entry("with its friend", Fits, pod("p", "", together(zone, "q")), on(node("n", in("a"))), on(node("m", in("a")), pod("q", ""))),
	Entry("without its friend", Lonely, pod("p", "", together(zone, "q")), on(node("n", in("a"))), on(node("m", in("b")), pod("q", ""))),
	Entry("the first of its kind", Fits, pod("p", "", together(zone, "p")), on(node("n", in("a")))),
	Entry("the first of its kind, where there is no zone", Lonely, pod("p", "", together(zone, "p")), on(node("n"))),
	Entry("the second of its kind", Lonely, pod("p", "", together(zone, "p")), on(node("n", in("a"))), on(node("m", in("b")), pod("p-1", ""))),
	Entry("friends must be all in one", Lonely, pod("p", "", together(zone, "q"), together(zone, "r")), on(node("n", in("a")), pod("q", ""), pod("r", ""))),

	Entry("friends must be near by the first rule, too", Lonely, pod("p", "", together(hostname, "q"), together(zone, "q")), on(node("n", in("a"))), on(node("m", in("a")), pod("q", ""))),

	Entry("even", Fits, pod("p", "", spread(zone, 1, "p")), on(node("n", in("a"))), on(node("m", in("b")))),
	Entry("uneven", Uneven, pod("p", "", spread(zone, 1, "p")), on(node("n", in("a")), pod("p-1", "")), on(node("m", in("b")))),
	Entry("not too uneven", Fits, pod("p", "", spread(zone, 2, "p")), on(node("n", in("a")), pod("p-1", "")), on(node("m", in("b")))),
	Entry("of others, among which it does not count itself", Fits, pod("p", "", spread(zone, 1, "q")), on(node("n", in("a")), pod("q-1", "")), on(node("m", in("b")))),
	Entry("one zone is all there is", Fits, pod("p", "", spread(zone, 1, "p")), on(node("n", in("a")), pod("p-1", ""))),
	Entry("one zone, and two are asked for", Uneven, pod("p", "", spread(zone, 1, "p", func(c *corev1.TopologySpreadConstraint) { c.MinDomains = ptr.To[int32](2) })),
		on(node("n", in("a")), pod("p-1", ""))),
	Entry("no zone", Uneven, pod("p", "", spread(zone, 1, "p")), on(node("n")), on(node("m", in("b")))),
	Entry("a node without a label for every constraint is no place", Fits, pod("p", "", spread(zone, 1, "p"), spread("rack", 9, "p")),
		on(node("n", in("a"), labelled("rack", "r")), pod("p-1", "")), on(node("m", in("b")))),
	Entry("what leaves does not count", Fits, pod("p", "", spread(zone, 1, "p")), on(node("n", in("a")), pod("p-1", "", leaving)), on(node("m", in("b")))),
	Entry("what is of another namespace does not count", Fits, pod("p", "", spread(zone, 1, "p")), on(node("n", in("a")), pod("p-1", "", namespaced("other"))), on(node("m", in("b")))),
	Entry("zones that it does not select do not count", Fits, pod("p", "", spread(zone, 1, "p"), selecting(zone, "a")), on(node("n", in("a")), pod("p-1", "")), on(node("m", in("b")))),
	Entry("nodes that it does not select do not count, even in a zone that does", Fits, pod("p", "", spread(zone, 1, "p"), selecting("disk", "ssd")),
		on(node("n", in("a"), labelled("disk", "ssd"))), on(node("m", in("a")), pod("p-1", "")), on(node("o", in("b"), labelled("disk", "ssd")))),
	Entry("nor if that is said", Fits, pod("p", "", spread(zone, 1, "p", func(c *corev1.TopologySpreadConstraint) {
		c.NodeAffinityPolicy = ptr.To(corev1.NodeInclusionPolicyHonor)
	}), selecting(zone, "a")),
		on(node("n", in("a")), pod("p-1", "")), on(node("m", in("b")))),
	Entry("unless they are to", Uneven, pod("p", "", spread(zone, 1, "p", func(c *corev1.TopologySpreadConstraint) {
		c.NodeAffinityPolicy = ptr.To(corev1.NodeInclusionPolicyIgnore)
	}), selecting(zone, "a")),
		on(node("n", in("a")), pod("p-1", "")), on(node("m", in("b")))),
	Entry("a closed node is a place too", Uneven, pod("p", "", spread(zone, 1, "p")), on(node("n", in("a")), pod("p-1", "")), Node{Object: node("m", in("b"), tainted(reserved)), Closed: true}),
	Entry("places by their taints", Undecided, pod("p", "", spread(zone, 1, "p", func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor) })), on(node("n", in("a")))),
	Entry("only wished for", Fits, pod("p", "", spread(zone, 1, "p", func(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway })),
		on(node("n", in("a")), pod("p-1", "")), on(node("m", in("b")))),
	Entry("of its own revision only", Fits, pod("p", "", spread(zone, 1, "p", func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"hash"} }), func(p *corev1.Pod) { p.Labels["hash"] = "2" }),
		on(node("n", in("a")), pod("p-1", "")), on(node("m", in("b")))),
	Entry("of its own revision, where it has none", Uneven, pod("p", "", spread(zone, 1, "p", func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"hash"} })),
		on(node("n", in("a")), pod("p-1", "")), on(node("m", in("b")))),
	Entry("a selector of everything counts nothing that is there", Fits, pod("p", "", spread(zone, 1, "p", func(c *corev1.TopologySpreadConstraint) { c.LabelSelector = &metav1.LabelSelector{} })),
		on(node("n", in("a")), pod("p-1", ""), pod("p-2", "")), on(node("m", in("b")))),
)

var _ = Describe("A room", func() {
	It("has taints of a closed node only while it is closed", func() {
		nodes, _ := reserve("a", 1)
		Expect(NewRoom(nodes).Ask(read(pod("p", "")), "a-0")).To(Equal(Tainted))
		Expect(NewRoom(nodes).Ask(read(pod("p", "", tolerant(reserved))), "a-0")).To(Equal(Fits))
		nodes[0].Closed = false
		Expect(NewRoom(nodes).Ask(read(pod("p", "")), "a-0")).To(Equal(Fits))
	})

	It("knows of each pod that comes and goes", func() {
		r := NewRoom(open(node("n", in("a")), node("m", in("b"))))
		jealous, evener, port := read(pod("p-1", "", apart(zone, "p"))), read(pod("s-1", "cpu=1", spread(zone, 1, "s"))), read(pod("l", "", listening(80)))
		ask := func() []Obstacle { return []Obstacle{r.Ask(jealous, "n"), r.Ask(evener, "n"), r.Ask(port, "n")} }
		Expect(ask()).To(HaveEach(Fits))
		for _, p := range []*Pod{jealous, evener, port} {
			r.Put(p, "n")
		}
		Expect(ask()).To(Equal([]Obstacle{Repelled, Uneven, PortTaken}))
		r.Put(evener, "m")
		Expect(r.Ask(evener, "n")).To(Equal(Fits))
		r.Remove(evener, "m")
		for _, p := range []*Pod{jealous, evener, port} {
			r.Remove(p, "n")
			r.Remove(p, "n") // there is no more of it
		}
		Expect(ask()).To(HaveEach(Fits))
	})

	It("keeps the ports of others when a pod goes", func() {
		r, passing := NewRoom([]Node{on(node("n"), pod("q", "", listening(80)), pod("r", "", listening(81)))}), read(pod("p", "", listening(82)))
		r.Put(passing, "n")
		r.Remove(passing, "n")
		Expect([]Obstacle{r.Ask(read(pod("s", "", listening(80))), "n"), r.Ask(read(pod("t", "", listening(81))), "n"), r.Ask(passing, "n")}).
			To(Equal([]Obstacle{PortTaken, PortTaken, Fits}))
	})

	It("measures how even pods are by what is left when one goes", func() {
		q := read(pod("p-2", ""))
		r := NewRoom([]Node{on(node("n", in("a")), pod("p-1", "")), {Object: node("m", in("b")), Pods: []*Pod{q}}})
		p := read(pod("p", "", spread(zone, 1, "p")))
		Expect(r.Ask(p, "n")).To(Equal(Fits))
		r.Remove(q, "m")
		Expect(r.Ask(p, "n")).To(Equal(Uneven), "zone b is empty now")
		r.Put(q, "m")
		Expect(r.Ask(p, "n")).To(Equal(Fits))
	})

	It("forgets what kept others away, also for those that it was not asked about before", func() {
		r, jealous := NewRoom(open(node("n"))), read(pod("q", "", apart(hostname, "p")))
		r.Put(jealous, "n")
		r.Remove(jealous, "n")
		Expect(r.Ask(read(pod("p", "")), "n")).To(Equal(Fits))
	})

	It("does not ask for the company that a running pod came to be with, unless it is to move", func() {
		p, r := pod("p", "", together(zone, "q"), runs), NewRoom(open(node("m", in("a"))))
		Expect(r.Ask(Read(p, false), "m")).To(Equal(Fits))
		Expect(r.Ask(Read(p, true), "m")).To(Equal(Lonely))
	})

	It("does not mind nodes that it does not have", func() {
		r := NewRoom(nil)
		r.Put(read(pod("p", "")), "n")
		r.Remove(read(pod("p", "")), "n")
		Expect(r.Ask(read(pod("p", "")), "n")).To(Equal(Elsewhere))
	})
})
