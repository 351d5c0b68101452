// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = Describe("A reserve that is as desired", func() {
	It("causes no write, and no later sync", func() {
		p := machinetaint.New(atRest())
		expectAtRest(p)
		Expect(p.Idle).To(BeFalse())
		Expect(p.Again).To(BeZero())
		Expect(p.Memory).To(Equal(machinetaint.Memory{Applied: "2", Known: true}))
	})
})

var _ = DescribeTable("Machines are written",
	func(v machinetaint.View, written ...string) {
		if len(written) == 0 {
			Expect(machineWrites(machinetaint.New(v))).To(BeEmpty())
			return
		}
		Expect(machineWrites(machinetaint.New(v))).To(Equal(written))
	},
	Entry("where one in reserve has a pod that does not tolerate it", atRest(machine("r1", occupied)), "r1 released (Occupied)"),
	Entry("not where the pod tolerates the reserve", atRest(machine("r1", withTolerantPod))),
	Entry("not before the machine is created", atRest(machine("r1", occupied, uncreated))),
	Entry("not while the machine is being deleted", atRest(machine("r1", occupied, leaving))),
	Entry("not while the machine terminates", atRest(machine("r1", occupied, in(mcm.MachineTerminating)))),
	Entry("not while the target cluster does not respond", atRest(unreachable, machine("r1", occupied))),
	Entry("where workload needs one more", atRest(replicas(4)), "r1 released (Released)"),
	Entry("not where one that serves runs pods", atRest(replicas(2))),
	Entry("not where one that serves is empty and needed", atRest(machine("s3", idle))),
	Entry("where one that serves is empty and not needed", atRest(replicas(2), excess(3), note(api.AppliedExcessAnnotation, "3"), machine("s3", idle)), "s3 held (Retired)"),
	Entry("where an earlier version gave one in reserve a priority", atRest(machine("r1", annotated(machineutils.MachinePriority, "5"))), "r1 without priority"),
	Entry("where an earlier version was about to delete one in reserve", atRest(machine("r1", annotated(machineutils.MachinePriority, "2"))), "r1 without priority"),
	Entry("where an earlier version gave a priority, and it leaves the reserve", atRest(replicas(4), machine("r1", annotated(machineutils.MachinePriority, "5"))), "r1 released (Released) without priority"),
	Entry("not where a client gave one in reserve a priority", atRest(machine("r1", annotated(machineutils.MachinePriority, "1")), machine("r2", annotated(machineutils.MachinePriority, "4")))),
	Entry("not where a client gave one that serves a priority", atRest(machine("s1", annotated(machineutils.MachinePriority, "2")), machine("s2", annotated(machineutils.MachinePriority, "5")))),
	Entry("not where an earlier version gave one a priority that leaves", atRest(excess(1), machine("r1", annotated(machineutils.MachinePriority, "5"), leaving))),
	Entry("where one is dedicated", atRest(note(api.DedicatedAnnotation, "shop=1")), `r1 owner "shop"`),
	Entry("where one is dedicated no more", atRest(machine("r2", annotated(api.DedicatedAnnotation, "shop"))), `r2 owner ""`),
	Entry("not where one is still dedicated", atRest(note(api.DedicatedAnnotation, "shop=1"), machine("r2", annotated(api.DedicatedAnnotation, "shop")))),
	Entry("first where they are to serve", atRest(machine("r1", annotated(api.ReserveAnnotation, "broken")), machine("r2", occupied)),
		"r2 released (Occupied)", "r1 held"),
	Entry("in the order of their names where all are to serve", atRest(replicas(5)), "r1 released (Released)", "r2 released (Released)"),
	Entry("in the order of their names where none is to serve",
		atRest(machine("r1", annotated(machineutils.MachinePriority, "5")), machine("r2", annotated(machineutils.MachinePriority, "5"))), "r1 without priority", "r2 without priority"),
)

var _ = Describe("A claim of a machine that serves already", func() {
	It("is removed", func() {
		Expect(entries(machinetaint.New(atRest(note(api.ClaimedAnnotation, "3:s1"))).Deployment.Annotations)).To(Equal([]string{"claimed="}))
	})
})

