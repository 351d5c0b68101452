// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = DescribeTable("A machine without a Node", func(phase mcm.MachinePhase, ready, unhealthy, registered bool) {
	m := pool.Machine{Object: fixture.Machine("m", func(m *mcm.Machine) { m.Status.CurrentStatus.Phase = phase })}
	Expect(m.Ready()).To(Equal(ready), "ready")
	Expect(pool.Unhealthy(m.Phase())).To(Equal(unhealthy), "unhealthy")
	Expect(m.Registered()).To(Equal(registered), "registered")
	m.Node = fixture.Node("m")
	Expect(m.Registered()).To(BeTrue(), "registered with a Node")
},
	Entry("is none of these while it is new", mcm.MachinePhase(""), false, false, false),
	Entry("is none of these while it is created", mcm.MachinePending, false, false, false),
	Entry("is none of these while its creation is tried again", mcm.MachineCrashLoopBackOff, false, false, false),
	Entry("is ready, and had one, while it runs", mcm.MachineRunning, true, false, true),
	Entry("is ready, and had one, while it is available", mcm.MachineAvailable, true, false, true),
	Entry("is unhealthy, and had one, while it does not answer", mcm.MachineUnknown, false, true, true),
	Entry("is unhealthy, and had one, once it has failed", mcm.MachineFailed, false, true, true),
	Entry("is unhealthy, and had one, once its update in place has failed", mcm.MachineInPlaceUpdateFailed, false, true, true),
	Entry("is none of these while it is updated in place", mcm.MachineInPlaceUpdating, false, false, false),
	Entry("is none of these while it is deleted", mcm.MachineTerminating, false, false, false),
)

var _ = DescribeTable("A machine", func(node *corev1.Node, cordoned, tainted bool) {
	m := pool.Machine{Node: node, Object: fixture.Machine("m", func(m *mcm.Machine) {
		m.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{dedicated}
	})}
	Expect([]bool{m.Cordoned(), m.Tainted()}).To(Equal([]bool{cordoned, tainted}))
},
	Entry("is neither cordoned nor tainted before it has a Node", nil, false, false),
	Entry("is neither with the taint of its template alone", fixture.Node("m", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{dedicated} }), false, false),
	Entry("is cordoned if its Node is", fixture.Node("m", cordoned), true, false),
	Entry("is cordoned if it is preserved after it has failed, as a newer machine controller says", fixture.Node("m", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{taint("node.machine.sapcloud.io/preserved", "", corev1.TaintEffectNoSchedule)}
	}), true, true),
	Entry("is tainted with one of another client", fixture.Node("m", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{dedicated, taint("maintenance", "", corev1.TaintEffectNoSchedule)}
	}), false, true),
)

var _ = DescribeTable("A MachineDeployment's reserve counts a marked machine", func(exist, ready int, change func(*world, *mcm.Machine)) {
	w := newWorld()
	w.machine("new", "serving")
	w.machine("foreign", "not its own", marked)
	w.machine("old", "always counted", marked)
	change(w, w.machine("new", "m", marked))
	gotExist, gotReady := pool.CountSpares(w.deployment, pool.NewList(w.Objects))
	Expect([]int{gotExist, gotReady}).To(Equal([]int{1 + exist, 1 + ready}))
},
	Entry("as ready while it runs", 1, 1, func(*world, *mcm.Machine) {}),
	Entry("as not ready while it is created", 1, 0, func(_ *world, m *mcm.Machine) { m.Status.CurrentStatus.Phase = mcm.MachinePending }),
	Entry("not without its mark", 0, 0, func(_ *world, m *mcm.Machine) { delete(m.Annotations, machine.ReserveAnnotation) }),
	Entry("not while it is deleted", 0, 0, func(_ *world, m *mcm.Machine) { m.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }),
	Entry("not while it is terminating", 0, 0, func(_ *world, m *mcm.Machine) { m.Status.CurrentStatus.Phase = mcm.MachineTerminating }),
	Entry("not once it has failed", 0, 0, func(_ *world, m *mcm.Machine) { m.Status.CurrentStatus.Phase = mcm.MachineFailed }),
	Entry("not if its MachineDeployment names it for deletion", 0, 0, func(w *world, _ *mcm.Machine) { w.deployment.Annotations[trigger] = "m" }),
	Entry("not if it is condemned", 0, 0, func(_ *world, m *mcm.Machine) {
		m.Annotations[priority], m.Annotations[condemned] = "1", noon.Format(time.RFC3339)
	}),
	Entry("even with the priority of a deletion", 1, 1, func(_ *world, m *mcm.Machine) { m.Annotations[priority] = "1" }),
)

