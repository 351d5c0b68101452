// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	. "github.com/evenkeel/evenkeel/test/builders/release"
)

// nominatedFor returns a pod that is nominated for a node.
func nominatedFor(node, name string, milli int64, change ...func(*corev1.Pod)) *corev1.Pod {
	p := Pod(name, milli, change...)
	p.Status.NominatedNodeName = node
	return p
}

// worth sets the priority of a pod.
func worth(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Priority = ptr.To(n) }
}

// neverPreempting keeps the scheduler from removing other pods for this one.
func neverPreempting(p *corev1.Pod) { p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever) }

// createdAt sets since when a pod has existed.
func createdAt(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(at) }
}

// besideIt has a pod run only where one with a label runs.
func besideIt(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		}}}
	}
}

// inThreeZones has a pod and those like it spread evenly over at least three zones.
func inThreeZones(p *corev1.Pod) {
	p.Labels = map[string]string{"app": "even"}
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, MaxSkew: 1, MinDomains: ptr.To[int32](3), LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
	}}
}

// avoidingTeam keeps a pod away from all pods in namespaces of a team. Which these are is unknown.
func avoidingTeam(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}},
	}}}
}

// listening has a pod use a port of its node.
func listening(p *corev1.Pod) {
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
}

// these are pods on a node with four CPUs, or nominated for nodes.
func these(pods ...*corev1.Pod) []*corev1.Pod { return pods }

var _ = DescribeTable("A pod that is nominated for a node with four CPUs",
	func(want bool, pod *corev1.Pod, running, nominated []*corev1.Pod) {
		read := func(p *corev1.Pod) *fit.Pod { return fit.NewPod(p, nothing) }
		Expect(IsCrowdedOut(pod, NodeIn("n", "z"), running, nominated, read)).To(Equal(want))
	},
	Entry("has its place where nothing runs", false, nominatedFor("n", "p", 4000), nil, nil),
	Entry("has its place beside what leaves it room", false, nominatedFor("n", "p", 1000), these(Pod("q", 3000)), nil),
	Entry("is crowded out by what runs there", true, nominatedFor("n", "p", 1000), these(Pod("q", 4000)), nil),
	Entry("is crowded out by two that run there", true, nominatedFor("n", "p", 1000), these(Pod("q", 2000), Pod("r", 2000)), nil),
	Entry("is crowded out by what is more important", true, nominatedFor("n", "p", 1000), these(Pod("q", 4000, worth(1))), nil),
	Entry("is not crowded out by what is less important, since preemption removes it", false, nominatedFor("n", "p", 1000), these(Pod("q", 4000, worth(-1))), nil),
	Entry("is crowded out by what is less important if it never preempts others", true, nominatedFor("n", "p", 1000, neverPreempting), these(Pod("q", 4000, worth(-1))), nil),
	Entry("has its place beside what is less important and leaves it room if it never preempts others", false, nominatedFor("n", "p", 1000, neverPreempting),
		these(Pod("q", 3000, worth(-1))), nil),
	Entry("is not crowded out by what has finished", false, nominatedFor("n", "p", 1000),
		these(Pod("q", 4000, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })), nil),
	Entry("is not crowded out by what is being deleted", false, nominatedFor("n", "p", 1000),
		these(Pod("q", 4000, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: Noon} })), nil),
	Entry("is not crowded out if it would not fit the empty node either", false, nominatedFor("n", "p", 5000), these(Pod("q", 4000)), nil),
	Entry("is crowded out by what runs there, also if the node is the wrong one anyway", true, nominatedFor("n", "p", 1000, InZone("elsewhere")), these(Pod("q", 4000)), nil),
	Entry("has its place beside the one that it has to run with", false, nominatedFor("n", "p", 1000, besideIt("q")), these(Pod("q", 1000)), nil),

	Entry("has its place beside one of those that it is spread with, since only other nodes show whether the zones are even", false,
		nominatedFor("n", "p", 1000, inThreeZones), these(Pod("q", 1000, inThreeZones)), nil),
	Entry("has its place beside one that may or may not keep it away", false, nominatedFor("n", "p", 1000), these(Pod("q", 1000, avoidingTeam)), nil),
	Entry("is crowded out where one runs that keeps it away", true, nominatedFor("n", "p", 1000, Apart), these(Pod("p-1", 1000, Apart)), nil),
	Entry("is crowded out where another has its port", true, nominatedFor("n", "p", 1000, listening), these(Pod("q", 1000, listening)), nil),

	Entry("is crowded out by a more important one that is nominated, too", true, nominatedFor("n", "p", 1000), nil, these(nominatedFor("n", "q", 4000, worth(1)))),
	Entry("is crowded out by an older one that is nominated, too", true, nominatedFor("n", "p", 1000, createdAt(Noon)), nil,
		these(nominatedFor("n", "q", 4000, createdAt(Noon.Add(-time.Second))))),
	Entry("is not crowded out by a younger one that is nominated, too", false, nominatedFor("n", "p", 1000, createdAt(Noon)), nil,
		these(nominatedFor("n", "q", 4000, createdAt(Noon.Add(time.Second))))),
	Entry("is not crowded out by one that is nominated for another node", false, nominatedFor("n", "p", 1000), nil, these(nominatedFor("m", "q", 4000, worth(1)))),
	Entry("is not crowded out by its own nomination", false, nominatedFor("n", "p", 3000), nil, these(nominatedFor("n", "p", 3000))),
	Entry("is not crowded out by one that has no place there itself", false, nominatedFor("n", "p", 2000), these(Pod("r", 2000)), these(nominatedFor("n", "q", 3000, worth(1)))),
	Entry("is crowded out by the most important one that is nominated, which takes the room of the next", true, nominatedFor("n", "p", 2000), nil,
		these(nominatedFor("n", "q", 2000, worth(1)), nominatedFor("n", "r", 3000, worth(2)))),
)
