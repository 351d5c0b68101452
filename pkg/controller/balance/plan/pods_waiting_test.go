// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

var _ = Describe("A pod that waits", func() {
	bound := func(zone string) *fit.Pod { return pod("bound", "", InZone(zone)) }

	DescribeTable("keeps growth where it can run", func(want string, pods ...*fit.Pod) {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		w.Waiting = pods
		w.ask("b", 5)
		w.settle()
		Expect(w.replicas()).To(Equal(want))
	},
		Entry("anywhere", "3/3/3", pod("free", "")),
		Entry("in its zone", "2/5/2", bound("b")),
		Entry("in its zone, among others", "2/5/2", pod("free", ""), bound("b")),
		Entry("not here at all, so it is no reason", "3/3/3", bound("a")),
		Entry("too large for any, so it is no reason", "3/3/3", pod("large", "", func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"no": "such"}
		})),
		Entry("that cannot be decided", "2/5/2", pod("odd", "", func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device"}}
		})),
	)

	It("says so", func() {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		w.Waiting = []*fit.Pod{bound("b")}
		w.ask("b", 5)
		p := New(w.View)
		Expect(condition(p, "b", ConditionBalanced)).To(Equal("False PodsBound"))
		Expect(p.Blocks).To(HaveKeyWithValue("b", "PodsBound"))
	})

	DescribeTable("and is not there yet is taken to be like those that run where growth was asked for", func(want string, waiting *fit.Pod, pods ...*fit.Pod) {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		w.put("b", 0, pods...)
		if waiting != nil {
			w.Waiting = []*fit.Pod{waiting}
		}
		w.ask("b", 5)
		w.settle()
		Expect(w.replicas()).To(Equal(want))
	},
		Entry("none run", "3/3/3", nil),
		Entry("they could run anywhere", "3/3/3", nil, pod("free", "b-0")),
		Entry("all are bound to the zone", "2/5/2", nil, pod("x", "b-0", InZone("b")), pod("y", "b-0", InZone("b"), app("y"))),
		Entry("some are bound to the zone", "3/3/3", nil, pod("x", "b-0", InZone("b")), pod("free", "b-0")),
		Entry("all are bound to the zone, but those that wait decide", "3/3/3", pod("free", ""), pod("x", "b-0", InZone("b"))),
		Entry("all are bound to the zone, and those that wait could not run there", "2/5/2", bound("a"), pod("x", "b-0", InZone("b"))),
	)

	It("keeps growth where spread and other pods allow it", func() {
		w := newWorld(zones(ScaleUp, 1, 1)...)
		apart := func(p *corev1.Pod) {
			p.Labels = map[string]string{"app": "x"}
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
			}}}}
		}
		node := w.Members[0].Fresh.DeepCopy()
		node.Name = "a-0"
		w.Nodes = []fit.Node{{Object: node, Pods: []*fit.Pod{pod("there", "a-0", apart)}}}
		w.Waiting = []*fit.Pod{pod("waits", "", apart)}
		w.ask("b", 3)
		w.settle()
		Expect(w.replicas()).To(Equal("1/3"), "a has one of its kind")
	})

	It("where nothing is known of a zone keeps growth from there", func() {
		members := zones(ScaleUp, 2, 2)
		members[1].Fresh = nil
		w := newWorld(members...)
		w.Waiting = []*fit.Pod{pod("free", "")}
		w.ask("a", 4)
		w.settle()
		Expect(w.replicas()).To(Equal("4/2"))
	})
})
