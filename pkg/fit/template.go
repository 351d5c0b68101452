// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	requests "k8s.io/component-helpers/resource"
)

// CompleteSpec sets in the spec of a template what the API server sets in a pod of it, and not in
// the template: a resource that has a limit and no request requests its limit, and in the network of
// the node, each port is one of the node.
func CompleteSpec(s *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range containers {
			requestLimits(&containers[i].Resources, containers[i].Resources.Limits)
			if s.HostNetwork {
				useHostPorts(containers[i].Ports)
			}
		}
	}
	if s.Resources != nil {
		requestLimits(s.Resources, unrequested(s))
	}
}

func requestLimits(r *corev1.ResourceRequirements, limits corev1.ResourceList) {
	for name, q := range limits {
		if _, requested := r.Requests[name]; !requested {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = q
		}
	}
}

func useHostPorts(ports []corev1.ContainerPort) {
	for i := range ports {
		ports[i].HostPort = cmp.Or(ports[i].HostPort, ports[i].ContainerPort)
	}
}

// unrequested returns the limits of a pod as a whole, without those of resources that its containers
// request. Huge pages are always requested in full.
func unrequested(s *corev1.PodSpec) corev1.ResourceList {
	limits, requested := maps.Clone(s.Resources.Limits), requests.AggregateContainerRequests(&corev1.Pod{Spec: *s}, requests.PodResourcesOptions{})
	maps.DeleteFunc(limits, func(name corev1.ResourceName, _ resource.Quantity) bool {
		_, is := requested[name]
		return is && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
	})
	return limits
}
