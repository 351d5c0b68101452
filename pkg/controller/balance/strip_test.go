// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/internal/gen"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance"
	"github.com/evenkeel/evenkeel/pkg/fit"
)

// huge is as large as an object's annotations may be.
var huge = strings.Repeat("x", 256<<10)

// strip is an object as a cache keeps it.
func strip[T any](transform func(any) (any, error), o T) T {
	GinkgoHelper()
	slim, err := transform(o)
	Expect(err).NotTo(HaveOccurred())
	return slim.(T)
}

var _ = Describe("What is kept", func() {
	DescribeTable("of a pod is bounded, whatever its author wrote", func(node string, change func(*corev1.Pod)) {
		slim := strip(StripPod, gen.Pod("p", func(p *corev1.Pod) { p.Spec.NodeName = node }, change))
		Expect(slim.Size()).To(BeNumerically("<", fit.MaxBytes+1<<10))
		Expect(slim.Spec.NodeName).To(Equal(node))
	},
		Entry("in annotations", "", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"a": huge, "cluster-autoscaler.kubernetes.io/safe-to-evict": huge, corev1.MirrorPodAnnotationKey: huge}
		}),
		Entry("in labels, where it runs", "n", func(p *corev1.Pod) {
			p.Labels = map[string]string{}
			for i := range 5000 {
				p.Labels[fmt.Sprintf("label-%d", i)] = "some value"
			}
		}),
		Entry("in constraints", "n", func(p *corev1.Pod) {
			for range 100 {
				p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{WhenUnsatisfiable: corev1.DoNotSchedule, TopologyKey: "k"})
			}
		}),
		Entry("in containers", "", func(p *corev1.Pod) {
			for i := range 500 {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint(i), Command: []string{huge[:1000]}})
			}
		}),
	)

	It("of a Node and a budget is bounded, and a budget that cannot be read lets no pod go", func() {
		annotations := map[string]string{"a": huge}
		Expect(strip(StripNode, gen.Node("n", func(n *corev1.Node) { n.Annotations = annotations })).Size()).To(BeNumerically("<", 1<<10))
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b", Annotations: annotations}}
		b.Spec.Selector, b.Status.DisruptionsAllowed = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, 3
		Expect(strip(StripBudget, b).Status.DisruptionsAllowed).To(BeEquivalentTo(3))
		Expect(strip(StripBudget, b).Spec.Selector.MatchLabels).To(HaveLen(1))
		b.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: []string{huge}}}
		Expect(strip(StripBudget, b).Size()).To(BeNumerically("<", 1<<10))
		Expect(strip(StripBudget, b).Status.DisruptionsAllowed).To(BeZero())
	})
})

var _ = Describe("Work that users of the target cluster could make endless is bounded", func() {
	It("in the kinds of pods that wait: where there are too many, growth stays where it was asked for", func() {
		w := newWorld(zones(scaleUp, 2, 2, 2)...)
		for i := range 5000 {
			w.Waiting = append(w.Waiting, pod(fmt.Sprint("p", i), "", app(fmt.Sprint("app", i))))
		}
		w.ask("b", 5)
		p := NewPlan(w.View)
		Expect(condition(p, "b", ConditionBalanced)).To(Equal("False PodsBound"))
		w.Waiting = w.Waiting[:100]
		Expect(writes(NewPlan(w.View))).To(ContainSubstring("move"))
	})

	It("in budgets: a namespace with too many of them lets no pod go", func() {
		v := view(zones(continuous, 3, 1)...)
		for i := range v.Members[0].Machines {
			m := &v.Members[0].Machines[i]
			hold(m, pod("x", m.Object.Name))
			v.Nodes = append(v.Nodes, fit.Node{Object: node(m.Object.Name), Pods: m.Workload})
		}
		for i := range 5000 {
			v.Budgets = append(v.Budgets, budget(fmt.Sprint("q", i), 1))
		}
		Expect(condition(NewPlan(v), "a", ConditionBalanced)).To(Equal("False PodDisruptionBudget"))
		v.Budgets = v.Budgets[:100]
		Expect(condition(NewPlan(v), "a", ConditionBalanced)).To(Equal("False Moving"))
	})
})
