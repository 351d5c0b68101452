// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

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
