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

// limiting is a container with a limit, which has a port of its own, and one that is also a port of the node.
func limiting(limits string) corev1.Container {
	return corev1.Container{
		Resources: corev1.ResourceRequirements{Limits: amounts(limits)},
		Ports:     []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 81, HostPort: 8081}},
	}
}

var _ = Describe("The spec of a template", func() {
	var s corev1.PodSpec
	BeforeEach(func() {
		s = corev1.PodSpec{Containers: []corev1.Container{limiting("cpu=1")}, InitContainers: []corev1.Container{limiting("cpu=2")}}
	})

	// of is what is said about each container, the init container last.
	of := func(what func(corev1.Container) any) []any {
		return []any{what(s.Containers[0]), what(s.InitContainers[0])}
	}
	requests := func(c corev1.Container) any { return c.Resources.Requests }
	hostPorts := func(c corev1.Container) any { return []int32{c.Ports[0].HostPort, c.Ports[1].HostPort} }

	It("is completed with requests for what containers limit, also in init containers", func() {
		CompleteSpec(&s)
		Expect(of(requests)).To(HaveExactElements(Equal(amounts("cpu=1")), Equal(amounts("cpu=2"))))
	})

	It("keeps what is requested already", func() {
		s.Containers[0].Resources.Requests = amounts("cpu=500m")
		CompleteSpec(&s)
		Expect(requests(s.Containers[0])).To(Equal(amounts("cpu=500m")))
	})

	It("is completed with the ports of containers as ports of the node, where the pod is in the network of the node", func() {
		s.HostNetwork = true
		CompleteSpec(&s)
		Expect(of(hostPorts)).To(HaveEach([]int32{80, 8081}))
	})

	It("takes no ports of the node but those it names, where the pod has a network of its own", func() {
		CompleteSpec(&s)
		Expect(of(hostPorts)).To(HaveEach([]int32{0, 8081}))
	})

	It("is completed with requests for what the pod as a whole limits and no container requests", func() {
		s.Containers[0].Resources.Requests = amounts("cpu=1")
		s.Resources = &corev1.ResourceRequirements{Limits: amounts("cpu=3 memory=1Gi")}
		CompleteSpec(&s)
		Expect(s.Resources.Requests).To(Equal(amounts("memory=1Gi")))
	})
})

var _ = DescribeTable("Of rules about other pods that cannot be decided here it is said",
	func(want string, change func(*corev1.PodSpec)) {
		for _, waits := range []bool{true, false} {
			p := pod("p", "cpu=1", func(p *corev1.Pod) { change(&p.Spec) })
			Expect(Read(p, waits).Unclear).To(Equal(want))
		}
	},
	Entry("nothing, if all can", "", spreading(func(*corev1.TopologySpreadConstraint) {})),
	Entry("that a spread depends on taints", "its topology spread over "+zone+" depends on taints",
		spreading(func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor) })),
	Entry("nothing of a spread that does not", "",
		spreading(func(c *corev1.TopologySpreadConstraint) {
			c.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyIgnore)
		})),
	Entry("that a spread is malformed", "its topology spread over "+zone+" is malformed",
		spreading(func(c *corev1.TopologySpreadConstraint) { c.LabelSelector = malformed })),
	Entry("that affinity is malformed", "the selector of its pod affinity is malformed", affine(corev1.PodAffinityTerm{LabelSelector: malformed})),
	Entry("that anti-affinity is malformed", "the selector of its pod affinity is malformed", averse(corev1.PodAffinityTerm{LabelSelector: malformed})),
	Entry("that labels of namespaces count", "its pod affinity selects namespaces by their labels",
		affine(corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}})),
	Entry("that expressions on labels of namespaces count", "its pod affinity selects namespaces by their labels",
		averse(corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpExists}}}})),
	Entry("that both labels and expressions count", "its pod affinity selects namespaces by their labels",
		averse(corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"a": "b"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpExists}},
		}})),
	Entry("nothing, if all namespaces do", "", affine(corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{}})),
)

var _ = It("Reading a running pod does not check whether it could be placed elsewhere", func() {
	p := pod("p", "", func(p *corev1.Pod) {
		p.Spec.ResourceClaims, p.Spec.NodeName = []corev1.PodResourceClaim{{Name: "gpu"}}, "n"
	})
	Expect(Read(p, false).Unclear).To(BeEmpty())
	Expect(Read(p, true).Unclear).To(Equal("it claims devices"))
})

var _ = It("If several things cannot be decided, the first one is reported, and volumes last", func() {
	p := pod("p", "", claiming("none"), func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} },
		spread(zone, 1, "p", func(c *corev1.TopologySpreadConstraint) { c.LabelSelector = malformed }))
	Expect(read(p).Unclear).To(Equal("its topology spread over " + zone + " is malformed"))
	p.Spec.TopologySpreadConstraints = nil
	Expect(NewPod(p, cluster{}.lookups()).Unclear).To(Equal("it claims devices"))
	Expect(read(p).Unclear).To(Equal("its claim gpu is of a kind that is not known here"))
	p.Spec.ResourceClaims = nil
	Expect(read(p).Unclear).To(Equal("its claim none does not exist"))
})

var malformed = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}

func spreading(change func(*corev1.TopologySpreadConstraint)) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: zone, WhenUnsatisfiable: corev1.DoNotSchedule}}
		change(&s.TopologySpreadConstraints[0])
	}
}

func affine(term corev1.PodAffinityTerm) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	}
}

func averse(term corev1.PodAffinityTerm) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	}
}
