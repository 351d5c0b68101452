// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/fit"
)

func selecting(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

// requiring is required node affinity of one expression.
func requiring(key string, operator corev1.NodeSelectorOperator, values ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		affinity(p).NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}},
		}}
	}
}

func tolerating(t corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
}

func with(taints ...corev1.Taint) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = taints }
}

func cordon(n *corev1.Node) { n.Spec.Unschedulable = true }

// initially adds an init container. A sidecar starts before the init containers that follow it, and
// runs beside the containers.
func initially(requests string, sidecar bool) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := corev1.Container{Name: "init", Resources: corev1.ResourceRequirements{Requests: amounts(requests)}}
		if sidecar {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
}

var (
	blue     = corev1.Taint{Key: "colour", Value: "blue", Effect: corev1.TaintEffectNoSchedule}
	evicting = corev1.Taint{Key: "colour", Value: "blue", Effect: corev1.TaintEffectNoExecute}
	fain     = corev1.Taint{Key: "colour", Value: "blue", Effect: corev1.TaintEffectPreferNoSchedule}
)

func inGroup(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{} }

var _ = DescribeTable("A pod on an empty node",
	func(want Obstacle, n *corev1.Node, p *corev1.Pod) {
		Expect(On(read(p), n)).To(Equal(want))
		if want != Undecided {
			By("saying the same in a room with that node")
			Expect(NewRoom(open(n)).Ask(read(p), n.Name)).To(Equal(want))
		}
	},
	Entry("that requests nothing", Fits, node("n"), pod("p", "")),
	Entry("that fills it", Fits, node("n"), pod("p", "cpu=4 memory=8Gi")),
	Entry("too much CPU, by a thousandth", Full, node("n"), pod("p", "cpu=4001m")),
	Entry("too much memory, by a byte", Full, node("n"), pod("p", "memory=8589934593")),
	Entry("a resource that it does not have", Full, node("n"), pod("p", "example.com/gpu=1")),
	Entry("a resource that it has", Fits, node("n", has("example.com/gpu=2")), pod("p", "example.com/gpu=2")),
	Entry("more of that", Full, node("n", has("example.com/gpu=2")), pod("p", "example.com/gpu=3")),
	Entry("huge pages", Full, node("n", has("hugepages-2Mi=4Mi")), pod("p", "hugepages-2Mi=6Mi")),
	Entry("disk", Full, node("n", has("ephemeral-storage=1Gi")), pod("p", "ephemeral-storage=2Gi")),
	Entry("none of what it does not have", Fits, node("n"), pod("p", "example.com/gpu=0")),
	Entry("a node that takes no pods at all", Full, node("n", has("pods=0")), pod("p", "")),
	Entry("an init container that needs more", Full, node("n"), pod("p", "cpu=1", initially("cpu=5", false))),
	Entry("an init container that needs less", Fits, node("n"), pod("p", "cpu=4", initially("cpu=3", false))),
	Entry("a sidecar adds up", Full, node("n"), pod("p", "cpu=2", initially("cpu=3", true))),
	Entry("overhead", Full, node("n"), pod("p", "cpu=4", func(p *corev1.Pod) { p.Spec.Overhead = amounts("cpu=1m") })),
	Entry("a request of the pod as a whole", Full, node("n"), pod("p", "cpu=1", func(p *corev1.Pod) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu=5")}
	})),

	Entry("selected", Fits, node("n", labelled("disk", "ssd")), pod("p", "", selecting("disk", "ssd"))),
	Entry("not selected", Elsewhere, node("n"), pod("p", "", selecting("disk", "ssd"))),
	Entry("required", Fits, node("n", in("b")), pod("p", "", requiring(zone, corev1.NodeSelectorOpIn, "a", "b"))),
	Entry("required elsewhere", Elsewhere, node("n", in("c")), pod("p", "", requiring(zone, corev1.NodeSelectorOpIn, "a", "b"))),
	Entry("required to be absent", Elsewhere, node("n", in("c")), pod("p", "", requiring(zone, corev1.NodeSelectorOpDoesNotExist))),
	Entry("required above a number", Fits, node("n", labelled("generation", "7")), pod("p", "", requiring("generation", corev1.NodeSelectorOpGt, "6"))),
	Entry("malformed", Elsewhere, node("n", in("a")), pod("p", "", requiring(zone, "Near", "a"))),
	Entry("required by name", Elsewhere, node("n"), pod("p", "", func(p *corev1.Pod) {
		affinity(p).NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"m"}}}}},
		}}
	})),
	Entry("preferred elsewhere", Fits, node("n"), pod("p", "", func(p *corev1.Pod) {
		affinity(p).NodeAffinity = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100}}}
	})),

	Entry("a taint", Tainted, node("n", with(blue)), pod("p", "")),
	Entry("a taint that also evicts", Tainted, node("n", with(evicting)), pod("p", "")),
	Entry("a taint that only asks", Fits, node("n", with(fain)), pod("p", "")),
	Entry("tolerated", Fits, node("n", with(blue)), pod("p", "", tolerating(corev1.Toleration{Key: "colour", Value: "blue"}))),
	Entry("tolerated whatever the value", Fits, node("n", with(blue)), pod("p", "", tolerant("colour"))),
	Entry("everything tolerated", Fits, node("n", with(blue, evicting), cordon), pod("p", "", tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}))),
	Entry("another value", Tainted, node("n", with(blue)), pod("p", "", tolerating(corev1.Toleration{Key: "colour", Value: "red"}))),
	Entry("another key", Tainted, node("n", with(blue)), pod("p", "", tolerant("shape"))),
	Entry("another effect", Tainted, node("n", with(evicting)), pod("p", "", tolerating(corev1.Toleration{Key: "colour", Value: "blue", Effect: corev1.TaintEffectNoSchedule}))),
	Entry("another effect, that evicts", Tainted, node("n", with(blue)), pod("p", "", tolerating(corev1.Toleration{Key: "colour", Value: "blue", Effect: corev1.TaintEffectNoExecute}))),
	Entry("one of two tolerated", Tainted, node("n", with(blue, corev1.Taint{Key: "size", Effect: corev1.TaintEffectNoSchedule})), pod("p", "", tolerant("colour"))),
	Entry("an unknown operator", Undecided, node("n", with(blue)), pod("p", "", tolerating(corev1.Toleration{Key: "colour", Operator: "Near"}))),
	Entry("a number tolerated", Undecided, node("n"), pod("p", "", tolerating(corev1.Toleration{Key: "risk", Operator: corev1.TolerationOpLt, Value: "5"}))),
	Entry("cordoned", Tainted, node("n", cordon), pod("p", "")),
	Entry("cordoned and tolerated", Fits, node("n", cordon), pod("p", "", tolerant(corev1.TaintNodeUnschedulable))),

	Entry("devices claimed", Undecided, node("n"), pod("p", "", func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} })),
	Entry("one of a group", Undecided, node("n"), pod("p", "", inGroup)),
	Entry("one of a group, not selected", Elsewhere, node("n"), pod("p", "", inGroup, selecting("disk", "ssd"))),
	Entry("one of a group, too large, not selected", Elsewhere, node("n"), pod("p", "cpu=5", inGroup, selecting("disk", "ssd"))),
)