var _ = DescribeTable("The mark of a machine in reserve",
	func(s machinetaint.Settings, change machineChange, renewed bool) {
		v := atRest(machine("r1", change))
		v.Settings = s
		changes := about("r1", machineWrites(machinetaint.New(v)))
		if !renewed {
			Expect(changes).To(BeEmpty())
			return
		}
		Expect(changes).To(Equal([]string{"r1 held"}))
	},
	Entry("stays while it has the taints of the settings", plain, unchanged, false),
	Entry("is renewed if the settings have one more effect", evicting, unchanged, true),
	Entry("is not renewed under pods, also if they tolerate it", evicting, withTolerantPod, false),
	Entry("is renewed if the settings have another effect", machinetaint.Settings{Effects: []corev1.TaintEffect{corev1.TaintEffectNoExecute}}, unchanged, true),
	Entry("is renewed if the settings have one effect less", plain, func(m *machinetaint.Machine) { *m = heldBy(evicting, "r1") }, true),
	Entry("is renewed if the settings have no effect", machinetaint.Settings{}, unchanged, true),
	Entry("is renewed if the template lost its taint", plain, func(m *machinetaint.Machine) { templateOf(m).Spec.Taints = nil }, true),
	Entry("is renewed if the template has only taints of others", plain,
		func(m *machinetaint.Machine) { templateOf(m).Spec.Taints = []corev1.Taint{otherTaint} }, true),
	Entry("is renewed if it cannot be read", plain, annotated(api.ReserveAnnotation, "broken"), true),
	Entry("need not contain a taint that the template has by itself", plain, annotated(api.ReserveAnnotation, api.Reserve{Since: eleven}.String()), false),
	Entry("may contain other taints", plain,
		annotated(api.ReserveAnnotation, api.Reserve{Since: eleven, Taints: []corev1.Taint{reserveTaint, {Key: "other", Effect: corev1.TaintEffectNoExecute}}}.String()), false),
)

var _ = Describe("A Machine after a change", func() {
	const priority, state = machineutils.MachinePriority, api.ReserveStateAnnotation
	v := atRest(machine("r1", annotated(priority, "5")))
	annotations := func(change machinetaint.MachineChange) map[string]string { return v.Changed(change).Annotations }

	It("has what the change says, and the rest as before", func() {
		Expect(annotations(machinetaint.MachineChange{Name: "r1"})).To(Equal(v.Machines[0].Object.Annotations))
		Expect(annotations(machinetaint.MachineChange{Name: "s2", Owner: ptr.To(api.Owner("shop"))})).To(Equal(map[string]string{api.DedicatedAnnotation: "shop"}))
		Expect(annotations(machinetaint.MachineChange{Name: "s2", State: ptr.To("Held")})).To(Equal(map[string]string{state: "Held"}))
		all := annotations(machinetaint.MachineChange{Name: "s2", Owner: ptr.To(api.Owner("shop")), State: ptr.To("Held")})
		Expect(all).To(Equal(map[string]string{state: "Held", api.DedicatedAnnotation: "shop"}))
	})

	It("lacks what the change removes", func() {
		after := v.Changed(machinetaint.MachineChange{Name: "r1", State: ptr.To("")})
		Expect(after.Annotations).To(And(Not(HaveKey(state)), HaveKeyWithValue(priority, "5"), HaveKey(api.ReserveAnnotation)))
		after = v.Changed(machinetaint.MachineChange{Name: "r1", Unranked: true})
		Expect(after.Annotations).To(And(HaveKey(state), Not(HaveKey(priority)), HaveKey(api.ReserveAnnotation)))
	})

	It("can have no annotations before", func() {
		bare := atRest(machine("s1", func(m *machinetaint.Machine) { m.Object.Annotations = nil }))
		Expect(bare.Changed(machinetaint.MachineChange{Name: "s1", State: ptr.To("Held")}).Annotations).To(Equal(map[string]string{state: "Held"}))
	})

	It("is another one: the view stays as it was", func() {
		v.Changed(machinetaint.MachineChange{Name: "s3", State: ptr.To("Held")})
		Expect(v.Machines[4].Object.Annotations).To(BeEmpty())
	})

	It("is held with all that the settings want, from now on", func() {
		after := v.Changed(machinetaint.MachineChange{Name: "s1", Mark: machinetaint.Hold})
		Expect(after.Spec.NodeTemplateSpec.Spec.Taints).To(Equal([]corev1.Taint{reserveTaint}))
		Expect(after.Spec.NodeTemplateSpec.Annotations).To(Equal(map[string]string{api.ReserveAnnotation: "2026-11-22T12:00:00Z", api.ScaleDownDisabledAnnotation: "true"}))
		mark, err := api.ParseReserve(after.Annotations[api.ReserveAnnotation])
		Expect(err).NotTo(HaveOccurred())
		Expect(mark).To(Equal(plain.NewMark(noon)))
	})

	It("is released without anything of the mark", func() {
		after := v.Changed(machinetaint.MachineChange{Name: "r2", Mark: machinetaint.Free})
		Expect(pool.Marked(after)).To(BeFalse())
		Expect(after.Spec.NodeTemplateSpec.Spec.Taints).To(BeEmpty())
		Expect(after.Spec.NodeTemplateSpec.Annotations).To(BeEmpty())
	})
})

