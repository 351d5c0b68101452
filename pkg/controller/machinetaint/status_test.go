// SPDX-License-Identifier: Apache-2.0

package machinetaint_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

var _ = Describe("The condition of a MachineDeployment", func() {
	var (
		before = metav1.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		now    = metav1.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)
	)
	// later is the condition after another report than one of a growing reserve.
	later := func(r machinetaint.Report) mcm.MachineDeploymentCondition {
		d := &api.MachineDeployment{}
		d.Status = machinetaint.NewStatus(d, machinetaint.Report{Reserve: 1, Reason: reserve.Growing, Message: "1 of 2"}, before)
		d.Status = machinetaint.NewStatus(d, r, now)
		Expect(d.Status.Conditions).To(HaveLen(1))
		return d.Status.Conditions[0]
	}

	It("is as it was where nothing differs", func() {
		c := later(machinetaint.Report{Reserve: 1, Reason: reserve.Growing, Message: "1 of 2"})
		Expect([]metav1.Time{c.LastUpdateTime, c.LastTransitionTime}).To(Equal([]metav1.Time{before, before}))
	})

	It("is updated, and has not changed, where only the message differs", func() {
		c := later(machinetaint.Report{Reserve: 1, Reason: reserve.Growing, Message: "0 of 2"})
		Expect([]metav1.Time{c.LastUpdateTime, c.LastTransitionTime}).To(Equal([]metav1.Time{now, before}))
		Expect(c.Message).To(Equal("0 of 2"))
	})

	It("is updated, and has not changed, where the reason differs and the status does not", func() {
		c := later(machinetaint.Report{Reserve: 1, Reason: reserve.NotReady, Message: "1 of 2"})
		Expect(c.Status).To(Equal(mcm.ConditionFalse))
		Expect([]metav1.Time{c.LastUpdateTime, c.LastTransitionTime}).To(Equal([]metav1.Time{now, before}))
	})

	It("has changed where the status differs", func() {
		c := later(machinetaint.Report{Reserve: 2, Reason: reserve.Complete, Message: "1 of 2"})
		Expect(c.Status).To(Equal(mcm.ConditionTrue))
		Expect([]metav1.Time{c.LastUpdateTime, c.LastTransitionTime}).To(Equal([]metav1.Time{now, now}))
	})
})

const (
	complete        = "3 of 3 machines serve, 2 of 2 in reserve, 2 of these ready"
	none            = "2 of 2 machines serve, 0 of 0 in reserve, 0 of these ready"
	surplus         = "3 of 3 machines serve, 2 of 0 in reserve, 2 of these ready; surplus machines are being deleted"
	noAnswer        = "the API server does not respond; until it answers, no machine enters or leaves the reserve: "
	isWitnessPruned = "; the API server does not store spec.reserveWitness, so spec.excessReplicas is restored even if you remove it: install the CustomResourceDefinitions of this release"
	isPruned        = "; the API server does not store spec.excessReplicas: install the CustomResourceDefinitions of this release, or use the annotation"
)

func pruned(v *machinetaint.View) { v.Pruned, v.Deployment.Spec.ReserveWitness = true, false }

func witnessPruned(v *machinetaint.View) {
	v.WitnessPruned, v.Deployment.Spec.ReserveWitness = true, false
}