var _ = Describe("On", func() {
	It("leaves out the taints that are to go", func() {
		n := node("n", tainted(reserved, "other"))
		Expect(On(read(pod("p", "")), n)).To(Equal(Tainted))
		Expect(On(read(pod("p", "")), n, reserved)).To(Equal(Tainted))
		Expect(On(read(pod("p", "")), n, reserved, "other")).To(Equal(Fits))
		Expect(n.Spec.Taints).To(HaveLen(2), "the node is not changed")
	})

	It("says where else a pod could go that runs", func() {
		p := pod("p", "", selecting("disk", "ssd"), together(hostname, "q"), func(p *corev1.Pod) { p.Spec.NodeName = "n" })
		Expect(On(read(p), node("m"))).To(Equal(Elsewhere))
		Expect(On(read(p), node("m", labelled("disk", "ssd")))).To(Equal(Fits))
		Expect(NewRoom(open(node("m", labelled("disk", "ssd")))).Ask(read(p), "m")).To(Equal(Lonely))
	})

	It("does not take a comparison of numbers for toleration, where the pod does not wait", func() {
		p := pod("p", "", tolerating(corev1.Toleration{Key: "colour", Operator: corev1.TolerationOpLt, Value: "blue"}))
		Expect(On(Read(p, false), node("n", with(blue)))).To(Equal(Tainted))
	})

	It("cares for what the node is, not for others", func() {
		p := read(pod("p", "cpu=1", apart(hostname, "p"), together(zone, "q"), spread(zone, 1, "p")))
		Expect(On(p, node("n"))).To(Equal(Fits))
	})
})
