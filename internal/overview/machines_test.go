// SPDX-License-Identifier: Apache-2.0

package overview_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	. "github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = DescribeTable("A machine is",
	func(state State, change ...func(*mcm.Machine)) {
		w := newWorld()
		w.pool("a", 1)
		w.machine("a", "m", change...)
		z := New(w.Objects).Pools[0].Zones[0]
		Expect(z.Machines).To(HaveLen(1))
		Expect(z.Machines[0].State).To(Equal(state))
		Expect(z.Count).To(Equal(map[State]int{state: 1}))
	},
	Entry("working while it runs", Working),
	Entry("booting before", Booting, phase(mcm.MachinePending)),
	Entry("booting without a phase", Booting, phase("")),
	Entry("booting while it is updated in its place", Booting, phase(mcm.MachineInPlaceUpdating)),
	Entry("in reserve with a mark", ReserveReady, held(time.Minute)),
	Entry("in reserve and booting", ReserveBooting, held(time.Minute), phase(mcm.MachinePending)),
	Entry("failed", Failed, phase(mcm.MachineFailed)),
	Entry("failed, though it is in reserve", Failed, held(time.Minute), phase(mcm.MachineUnknown)),
	Entry("failed where it cannot be made", Failed, refused("ResourceExhausted", "no capacity")),
	Entry("booting where making it failed in a way that passes", Booting, refused("Unavailable", "try again")),
	Entry("leaving when it terminates", Leaving, phase(mcm.MachineTerminating)),
	Entry("leaving though it has failed", Leaving, phase(mcm.MachineFailed), func(m *mcm.Machine) { at := ago(time.Minute); m.DeletionTimestamp = &at }),
	Entry("leaving when it is named by priority", Leaving,
		noted("machinepriority.machine.sapcloud.io", "1"), noted("machine.sapcloud.io/marked-for-deletion-time", "2026-11-21T11:00:00Z")),
	Entry("working with priority 1 alone", Working, noted("machinepriority.machine.sapcloud.io", "1")),
)

var _ = Describe("Machines", func() {
	It("leave when their MachineDeployment names them", func() {
		w := newWorld()
		w.pool("a", 3, annotated("node.machine.sapcloud.io/trigger-deletion-by-mcm", "m1~2026-11-21T11:00:00Z,m2~nonsense,m3"))
		for _, name := range []string{"m1", "m2", "m3"} {
			w.machine("a", name)
		}
		Expect(states(New(w.Objects))).To(Equal(map[string]State{"m1": Leaving, "m2": Working, "m3": Leaving}))
	})

	It("serve if pods run there that do not tolerate the taint, even with the mark", func() {
		w := newWorld()
		w.pool("a", 3)
		for _, name := range []string{"guest", "tolerant", "daemon", "mirror", "over"} {
			w.machine("a", name, held(time.Minute))
		}
		w.pod("p1", "guest")
		w.pod("p2", "tolerant", func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.ReserveTaintKey, Operator: corev1.TolerationOpExists}}
		})
		w.pod("p3", "daemon", func(p *corev1.Pod) { p.OwnerReferences = owned("DaemonSet", "d") })
		w.pod("p4", "mirror", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} })
		w.pod("p5", "over", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
		v := New(w.Objects)
		Expect(states(v)).To(Equal(map[string]State{"guest": Working, "tolerant": ReserveReady, "daemon": ReserveReady, "mirror": ReserveReady, "over": ReserveReady}))
		pods := map[string]int{}
		for _, m := range v.Pools[0].Zones[0].Machines {
			pods[m.Name] = m.Pods
		}
		Expect(pods).To(Equal(map[string]int{"guest": 1, "tolerant": 1, "daemon": 0, "mirror": 0, "over": 0}))
	})

	It("serve where a pod tolerates one effect of the taint and not the other", func() {
		w := newWorld()
		w.pool("a", 1)
		w.machine("a", "m", held(time.Minute), func(m *mcm.Machine) {
			for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
				m.Spec.NodeTemplateSpec.Spec.Taints = append(m.Spec.NodeTemplateSpec.Spec.Taints, corev1.Taint{Key: v1alpha1.ReserveTaintKey, Effect: effect})
			}
		})
		w.pod("p", "m", func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.ReserveTaintKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
		})
		Expect(states(New(w.Objects))).To(Equal(map[string]State{"m": Working}))
	})

	It("have the pods of their own Node, and not of one that took over its name", func() {
		w := newWorld()
		w.pool("a", 2)
		w.machine("a", "gone", func(m *mcm.Machine) {
			m.Labels[mcm.NodeLabelKey], m.Spec.ProviderID, m.Status.CurrentStatus.Phase = "ip-1", "aws:///r/i-gone", mcm.MachineUnknown
		})
		w.machine("a", "successor", func(m *mcm.Machine) { m.Labels[mcm.NodeLabelKey], m.Spec.ProviderID = "ip-1", "aws:///r/i-successor" })
		w.Nodes = []*corev1.Node{fixture.Node("ip-1", func(n *corev1.Node) { n.Spec.ProviderID = "aws:///z/i-successor" })}
		w.pod("p", "ip-1")
		pods := map[string]int{}
		for _, m := range New(w.Objects).Pools[0].Zones[0].Machines {
			pods[m.Name] = m.Pods
		}
		Expect(pods).To(Equal(map[string]int{"gone": -1, "successor": 1}))
	})

	It("hold an unknown number of pods where pods cannot be read", func() {
		w := newWorld()
		w.PodsUnknown = true
		w.pool("a", 1)
		w.machine("a", "m")
		v := New(w.Objects)
		Expect(v.Pools[0].Zones[0].Machines[0].Pods).To(Equal(-1))
		Expect(v.PodsWaiting).To(Equal(-1))
	})

	It("are sorted by state, then the oldest first", func() {
		w := newWorld()
		w.pool("a", 4)
		w.machine("a", "failed", phase(mcm.MachineFailed), created(9*time.Hour))
		w.machine("a", "young", created(time.Minute))
		w.machine("a", "reserve", held(time.Minute), created(8*time.Hour))
		w.machine("a", "old", created(2*time.Hour))
		w.machine("a", "twin", created(2*time.Hour))
		var names []string
		for _, m := range New(w.Objects).Pools[0].Zones[0].Machines {
			names = append(names, m.Name)
		}
		Expect(names).To(Equal([]string{"old", "twin", "young", "reserve", "failed"}))
	})

	It("say since when they are what they are", func() {
		w := newWorld()
		w.pool("a", 4)
		w.machine("a", "works", created(time.Hour))
		w.machine("a", "waits", created(time.Hour), held(10*time.Minute))
		w.machine("a", "leaves", created(time.Hour), func(m *mcm.Machine) { at := ago(5 * time.Minute); m.DeletionTimestamp = &at })
		w.machine("a", "failed", created(time.Hour), phase(mcm.MachineFailed), func(m *mcm.Machine) { m.Status.CurrentStatus.LastUpdateTime = ago(7 * time.Minute) })
		times := map[string]time.Duration{}
		for _, m := range New(w.Objects).Pools[0].Zones[0].Machines {
			times[m.Name] = now.Sub(m.Since)
		}
		Expect(times).To(Equal(map[string]time.Duration{"works": time.Hour, "waits": 10 * time.Minute, "leaves": 5 * time.Minute, "failed": 7 * time.Minute}))
	})
})

func states(v Overview) map[string]State {
	all := map[string]State{}
	for _, m := range v.Pools[0].Zones[0].Machines {
		all[m.Name] = m.State
	}
	return all
}