var _ = It("A machine counts its pods, and those that do not tolerate its reserve taint", func() {
	w := newWorld()
	w.machine("new", "m", marked)
	w.node("m")
	w.pod("m")
	w.pod("m", tolerating(corev1.TaintEffectNoSchedule))
	w.pod("m")
	w.pod("m", func(p *corev1.Pod) { p.OwnerReferences = ownedBy("DaemonSet", "proxy") })
	m := w.one("m")
	Expect([]int{m.Pods, m.NonTolerating}).To(Equal([]int{3, 2}))
})

var _ = DescribeTable("A machine is updated in place", func(phase mcm.MachinePhase, is bool) {
	Expect(pool.UpdatedInPlace(phase)).To(Equal(is))
},
	Entry("while it is", mcm.MachineInPlaceUpdating, true),
	Entry("until it runs again", mcm.MachineInPlaceUpdateSuccessful, true),
	Entry("though that failed", mcm.MachineInPlaceUpdateFailed, true),
	Entry("not once it runs", mcm.MachineRunning, false),
	Entry("not while it is created", mcm.MachinePending, false),
)

func reserved(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: machine.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}}
}

var _ = DescribeTable("A marked machine may still get pods",
	func(mark string, phase mcm.MachinePhase, node *corev1.Node, open bool) {
		m := fixture.Machine("m")
		m.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
		m.Status.CurrentStatus.Phase = phase
		if mark != "" {
			m.Annotations = map[string]string{machine.ReserveAnnotation: mark}
		}
		Expect(pool.Machine{Object: m, Node: node}.Open()).To(Equal(open))
	},
	Entry("no, if it is not marked", "", mcm.MachinePending, nil, false),
	Entry("no, before its Node is seen, if it was created in reserve", `{"since":"2026-01-01T12:00:00Z"}`, mcm.MachinePending, nil, false),
	Entry("also if its creation took a second", `{"since":"2026-01-01T11:59:59Z"}`, mcm.MachinePending, nil, false),
	Entry("also if the clock of its creator was ahead of the API server's", `{"since":"2026-01-01T12:00:10Z"}`, mcm.MachinePending, nil, false),
	Entry("before its Node is seen, if it was created to serve", `{"since":"2026-01-01T12:00:11Z"}`, mcm.MachinePending, nil, true),
	Entry("also if it is said to run already", `{"since":"2026-01-01T12:00:11Z"}`, mcm.MachineRunning, nil, true),
	Entry("not if its Node is gone since it is unhealthy", `{"since":"2026-01-01T12:00:11Z"}`, mcm.MachineUnknown, nil, false),
	Entry("before its Node is seen, if the mark cannot be read", "yesterday", mcm.MachinePending, nil, true),
	Entry("no, once its Node is seen and has the taint", `{"since":"2026-01-01T12:00:11Z"}`, mcm.MachineRunning, fixture.Node("m", reserved), false),
	Entry("while its Node does not have the taint", `{"since":"2026-01-01T12:00:00Z"}`, mcm.MachineRunning, fixture.Node("m"), true),
	Entry("no, if its Node does not have the taint, and it is not marked", "", mcm.MachineRunning, fixture.Node("m"), false),
)