var _ = Describe("The mark that settings make", func() {
	It("has a taint for each effect, and the time in whole seconds of UTC", func() {
		local := noon.Add(300 * time.Millisecond).In(time.FixedZone("CET", 3600))
		Expect(evicting.NewMark(local)).To(Equal(api.Reserve{
			Since:  noon,
			Taints: []corev1.Taint{{Key: api.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}, {Key: api.ReserveTaintKey, Effect: corev1.TaintEffectNoExecute}},
			Annotations: map[string]string{
				api.ReserveAnnotation: "2026-11-22T12:00:00Z", api.ScaleDownDisabledAnnotation: "true",
			},
		}))
	})
})

var _ = Describe("The mark of a machine that was created to serve", func() {
	created := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	retiring := func(now time.Time) machinetaint.View {
		v := owned(-1, "", "")
		v.Now, v.Deployment.Spec.Replicas, v.Deployment.Spec.ExcessReplicas = now, 0, ptr.To[int32](1)
		v.Deployment.Annotations = map[string]string{api.AppliedExcessAnnotation: "1"}
		m := fixture.Machine("m")
		m.CreationTimestamp, m.Spec.ProviderID, m.Status.CurrentStatus.Phase = metav1.NewTime(created), "sim:///m", mcm.MachinePending
		v.Machines = []machinetaint.Machine{{Machine: pool.Machine{Object: m}}}
		return v
	}

	It("is later than its creation by more than clocks may differ, also within the same second", func() {
		first := pool.ClockSkew + time.Second
		for after, since := range map[time.Duration]time.Duration{0: first, 900 * time.Millisecond: first, 5 * time.Second: first, time.Minute: time.Minute} {
			v := retiring(created.Add(after))
			p := machinetaint.New(v)
			Expect(p.Machines).To(ConsistOf(And(HaveField("Name", "m"), HaveField("Mark", machinetaint.Hold))))
			mark, err := api.ParseReserve(v.Changed(p.Machines[0]).Annotations[api.ReserveAnnotation])
			Expect(err).NotTo(HaveOccurred())
			Expect(mark.Since).To(Equal(created.Add(since)))
		}
	})

	It("keeps it from being deleted where Nodes are seen, and not where there is no target cluster (6)", func() {
		v := retiring(created.Add(time.Minute))
		v.Machines[0].Object = v.Changed(machinetaint.New(v).Machines[0])
		v.Deployment.Spec.ExcessReplicas = ptr.To[int32](0)
		Expect(machinetaint.New(v).Rule.Going).To(BeEmpty())
		v.Targetless = true
		Expect(machinetaint.New(v).Rule.Going).To(HaveLen(1))
	})
})

// stated sets the state that a Machine shows; empty for none.
func stated(text string) machineChange { return annotated(api.ReserveStateAnnotation, text) }

// boots is a machine in reserve that was created so and has no state yet.
func boots(m *machinetaint.Machine) {
	in(mcm.MachinePending)(m)
	stated("")(m)
}

