// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

var _ = Describe("A reserve that is as desired", func() {
	It("causes no write, and no later sync", func() {
		p := plan.New(atRest())
		expectAtRest(p)
		Expect(p.Idle).To(BeFalse())
		Expect(p.Again).To(BeZero())
		Expect(p.Memory).To(Equal(plan.Memory{Applied: "2", UID: "uid"}))
	})
})

var _ = DescribeTable("Machines are written",
	func(v plan.View, written ...string) {
		if len(written) == 0 {
			Expect(machineWrites(plan.New(v))).To(BeEmpty())
			return
		}
		Expect(machineWrites(plan.New(v))).To(Equal(written))
	},
	Entry("where one in reserve has a pod that does not tolerate it", atRest(machine("r1", occupied)), "r1 released (Occupied) priority 3"),
	Entry("not where the pod tolerates the reserve", atRest(machine("r1", withTolerantPod))),
	Entry("not before the machine is created", atRest(machine("r1", occupied, uncreated))),
	Entry("not while the machine is being deleted", atRest(machine("r1", occupied, leaving))),
	Entry("not while the machine terminates", atRest(machine("r1", occupied, in(mcm.MachineTerminating)))),
	Entry("not while the target cluster does not respond", atRest(unreachable, machine("r1", occupied))),
	Entry("where workload needs one more", atRest(replicas(4)), "r1 released (Released) priority 3"),
	Entry("not where one that serves runs pods", atRest(replicas(2))),
	Entry("not where one that serves is empty and needed", atRest(machine("s3", idle))),
	Entry("where one that serves is empty and not needed", atRest(replicas(2), excess(3), note(api.AppliedExcessAnnotation, "3"), machine("s3", idle)), "s3 held (Retired) priority 5"),
	Entry("where a priority is not that of the reserve", atRest(machine("r1", annotated(machineutils.MachinePriority, ""))), "r1 priority 5"),
	Entry("where one is dedicated", atRest(note(api.DedicatedAnnotation, "shop=1")), `r1 owner "shop"`),
	Entry("where one is dedicated no more", atRest(machine("r2", annotated(api.DedicatedAnnotation, "shop"))), `r2 owner ""`),
	Entry("not where one is still dedicated", atRest(note(api.DedicatedAnnotation, "shop=1"), machine("r2", annotated(api.DedicatedAnnotation, "shop")))),
	Entry("first where they are to serve", atRest(machine("r1", annotated(api.ReserveAnnotation, "broken")), machine("r2", occupied)),
		"r2 released (Occupied) priority 3", "r1 held"),
	Entry("in the order of their names where all are to serve", atRest(replicas(5)), "r1 released (Released) priority 3", "r2 released (Released) priority 3"),
	Entry("in the order of their names where none is to serve",
		atRest(machine("r1", annotated(machineutils.MachinePriority, "")), machine("r2", annotated(machineutils.MachinePriority, ""))), "r1 priority 5", "r2 priority 5"),
)

var _ = Describe("A claim of a machine that serves already", func() {
	It("is removed", func() {
		Expect(entries(plan.New(atRest(note(api.ClaimedAnnotation, "3:s1"))).Deployment.Annotations)).To(Equal([]string{"claimed="}))
	})
})

