// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = It("The reserve taint is that of its key, whatever its value and effect", func() {
	Expect(pool.IsReserveTaint(taint(machine.ReserveTaintKey, "x", corev1.TaintEffectNoExecute))).To(BeTrue())
	Expect(pool.IsReserveTaint(dedicated)).To(BeFalse())
})

var _ = DescribeTable("The effects that hold a machine in reserve are", func(taints []corev1.Taint, want ...corev1.TaintEffect) {
	m := fixture.Machine("m", func(m *mcm.Machine) { m.Spec.NodeTemplateSpec.Spec.Taints = taints })
	Expect(pool.ReserveEffects(m)).To(Equal(want))
},
	Entry("NoSchedule in any case", nil, corev1.TaintEffectNoSchedule),
	Entry("each of its reserve taints once",
		[]corev1.Taint{taint(machine.ReserveTaintKey, "", corev1.TaintEffectNoSchedule), taint(machine.ReserveTaintKey, "", corev1.TaintEffectNoExecute), taint(machine.ReserveTaintKey, "x", corev1.TaintEffectNoExecute)},
		corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute),
	Entry("none of another taint", []corev1.Taint{taint("dedicated", "", corev1.TaintEffectNoExecute)}, corev1.TaintEffectNoSchedule),
)

var _ = DescribeTable("Of a pod's tolerations, the reserve needs", func(all []corev1.Toleration, want ...corev1.Toleration) {
	Expect(pool.ReserveTolerations(&corev1.Pod{Spec: corev1.PodSpec{Tolerations: all}})).To(HaveExactElements(want))
},
	Entry("none of another taint", []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}),
	Entry("one of everything, once", []corev1.Toleration{tolerateAll}, tolerateAll),
	Entry("one for each effect", []corev1.Toleration{tolerate(corev1.TaintEffectNoExecute), tolerate(corev1.TaintEffectPreferNoSchedule), tolerate(corev1.TaintEffectNoSchedule)},
		tolerate(corev1.TaintEffectNoSchedule), tolerate(corev1.TaintEffectPreferNoSchedule), tolerate(corev1.TaintEffectNoExecute)),
	Entry("the first for an effect, and none that adds nothing", []corev1.Toleration{tolerate(corev1.TaintEffectNoSchedule), tolerateAll, tolerate(corev1.TaintEffectNoExecute)},
		tolerate(corev1.TaintEffectNoSchedule), tolerateAll),
)

var tolerateAll = corev1.Toleration{Operator: corev1.TolerationOpExists}

var _ = DescribeTable("Pods can be bound to a Node", func(want bool, change func(*corev1.Node)) {
	Expect(pool.NodeReady(fixture.Node("n", change))).To(Equal(want))
},
	Entry("that is ready", true, func(*corev1.Node) {}),
	Entry("that has another taint", true, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{dedicated} }),
	Entry("not before it is ready, though another condition is true", false, func(n *corev1.Node) {
		unready(n)
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue})
	}),
	Entry("not while it has the taint of a Node that is not ready", false, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{dedicated, taint(corev1.TaintNodeNotReady, "", corev1.TaintEffectNoSchedule)}
	}),
	Entry("not while it has the taint of an unreachable Node", false, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{taint(corev1.TaintNodeUnreachable, "", corev1.TaintEffectNoExecute)}
	}),
)