var _ = DescribeTable("The state of a machine",
	func(v machinetaint.View, name, state string) {
		states := stateWrites(machinetaint.New(v))
		if state == "" {
			Expect(states).NotTo(HaveKey(name))
			return
		}
		Expect(states).To(HaveKeyWithValue(name, strings.TrimPrefix(state, "none")))
	},
	Entry("in reserve says since when, and that its Node shows it", atRest(machine("r1", stated(""))), "r1",
		"Held since 2026-11-22T11:00:00Z; node r1 carries the reserve taint"),
	Entry("stays if it is true", atRest(), "r1", ""),
	Entry("in reserve shows what is true after the Node is written", atRest(machine("r1", stated(""), tainted())), "r1",
		"Held since 2026-11-22T11:00:00Z; node r1 carries the reserve taint"),
	Entry("in reserve shows that its Node could not be written", atRest(machine("r1", tainted(), nodeLeaving)), "r1",
		"Held since 2026-11-22T11:00:00Z; node r1 does not carry the reserve taint"),
	Entry("in reserve shows a taint that is the only one of others", atRest(machine("r1", tainted(otherTaint), nodeLeaving)), "r1",
		"Held since 2026-11-22T11:00:00Z; node r1 does not carry the reserve taint"),
	Entry("that boots in reserve is not written", atRest(machine("r1", boots)), "r1", ""),
	Entry("that boots in reserve is kept true once it is written", atRest(machine("r1", boots, stated("Held since yesterday"))), "r1",
		"Held since 2026-11-22T11:00:00Z; node r1 carries the reserve taint"),
	Entry("that failed in reserve is written though it is not ready", atRest(machine("r1", boots, in(mcm.MachineFailed))), "r1",
		"Held since 2026-11-22T11:00:00Z; node r1 carries the reserve taint"),
	Entry("in reserve without a Node is not written", atRest(machine("r1", stated(""), withoutNode)), "r1", ""),
	Entry("in reserve that lost its Node is removed", atRest(machine("r1", withoutNode)), "r1", "none"),
	Entry("that leaves the reserve says when, why, and that its Node shows it", atRest(replicas(4)), "r1",
		"Released at 2026-11-22T12:00:00Z (Released); node r1 does not carry the reserve taint"),
	Entry("that leaves it without a Node", atRest(machine("r1", occupied, withoutNode)), "r1", "Released at 2026-11-22T12:00:00Z (Occupied)"),
	Entry("that leaves it although its Node is gone", atRest(replicas(5), machine("r1", withoutNode)), "r1", "Released at 2026-11-22T12:00:00Z (Released)"),
	Entry("that left it before stays, also if its Node is gone", atRest(machine("s1", withoutNode, stated("Released at 2026-11-21T12:00:00Z (Released)"))), "s1", ""),
	Entry("whose mark is renewed without a Node is removed", atRest(machine("r1", withoutNode, annotated(api.ReserveAnnotation, "broken"))), "r1", "none"),
	Entry("that leaves it under a pod says why", atRest(machine("r1", occupied)), "r1",
		"Released at 2026-11-22T12:00:00Z (Occupied); node r1 does not carry the reserve taint"),
	Entry("that left the reserve without a record shows that it serves", atRest(machine("s1", stated("Held since yesterday; node s1 carries the reserve taint"))), "s1",
		"Released at 2026-11-22T12:00:00Z; node s1 does not carry the reserve taint"),
	Entry("that left it before stays", atRest(machine("s1", stated("Released at 2026-11-21T12:00:00Z (Released); node s1 carries the reserve taint"))), "s1", ""),
	Entry("that never was in reserve is not written", atRest(), "s1", ""),
	Entry("is not written before the machine is created", atRest(machine("r1", stated(""), uncreated)), "r1", ""),
	Entry("is not written while the machine is being deleted", atRest(machine("r1", stated(""), leaving)), "r1", ""),
	Entry("is not written while the target cluster does not respond", atRest(unreachable, machine("r1", stated(""))), "r1", ""),
	Entry("that enters the reserve says since when",
		atRest(replicas(2), excess(3), note(api.AppliedExcessAnnotation, "3"), machine("s3", idle)), "s3",
		"Held since 2026-11-22T12:00:00Z; node s3 carries the reserve taint"),
	Entry("that enters the reserve without a Node is not written",
		atRest(replicas(2), excess(3), note(api.AppliedExcessAnnotation, "3"), machine("s3", idle, withoutNode)), "s3", ""),
	Entry("whose mark is renewed says so", atRest(machine("r1", annotated(api.ReserveAnnotation, "broken"))), "r1",
		"Held since 2026-11-22T12:00:00Z; node r1 carries the reserve taint"),
	Entry("whose mark is to be renewed shows since when it is held while pods run", atRest(machine("r1", withTolerantPod, stated(""), annotated(api.ReserveAnnotation, "broken"))), "r1",
		"Held since 2026-11-22T11:00:00Z; node r1 carries the reserve taint"),
)

var _ = Describe("States", func() {
	It("are written with the other changes of a Machine, and after them for the others", func() {
		p := machinetaint.New(atRest(machine("r1", stated("")), machine("r2", occupied)))
		Expect(p.Machines).To(HaveExactElements(
			And(HaveField("Name", "r2"), HaveField("Mark", machinetaint.Free), HaveField("State", HaveValue(HavePrefix("Released at")))),
			And(HaveField("Name", "r1"), HaveField("Mark", machinetaint.Keep), HaveField("State", HaveValue(HavePrefix("Held since")))),
		))
	})

	It("mention a taint of any effect", func() {
		v := atRest(machine("r1", tainted(corev1.Taint{Key: api.ReserveTaintKey, Effect: corev1.TaintEffectNoExecute}), nodeLeaving))
		Expect(stateWrites(machinetaint.New(v))).NotTo(HaveKey("r1"))
	})
})