// devices has a Node offer a resource.
func devices(name, amount string) machineChange {
	return func(m *machinetaint.Machine) {
		if m.Node.Status.Allocatable == nil {
			m.Node.Status.Allocatable = corev1.ResourceList{}
		}
		m.Node.Status.Allocatable[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
}

func ofSet(name string) machineChange { return func(m *machinetaint.Machine) { m.Set = name } }

func nodeTainted(key string) machineChange {
	return func(m *machinetaint.Machine) {
		m.Node.Spec.Taints = append(m.Node.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
}

func notReady(m *machinetaint.Machine) { m.Node.Status.Conditions = nil }

// prepares makes machines those that are prepared so far.
func prepares(all map[types.UID]machinetaint.Preparation) viewChange {
	return func(v *machinetaint.View) {
		for i := range v.Machines {
			v.Machines[i].Object.UID = types.UID(v.Machines[i].Object.Name)
		}
		v.Settings.Preparation = func(machine types.UID) machinetaint.Preparation { return all[machine] }
	}
}

// leftover keeps a MachineDeployment without a reserve from being left alone.
func leftover(v *machinetaint.View) { note(returned, "gone")(v) }

var _ = DescribeTable("The report of a MachineDeployment",
	func(v machinetaint.View, count, ready int, silent bool, reason reserve.Reason, message string) {
		Expect(machinetaint.New(v).Report).To(Equal(machinetaint.Report{Reserve: int32(count), Ready: int32(ready), Silent: silent, Reason: reason, Message: message}))
	},
	Entry("counts the reserve", atRest(), 2, 2, false, reserve.Complete, complete),
	Entry("counts the ready reserve", atRest(machine("r1", in(mcm.MachinePending))), 2, 1, false, reserve.NotReady,
		"3 of 3 machines serve, 2 of 2 in reserve, 1 of these ready"),
	Entry("is silent if there is no reserve", unreserved(leftover), 0, 0, true, reserve.NotWanted, none),
	Entry("is silent if there is no reserve, also if the target cluster does not respond", unreserved(leftover, unreachable), 0, 0, true, reserve.NotWanted, none),
	Entry("is silent if there is none, and it is to be given up", unreserved(leftover, draining), 0, 0, true, reserve.NotWanted, none),
	Entry("says that the target cluster does not respond", atRest(unreachable), 2, 2, false, machinetaint.ClusterUnreachable, noAnswer+complete),
	Entry("says so, too, while no machine is in reserve yet", changed(fleet(2, 1, serving("s1"), serving("s2")), unreachable), 0, 0, false, machinetaint.ClusterUnreachable,
		noAnswer+"2 of 2 machines serve, 0 of 1 in reserve, 0 of these ready"),
	Entry("is not silent while a reserve is desired and has no machine yet", fleet(2, 1, serving("s1"), serving("s2")), 0, 0, false, reserve.Growing,
		"2 of 2 machines serve, 0 of 1 in reserve, 0 of these ready"),
	Entry("says that the reserve is given up", atRest(draining), 2, 2, false, machinetaint.Draining, "the reserve is being removed: "+surplus),
	Entry("says so, too, if an annotation asks for it", atRest(note(api.DrainReserveAnnotation, "true")), 2, 2, false, machinetaint.Draining, "the reserve is being removed: "+surplus),
	Entry("says so, too, if the option asks for it and an annotation does not", atRest(draining, note(api.DrainReserveAnnotation, "false")), 2, 2, false, machinetaint.Draining, "the reserve is being removed: "+surplus),
	Entry("says so, too, if bounds are invalid", atRest(draining, note(api.BoundsAnnotation, "many")), 2, 2, false, machinetaint.Draining, "the reserve is being removed: "+surplus),
	Entry("says so, too, if the accounting is invalid", atRest(note(api.DrainReserveAnnotation, "true"), note(api.AccountingAnnotation, "many")), 2, 2, false, machinetaint.Draining,
		"the reserve is being removed: "+surplus),
	Entry("says so, too, if the capacity of a machine is unknown", atRest(draining, note(api.BoundsAnnotation, "1:9:cpu=8")), 2, 2, false, machinetaint.Draining,
		"the reserve is being removed: "+surplus),
	Entry("does not say so if the annotation says no", atRest(note(api.DrainReserveAnnotation, "false")), 2, 2, false, reserve.Complete, complete),
	Entry("says so until the last machine is gone", changed(fleet(2, 1, held("r1"), serving("s1"), serving("s2")), draining), 1, 1, false, machinetaint.Draining,
		"the reserve is being removed: 2 of 2 machines serve, 1 of 0 in reserve, 1 of these ready; surplus machines are being deleted"),
	Entry("says before that that the target cluster does not respond", atRest(draining, unreachable), 2, 2, false, machinetaint.ClusterUnreachable, noAnswer+surplus),
	Entry("says first what is wrong with the settings", atRest(unreachable, note(api.DrainReserveAnnotation, "maybe")), 2, 2, false, machinetaint.AnnotationInvalid,
		`drain-reserve "maybe": write true or false; until this is fixed, the reserve stays as it is: `+complete),
	Entry("shows how many reserve machines replicas include",
		atRest(inclusive, replicas(5), note(api.AppliedExcessAnnotation, "2,counted=2,replicas=5")), 2, 2, false, reserve.Complete, complete+"; spec.replicas includes 2 of them"),
	Entry("says that replicas include a single one", oneIncluded(), 1, 1, false, reserve.Complete,
		"3 of 3 machines serve, 1 of 1 in reserve, 1 of these ready; spec.replicas includes 1 of them"),
	Entry("says that, too, if the target cluster does not respond",
		atRest(unreachable, inclusive, replicas(5), note(api.AppliedExcessAnnotation, "2,counted=2,replicas=5")), 2, 2, false, machinetaint.ClusterUnreachable,
		noAnswer+complete+"; spec.replicas includes 2 of them"),
	Entry("counts only prepared machines as ready", atRest(prepares(map[types.UID]machinetaint.Preparation{"r2": {Missing: true}})), 2, 1, false, machinetaint.Preparing, complete+"; 1 of these are not prepared yet"),
	Entry("says why machines cannot be prepared", atRest(prepares(map[types.UID]machinetaint.Preparation{"r1": {Missing: true}, "r2": {Missing: true, Failure: "NoAccess: 401"}})), 2, 0, false,
		machinetaint.PreparationFailed, complete+"; 2 of these are not prepared yet: NoAccess: 401"),
	Entry("says the first reason", atRest(prepares(map[types.UID]machinetaint.Preparation{"r1": {Missing: true, Failure: "first"}, "r2": {Missing: true, Failure: "second"}})), 2, 0, false,
		machinetaint.PreparationFailed, complete+"; 2 of these are not prepared yet: first"),
	Entry("says the first taint", atRest(machine("r1", nodeTainted("readiness.k8s.io/a")), machine("r2", nodeTainted("readiness.k8s.io/b"))), 2, 0, false,
		reserve.NotReady, complete+"; 2 of these still have the startup taint readiness.k8s.io/a"),
	Entry("says first that machines are missing, and then why others are not prepared", changed(fleet(2, 2, serving("s1"), serving("s2"), held("r1")), prepares(map[types.UID]machinetaint.Preparation{"r1": {Missing: true, Failure: "no"}})), 1, 0, false, reserve.Growing,
		"2 of 2 machines serve, 1 of 2 in reserve, 1 of these ready; 1 of these are not prepared yet: no"),
	Entry("says first that machines are not ready", atRest(machine("r1", in(mcm.MachinePending)), prepares(map[types.UID]machinetaint.Preparation{"r1": {Missing: true}, "r2": {Missing: true}})), 2, 0, false,
		reserve.NotReady, "3 of 3 machines serve, 2 of 2 in reserve, 1 of these ready; 1 of these are not prepared yet"),
	Entry("says that a machine lacks a device that others of its MachineSet have", atRest(machine("s1", devices("example.com/gpu", "8")), machine("r1", devices("example.com/gpu", "8"))), 2, 1, false,
		machinetaint.Preparing, complete+"; 1 of these are not prepared yet"),
	Entry("counts a machine without a device that others have as not prepared", atRest(machine("s1", devices("example.com/gpu", "1")), machine("r1", devices("example.com/gpu", "0"))), 2, 0, false,
		machinetaint.Preparing, complete+"; 2 of these are not prepared yet"),
	Entry("says nothing of devices that it has, fewer or not", atRest(machine("s1", devices("example.com/gpu", "8")), machine("r1", devices("example.com/gpu", "1")), machine("r2", devices("example.com/gpu", "1"))), 2, 2, false,
		reserve.Complete, complete),
	Entry("says that it lacks one of two devices", atRest(machine("s1", devices("example.com/gpu", "8"), devices("example.com/net", "1")), machine("r1", devices("example.com/gpu", "8"), devices("example.com/net", "1")), machine("r2", devices("example.com/net", "1"))), 2, 1, false,
		machinetaint.Preparing, complete+"; 1 of these are not prepared yet"),
	Entry("does not mention devices that no machine has", atRest(machine("s1", devices("example.com/gpu", "0"))), 2, 2, false, reserve.Complete, complete),
	Entry("counts a machine whose Node is unknown as not prepared", atRest(machine("r1", withoutNode), prepares(map[types.UID]machinetaint.Preparation{"r1": {Missing: true}})), 2, 1, false,
		machinetaint.Preparing, complete+"; 1 of these are not prepared yet"),
	Entry("says nothing of devices of another MachineSet", atRest(machine("s1", devices("example.com/gpu", "8"), ofSet("old"))), 2, 2, false, reserve.Complete, complete),
	Entry("says nothing of devices of a Node that is not ready", atRest(machine("s1", devices("example.com/gpu", "8"), notReady)), 2, 2, false, reserve.Complete, complete),
	Entry("says nothing of what only a kubelet may offer", atRest(machine("s1", devices("scheduling.kubernetes.io/x", "8")), machine("s2", devices("hugepages-2Mi", "8")), machine("s3", devices("kubernetes.io/batch", "8"))), 2, 2, false, reserve.Complete, complete),
	Entry("says nothing of devices while Nodes are old", atRest(machine("s1", devices("example.com/gpu", "8")), unreachable), 2, 2, false, machinetaint.ClusterUnreachable, noAnswer+complete),
	Entry("says what Nodes of the reserve wait for", atRest(machine("r2", nodeTainted("readiness.k8s.io/network"))), 2, 1, false, reserve.NotReady, complete+"; 1 of these still have the startup taint readiness.k8s.io/network"),
	Entry("says first that machines are missing", changed(fleet(2, 2, serving("s1"), serving("s2"), held("r1")), machine("r1", nodeTainted("readiness.k8s.io/network"))), 1, 0, false, reserve.Growing,
		"2 of 2 machines serve, 1 of 2 in reserve, 1 of these ready; 1 of these still have the startup taint readiness.k8s.io/network"),
	Entry("names startup taints before what is not prepared", atRest(machine("r1", nodeTainted("startup-taint.cluster-autoscaler.kubernetes.io/x")), prepares(map[types.UID]machinetaint.Preparation{"r1": {Missing: true}, "r2": {Missing: true, Failure: "NoAccess: 401"}})), 2, 0, false,
		reserve.NotReady, complete+"; 1 of these still have the startup taint startup-taint.cluster-autoscaler.kubernetes.io/x; 1 of these are not prepared yet: NoAccess: 401"),
	Entry("says nothing of the taint of registration, which it removes", atRest(machine("r1", nodeTainted(api.RegistrationTaintKey))), 2, 2, false, reserve.Complete, complete),
	Entry("says nothing of taints of machines that serve, and of other taints", atRest(machine("s1", nodeTainted("readiness.k8s.io/network")), machine("r1", nodeTainted("example.com/x"))), 2, 2, false, reserve.Complete, complete),
	Entry("says nothing of machines that serve", atRest(prepares(map[types.UID]machinetaint.Preparation{"s1": {Missing: true}})), 2, 2, false, reserve.Complete, complete),
	Entry("says that the API server does not store the field", atRest(pruned), 2, 2, false, reserve.Complete, complete+isPruned),
	Entry("says that the API server does not store its witness", atRest(witnessPruned), 2, 2, false, reserve.Complete, complete+isWitnessPruned),
)

var _ = DescribeTable("Settings that cannot be used leave the reserve as it is",
	func(reason reserve.Reason, message string, change ...viewChange) {
		p := machinetaint.New(atRest(change...))
		Expect(p.Report.Reason).To(Equal(reason))
		Expect(p.Report.Message).To(HavePrefix(message))
		Expect(p.Report.Message).To(HaveSuffix("; until this is fixed, the reserve stays as it is: " + complete))
		expectAtRest(p)
	},
	Entry("if bounds cannot be read", machinetaint.BoundsInvalid, `bounds "many"`, note(api.BoundsAnnotation, "many")),
	Entry("if it cannot be read where the reserve is counted", machinetaint.AnnotationInvalid, `accounting "here"`, note(api.AccountingAnnotation, "here")),
	Entry("if that cannot be read, also where replicas include reserves by default", machinetaint.AnnotationInvalid, `accounting "here"`, inclusive, note(api.AccountingAnnotation, "here")),
	Entry("if bounds cannot be read where replicas are not to include it, whatever the default", machinetaint.BoundsInvalid, `bounds "many"`,
		inclusive, note(api.AccountingAnnotation, "Additive"), note(api.BoundsAnnotation, "many")),
	Entry("if it cannot be read whether it is to be given up", machinetaint.AnnotationInvalid, `drain-reserve "maybe"`, note(api.DrainReserveAnnotation, "maybe")),
	Entry("if the capacity of a machine is unknown", machinetaint.CapacityUnknown,
		"convert cpu=8 to machines: capacity of a machine is unknown: give the MachineClass a nodeTemplate", note(api.BoundsAnnotation, "1:9:cpu=8")),
	Entry("if a machine does not have the resource", machinetaint.CapacityUnknown,
		"convert nvidia.com/gpu=8 to machines: capacity of a machine is unknown: its machines do not offer that resource",
		note(api.BoundsAnnotation, "1:9:nvidia.com/gpu=8"), func(v *machinetaint.View) {
			v.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
		}),
)

var _ = Describe("The status of a MachineDeployment", func() {
	now := metav1.NewTime(noon)
	other := mcm.MachineDeploymentCondition{Type: "Available", Status: mcm.ConditionTrue}
	reported := func(conditions ...mcm.MachineDeploymentCondition) *api.MachineDeployment {
		d := &api.MachineDeployment{}
		d.Status.ExcessReplicas, d.Status.ReadyExcessReplicas, d.Status.Conditions = 2, 1, conditions
		return d
	}

	It("loses the numbers and the condition, and nothing else, if there is nothing to report", func() {
		d := reported(other, mcm.MachineDeploymentCondition{Type: api.ReserveReady})
		s := machinetaint.NewStatus(d, machinetaint.Report{Silent: true}, now)
		Expect(s.Conditions).To(Equal([]mcm.MachineDeploymentCondition{other}))
		Expect([]int32{s.ExcessReplicas, s.ReadyExcessReplicas}).To(Equal([]int32{0, 0}))
		Expect(d.Status.Conditions).To(HaveLen(2), "the object of the view stays as it was")
	})

	It("gets a selector with the first reserve, and keeps it", func() {
		d := reported()
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "old", Operator: "DoesNotExist"}}}
		Expect(machinetaint.NewStatus(d, machinetaint.Report{Silent: true}, now).Selector).To(BeEmpty())
		d.Status = machinetaint.NewStatus(d, machinetaint.Report{Reason: reserve.Complete}, now)
		Expect(d.Status.Selector).To(Equal("!old,pool=a"))
		Expect(machinetaint.NewStatus(d, machinetaint.Report{Silent: true}, now).Selector).To(Equal("!old,pool=a"))
		d.Spec.Selector.MatchLabels["pool"] = "b"
		Expect(machinetaint.NewStatus(d, machinetaint.Report{Reason: reserve.Complete}, now).Selector).To(Equal("!old,pool=b"))
	})

	DescribeTable("has no selector that selects everything or nothing", func(s *metav1.LabelSelector) {
		d := reported()
		d.Spec.Selector = s
		Expect(machinetaint.NewStatus(d, machinetaint.Report{Reason: reserve.Complete}, now).Selector).To(BeEmpty())
	},
		Entry("without one", nil),
		Entry("with an empty one", &metav1.LabelSelector{}),
		Entry("with an invalid one", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}),
	)

	It("gets the condition beside those of others", func() {
		s := machinetaint.NewStatus(reported(other), machinetaint.Report{Reserve: 3, Ready: 2, Reason: reserve.NotReady, Message: "2 of 3"}, now)
		Expect([]int32{s.ExcessReplicas, s.ReadyExcessReplicas}).To(Equal([]int32{3, 2}))
		Expect(s.Conditions).To(Equal([]mcm.MachineDeploymentCondition{other, {
			Type: api.ReserveReady, Status: mcm.ConditionFalse, Reason: "NotReady", Message: "2 of 3", LastUpdateTime: now, LastTransitionTime: now,
		}}))
	})

	It("corrects a status that does not fit the reason", func() {
		wrong := mcm.MachineDeploymentCondition{Type: api.ReserveReady, Status: mcm.ConditionTrue, Reason: "NotReady", Message: "2 of 3"}
		s := machinetaint.NewStatus(reported(wrong), machinetaint.Report{Reason: reserve.NotReady, Message: "2 of 3"}, now)
		Expect(s.Conditions).To(HaveExactElements(And(HaveField("Status", mcm.ConditionFalse), HaveField("LastTransitionTime", now))))
	})

	It("shows the condition wherever it stands", func() {
		Expect(machinetaint.Condition(reported(other))).To(BeNil())
		for _, all := range [][]mcm.MachineDeploymentCondition{{other, {Type: api.ReserveReady, Reason: "AtMax"}}, {{Type: api.ReserveReady, Reason: "AtMax"}, other}} {
			Expect(machinetaint.Condition(reported(all...))).To(HaveValue(HaveField("Reason", "AtMax")))
			s := machinetaint.NewStatus(reported(all...), machinetaint.Report{Reason: reserve.Complete}, now)
			Expect(s.Conditions).To(And(HaveLen(2), ContainElement(HaveField("Reason", "Complete")), ContainElement(other)))
		}
	})
})