var _ = DescribeTable("The mark of a machine in reserve",
	func(s plan.Settings, change machineChange, renewed bool) {
		v := atRest(machine("r1", change))
		v.Settings = s
		changes := about("r1", machineWrites(plan.New(v)))
		if !renewed {
			Expect(changes).To(BeEmpty())
			return
		}
		Expect(changes).To(Equal([]string{"r1 held"}))
	},
	Entry("stays while it has the taints of the settings", plain, unchanged, false),
	Entry("is renewed if the settings have one more effect", evicting, unchanged, true),
	Entry("is not renewed under pods, also if they tolerate it", evicting, withTolerantPod, false),
	Entry("is renewed if the settings have another effect", plan.Settings{Effects: []corev1.TaintEffect{corev1.TaintEffectNoExecute}}, unchanged, true),
	Entry("is renewed if the settings have one effect less", plain, func(m *plan.Machine) { *m = heldBy(evicting, "r1") }, true),
	Entry("is renewed if the settings have no effect", plan.Settings{}, unchanged, true),
	Entry("is renewed if the template lost its taint", plain, func(m *plan.Machine) { templateOf(m).Spec.Taints = nil }, true),
	Entry("is renewed if the template has only taints of others", plain,
		func(m *plan.Machine) { templateOf(m).Spec.Taints = []corev1.Taint{otherTaint} }, true),
	Entry("is renewed if it cannot be read", plain, annotated(api.ReserveAnnotation, "broken"), true),
	Entry("need not contain a taint that the template has by itself", plain, annotated(api.ReserveAnnotation, api.Reserve{Since: eleven}.String()), false),
	Entry("may contain other taints", plain,
		annotated(api.ReserveAnnotation, api.Reserve{Since: eleven, Taints: []corev1.Taint{reserveTaint, {Key: "other", Effect: corev1.TaintEffectNoExecute}}}.String()), false),
)

var _ = Describe("A Machine after a change", func() {
	const priority, state = machineutils.MachinePriority, api.ReserveStateAnnotation
	v := atRest()
	annotations := func(change plan.MachineChange) map[string]string { return v.Changed(change).Annotations }

	It("has what the change says, and the rest as before", func() {
		Expect(annotations(plan.MachineChange{Name: "r1"})).To(Equal(v.Machines[0].Object.Annotations))
		Expect(annotations(plan.MachineChange{Name: "s2", Priority: 2})).To(Equal(map[string]string{priority: "2"}))
		Expect(annotations(plan.MachineChange{Name: "s2", Owner: ptr.To(api.Owner("shop"))})).To(Equal(map[string]string{api.DedicatedAnnotation: "shop"}))
		Expect(annotations(plan.MachineChange{Name: "s2", State: ptr.To("Held")})).To(Equal(map[string]string{state: "Held"}))
		all := annotations(plan.MachineChange{Name: "s2", Priority: 2, Owner: ptr.To(api.Owner("shop")), State: ptr.To("Held")})
		Expect(all).To(Equal(map[string]string{priority: "2", state: "Held", api.DedicatedAnnotation: "shop"}))
	})

	It("lacks what the change removes", func() {
		after := v.Changed(plan.MachineChange{Name: "r1", State: ptr.To("")})
		Expect(after.Annotations).To(And(Not(HaveKey(state)), HaveKeyWithValue(priority, "5"), HaveKey(api.ReserveAnnotation)))
	})

	It("can have no annotations before", func() {
		bare := atRest(machine("s1", func(m *plan.Machine) { m.Object.Annotations = nil }))
		Expect(bare.Changed(plan.MachineChange{Name: "s1", Priority: 2}).Annotations).To(Equal(map[string]string{priority: "2"}))
	})

	It("is another one: the view stays as it was", func() {
		v.Changed(plan.MachineChange{Name: "s3", Priority: 2, State: ptr.To("Held")})
		Expect(v.Machines[4].Object.Annotations).To(BeEmpty())
	})

	It("is held with all that the settings want, from now on", func() {
		after := v.Changed(plan.MachineChange{Name: "s1", Mark: plan.Hold})
		Expect(after.Spec.NodeTemplateSpec.Spec.Taints).To(Equal([]corev1.Taint{reserveTaint}))
		Expect(after.Spec.NodeTemplateSpec.Annotations).To(Equal(map[string]string{api.ReserveAnnotation: "2026-11-22T12:00:00Z", api.ScaleDownDisabledAnnotation: "true"}))
		mark, err := api.ParseReserve(after.Annotations[api.ReserveAnnotation])
		Expect(err).NotTo(HaveOccurred())
		Expect(mark).To(Equal(plain.NewMark(noon)))
	})

	It("is released without anything of the mark", func() {
		after := v.Changed(plan.MachineChange{Name: "r2", Mark: plan.Free})
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
