// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

// update returns the MachineSets of an update.
func update(sets ...setOf) []setOf { return sets }

func expectUpdate(replicas int32, l limits, sets []setOf, want string) {
	GinkgoHelper()
	Expect(updateSteps(New(updateOf(replicas, l, sets...)))).To(Equal(want))
}

var _ = DescribeTable("An update in place begins", expectUpdate,
	Entry("I10: with the machines that surge allows", int32(3), auto(2, 0), update(oldSet(3, "rrr")), "begin with 2"),
	Entry("I10: with none without surge", int32(3), auto(0, 1), update(oldSet(3, "rrr")), "begin with 0"),
	Entry("I10: with none that people orchestrate", int32(3), manual, update(oldSet(3, "rrr")), "begin with 0"),
	Entry("I10: with no more than replicas", int32(1), auto(4, 0), update(oldSet(1, "r")), "begin with 1"),
	Entry("I10: with fewer while machines are leaving", int32(3), auto(2, 0), update(oldSet(3, "rrrt")), "begin with 1"),
	Entry("I7: with all where there are no old ones", int32(3), manual, update(), "begin with 0"),
	Entry("I7: which follow at once", int32(3), manual, update(newestSet(0, "")), "newest 0 -> 3, newest creates 3"),
)

var _ = DescribeTable("Machines are selected", expectUpdate,
	Entry("I8: as many as may be unavailable, by name", int32(3), auto(0, 2), update(oldSet(3, "ccc"), newestSet(0, "")), "select old-0, select old-1"),
	Entry("I8: as soon as they are candidates", int32(3), auto(0, 1), update(oldSet(3, "rrr"), newestSet(0, "")), "select old-0"),
	Entry("I8: of the oldest set first", int32(3), auto(0, 2), update(olderSet(1, "c"), oldSet(2, "cc"), newestSet(0, "")), "select old-0, select older-0"),
	Entry("I8: none beyond that", int32(3), auto(0, 2), update(oldSet(3, "usc"), newestSet(0, "")), ""),
	Entry("I8: one after the other", int32(3), auto(0, 1), update(oldSet(2, "cc"), newestSet(1, "r")), "select old-0"),
	Entry("I8: not while one that has moved does not serve", int32(3), auto(0, 1), update(oldSet(2, "cc"), newestSet(1, "b")), ""),
	Entry("I8: nor if that is one of several", int32(4), auto(0, 2), update(oldSet(2, "cc"), newestSet(2, "br")), "select old-0"),
	Entry("I8: not before the machines of surge serve", int32(3), auto(1, 0), update(oldSet(3, "ccc"), newestSet(1, "b")), ""),
	Entry("I8: once these do", int32(3), auto(1, 0), update(oldSet(3, "ccc"), newestSet(1, "r")), "select old-0"),
	Entry("I8: not those that are more than replicas with the new ones", int32(3), auto(2, 2), update(oldSet(3, "scc"), newestSet(2, "rr")), ""),
	Entry("I8: nor more than the new set lacks", int32(3), auto(2, 3), update(oldSet(3, "ccc"), newestSet(2, "rr")), "select old-0"),
	Entry("I8: while others fail to serve, none", int32(3), auto(0, 1), update(oldSet(3, "xcc"), newestSet(0, "")), "delete old-0"),
	Entry("I8: those that serve, because an update of others may never end", int32(3), auto(0, 2), update(oldSet(3, "bcc"), newestSet(0, "")), "select old-1"),
	Entry("I8: not those that are leaving", int32(3), auto(0, 2), update(oldSet(3, "lcc"), newestSet(0, "")), "select old-1"),
	Entry("I8: not those that have no Node", int32(2), auto(0, 1), update(oldSet(2, "bb"), newestSet(0, "")), ""),
	Entry("I8, I11: none where people do that", int32(3), manual, update(oldSet(3, "ccc"), newestSet(0, "")), ""),
	Entry("I9: none in the place of one whose update has failed", int32(3), auto(0, 1), update(oldSet(3, "fcc"), newestSet(0, "")), ""),
	Entry("I8: one more, beside one that is selected", int32(3), auto(0, 2), update(oldSet(3, "scc"), newestSet(0, "")), "select old-1"),
	Entry("I8: none that does not answer", int32(3), auto(0, 2), update(oldSet(3, "kcc"), newestSet(0, "")), "select old-1"),
	Entry("I8: one more, while one of the new set is being updated, which was an old set before", int32(4), auto(0, 2), update(oldSet(2, "cc"), newestSet(2, "ur")), "select old-0"),
	Entry("I8: in the plan in which the update before ends", int32(3), auto(0, 1), update(oldSet(2, "cc"), newestSet(1, "R")), "finish newest-0, select old-0"),
	Entry("I8: one that is terminating does not hold its place", int32(3), auto(0, 1), update(oldSet(2, "cct"), newestSet(1, "r")), "select old-0"),
	Entry("I8: none while one of the new set is selected, which was an old set before", int32(3), auto(0, 1), update(oldSet(2, "cc"), newestSet(1, "s")), ""),
	Entry("D11: one where nothing else is possible", int32(3), auto(0, 0), update(oldSet(3, "ccc"), newestSet(0, "")), "select old-0"),
	Entry("D12: none without replicas", int32(0), auto(1, 1), update(oldSet(1, "c"), newestSet(0, "")), "old 1 -> 0, delete old-0"),
	Entry("I5: while a machine of the new set boots, too", int32(4), auto(1, 1), update(oldSet(4, "cccc"), newestSet(1, "b")), "select old-0"),
)

var _ = DescribeTable("Machines move", expectUpdate,
	Entry("I7: when they have been updated, before sizes change", int32(3), auto(0, 1), update(oldSet(3, "dcc"), newestSet(0, "")), "move old-0"),
	Entry("I7: all at once, from all sets", int32(4), auto(0, 3), update(olderSet(1, "d"), oldSet(3, "ddc"), newestSet(0, "")), "move older-0, move old-0, move old-1"),
	Entry("I7: not while they are being updated", int32(3), auto(0, 1), update(oldSet(3, "ucc"), newestSet(0, "")), ""),
	Entry("I7: nor before the machine controller has seen the end", int32(3), auto(0, 1), update(oldSet(3, "Ucc"), newestSet(0, "")), ""),
	Entry("I7: nor before it has seen the result", int32(3), auto(0, 1), update(oldSet(3, "ecc"), newestSet(0, "")), ""),
	Entry("I9: not if the update has failed", int32(3), auto(0, 1), update(oldSet(3, "fcc"), newestSet(0, "")), ""),
	Entry("I9: nor while the machine controller does not know that it has not", int32(3), auto(0, 1), update(oldSet(3, "Fcc"), newestSet(0, "")), ""),
	Entry("I7: not if they are leaving", int32(3), auto(0, 1), update(oldSet(3, "Dcc"), newestSet(0, "")), ""),
	Entry("I7: before others are selected", int32(3), auto(0, 3), update(oldSet(3, "dcc"), newestSet(0, "")), "move old-0"),
	Entry("I7: not without the result", int32(3), auto(0, 1), update(oldSet(3, "wcc"), newestSet(0, "")), ""),
	Entry("I7: not if they have failed: those go", int32(3), auto(0, 1), update(oldSet(3, "Xcc"), newestSet(0, "")), "delete old-0"),
	Entry("I7: if people have selected them", int32(3), manual, update(oldSet(3, "dcc"), newestSet(0, "")), "move old-0"),
	Entry("T3: not to a set that is being deleted", int32(3), manual, update(oldSet(3, "dcc"), newestSet(0, "", goes)), ""),
	Entry("I7: not while machines are missing", int32(3), manual, update(oldSet(2, "dc"), newestSet(0, "")), "newest 0 -> 1, newest creates 1"),
)

var _ = DescribeTable("Machines that have moved count", expectUpdate,
	Entry("I3, I4, I6: in the new set, and not in the old one", int32(3), auto(0, 1), update(oldSet(3, "cc"), newestSet(0, "m")), "old 3 -> 2, newest 0 -> 1, count newest-0, finish newest-0"),
	Entry("I3: once, if the label was not removed then", int32(3), auto(0, 1), update(oldSet(2, "cc"), newestSet(1, "m")), "count newest-0, finish newest-0"),
	Entry("I6: in sizes before the label is removed", int32(3), auto(0, 1), update(oldSet(3, "cc"), newestSet(1, "m")), "old 3 -> 2, count newest-0, finish newest-0"),
	Entry("I3: in the place of a machine that is terminating, without another one", int32(3), auto(0, 1), update(oldSet(2, "cc"), newestSet(1, "tm")), "count newest-1, finish newest-1"),
	Entry("I3: each of them", int32(4), auto(0, 2), update(oldSet(3, "c"), newestSet(1, "rmm")), "old 3 -> 1, newest 1 -> 3, count newest-1, count newest-2, finish newest-1, finish newest-2"),
	Entry("I3: where another set has become the new one meanwhile", int32(3), manual, update(olderSet(3, "cc"), oldSet(0, "m"), newestSet(0, "")), "older 3 -> 2, old 0 -> 1, move old-0"),
	Entry("I3: and not in the newest set, if they have left that", int32(3), manual, update(oldSet(2, "ccm"), newestSet(1, "")), "newest 1 -> 0, old 2 -> 3, move old-2"),
	Entry("I3: but one that is missing there is created", int32(3), manual, update(olderSet(1, ""), oldSet(1, "cm"), newestSet(1, "")), "older 1 -> 0, old 1 -> 2, count old-1, newest creates 1"),
	Entry("I3: nor are more taken from the newest set than are missing there", int32(3), manual, update(olderSet(1, "cm"), oldSet(1, "cm"), newestSet(1, "")), "newest 1 -> 0, older 1 -> 2, old 1 -> 2, move older-1, move old-1"),
	Entry("I3: and machines that are missing are not counted", int32(3), auto(2, 1), update(oldSet(2, "cc"), newestSet(3, "r")), "old 2 -> 1, newest creates 2, delete old-0"),
	Entry("I6: not without the result", int32(3), manual, update(oldSet(2, "cc"), newestSet(1, "w")), ""),
	Entry("I6: when their Nodes still have marks", int32(3), auto(0, 1), update(oldSet(2, "cc"), newestSet(1, "d")), "finish newest-0"),
	Entry("I6: not when that update has failed", int32(3), manual, update(oldSet(2, "cc"), newestSet(1, "f")), ""),
	Entry("I6: nor before the machine controller has seen the end, in a set that was an old one before", int32(3), manual, update(oldSet(1, "c"), newestSet(2, "UF")), ""),
	Entry("I5: also while another machine boots", int32(3), manual, update(oldSet(2, "c"), newestSet(1, "mb")), "old 2 -> 1, newest 1 -> 2, count newest-0, finish newest-0"),
)

var _ = DescribeTable("Sizes of an update", expectUpdate,
	Entry("I6: an old set has no machine in the place of one that is gone", int32(3), manual, update(oldSet(3, "cc"), newestSet(0, "")), "old 3 -> 2, newest 0 -> 1, newest creates 1"),
	Entry("I6: nor of one that is going", int32(3), manual, update(oldSet(3, "cct", enabled), newestSet(0, "")), "old 3 -> 2, newest 0 -> 1, newest creates 1"),
	Entry("I6: but one that others have deleted has its place", int32(3), manual, update(oldSet(3, "ccl"), newestSet(0, "")), ""),
	Entry("I6, I7: the new set replaces failed ones", int32(3), manual, update(oldSet(3, "ccx"), newestSet(0, "")), "delete old-2"),
	Entry("I7: the new set has all where there are no old ones", int32(3), manual, update(oldSet(0, ""), newestSet(1, "r")), "newest 1 -> 3, newest creates 2"),
	Entry("I7: the new set never has more than replicas", int32(2), auto(0, 1), update(oldSet(0, ""), newestSet(3, "rrr")), "newest 3 -> 2, delete newest-0"),
	Entry("I8: machines that are left over because of surge go", int32(3), auto(1, 0), update(oldSet(1, "c"), newestSet(3, "rrr")), "old 1 -> 0, delete old-0"),
	Entry("I8: as soon as enough others serve", int32(3), auto(1, 0), update(oldSet(1, "c"), newestSet(3, "rrd")), "finish newest-2"),
	Entry("I8: all but the needed ones", int32(3), auto(2, 0), update(olderSet(1, "c"), oldSet(1, "c"), newestSet(3, "rrb")), "older 1 -> 0, delete older-0"),
	Entry("I8: or if they may be unavailable", int32(3), auto(1, 1), update(oldSet(1, "c"), newestSet(3, "rrb")), "old 1 -> 0, delete old-0"),
)

var _ = DescribeTable("Replicas that change in an update, D7,", expectUpdate,
	Entry("make the new set grow", int32(5), manual, update(oldSet(2, "cc", sized(3)), newestSet(1, "r", sized(3))), "newest 1 -> 3, newest creates 2"),
	Entry("also if it has no machines yet", int32(5), manual, update(oldSet(3, "ccc", sized(3)), newestSet(0, "")), "newest 0 -> 2, newest creates 2"),
	Entry("make the oldest sets shrink", int32(2), manual, update(olderSet(1, "c", sized(4)), oldSet(2, "cc", sized(4)), newestSet(1, "r", sized(4))), "older 1 -> 0, old 2 -> 1, delete older-0, delete old-0"),
	Entry("leave the machines of surge", int32(2), auto(1, 1), update(oldSet(3, "ccc", sized(3)), newestSet(1, "r", sized(3))), "old 3 -> 2, delete old-0"),
	Entry("where there are any", int32(2), auto(1, 0), update(oldSet(3, "ccc", sized(3)), newestSet(0, "")), "old 3 -> 2, delete old-0"),
	Entry("remove machines that are being updated first", int32(2), manual, update(oldSet(3, "ccu", sized(3)), newestSet(0, "")), "old 3 -> 2, delete old-2"),
	Entry("let the new set shrink, if it has more", int32(1), manual, update(oldSet(1, "c", sized(3)), newestSet(2, "rr", sized(3))), "old 1 -> 0, newest 2 -> 1, delete old-0, delete newest-0"),
	Entry("let machines move all the same", int32(3), manual, update(oldSet(2, "dc", sized(4)), newestSet(1, "r", sized(4))), "move old-0"),
	Entry("leave nothing as surge where people update: there is none", int32(2), limits{1, 1, mcm.OrchestrationTypeManual}, update(oldSet(2, "cc", sized(3)), newestSet(1, "r", sized(3))), "old 2 -> 1, delete old-0"),
	Entry("let all go, also the last of each set", int32(0), manual, update(oldSet(1, "c", sized(2)), newestSet(1, "r", sized(2))), "old 1 -> 0, newest 1 -> 0, delete old-0, delete newest-0"),
	Entry("let all go", int32(0), manual, update(oldSet(2, "cc", sized(3)), newestSet(1, "r", sized(3))), "old 2 -> 0, newest 1 -> 0, delete old-0, delete old-1, delete newest-0"),
)

var _ = It("D7, T13: All sets that have machines say for how many replicas they have these", func() {
	v := updateOf(3, manual, oldSet(2, "cc", sized(4)), newestSet(1, "r", sized(4)))
	p := New(v)
	for _, name := range []string{"old", "newest"} {
		Expect(setChanged(v, p, name).Annotations).To(And(
			HaveKeyWithValue("deployment.kubernetes.io/desired-replicas", "3"), HaveKeyWithValue("deployment.kubernetes.io/max-replicas", "3")), name)
	}
})

var _ = DescribeTable("T13: What keeps its size gets no record", func(replicas int32, sets []setOf, name string) {
	v := updateOf(replicas, manual, sets...)
	before := v.Sets[slices.IndexFunc(v.Sets, func(s Set) bool { return s.Object.Name == name })].Object
	Expect(setChanged(v, New(v), name).Annotations).To(Equal(before.Annotations))
},
	Entry("a set without machines", int32(3), update(oldSet(0, "", sized(5)), newestSet(3, "rrr")), "old"),
	Entry("an old set that has its machines", int32(3), update(oldSet(2, "cc", unrecorded), newestSet(1, "r")), "old"),
	Entry("a new set that has no machines yet, when replicas fall", int32(2), update(oldSet(3, "ccc", sized(3)), newestSet(0, "", unrecorded)), "newest"),
	Entry("a new set, when machines count in another one", int32(3), update(olderSet(3, "cc"), oldSet(0, "m"), newestSet(0, "", unrecorded)), "newest"),
)

var _ = It("D8: While it is paused, replicas change, and nothing else happens", func() {
	v := updateOf(4, auto(0, 2), oldSet(2, "dc", sized(3)), newestSet(1, "r", sized(3)))
	v.Deployment.Spec.Paused = true
	Expect(updateSteps(New(v))).To(Equal("newest 1 -> 2, newest creates 1"))
	v = updateOf(2, auto(0, 2), oldSet(2, "dc", sized(3)), newestSet(1, "r", sized(3)))
	v.Deployment.Spec.Paused = true
	Expect(updateSteps(New(v))).To(Equal("old 2 -> 1, delete old-0"))
	v = updateOf(3, auto(0, 2), oldSet(2, "dc"), newestSet(1, "m"))
	v.Deployment.Spec.Paused = true
	Expect(updateSteps(New(v))).To(BeEmpty())
	v = updateOf(3, auto(0, 2), oldSet(2, "cc"), newestSet(0, ""))
	v.Deployment.Spec.Paused = true
	Expect(updateSteps(New(v))).To(BeEmpty(), "not even what is missing comes")
})

var _ = DescribeTable("While it is paused,", func(replicas int32, sets []setOf, want string) {
	v := updateOf(replicas, auto(1, 0), sets...)
	v.Deployment.Spec.Paused = true
	Expect(updateSteps(New(v))).To(Equal(want))
},
	Entry("D8, D3: the only set has replicas, and no new one is created", int32(4), update(oldSet(3, "rrr", sized(3), enabled)), "old 3 -> 4, old creates 1"),
	Entry("D8, D3: the new set has replicas, where no old one has machines, and no surge", int32(2), update(oldSet(0, ""), newestSet(3, "rrr", sized(3))), "newest 3 -> 2, delete newest-0"),
	Entry("D8, D4: old sets go when the new one has all", int32(3), update(oldSet(1, "c"), newestSet(3, "rrr")), "old 1 -> 0, delete old-0"),
)

var _ = It("T3: A set that is being deleted is waited for", func() {
	Expect(New(updateOf(3, manual, oldSet(3, "dcc"), newestSet(0, "t", goes))).Again).To(BeZero())
})

var _ = It("I8: A machine whose Node is gone does not take the place of another one that is selected", func() {
	v := updateOf(3, auto(0, 2), oldSet(3, "ccc"), newestSet(0, ""))
	delete(v.Nodes, "node-old-0")
	Expect(updateSteps(New(v))).To(Equal("select old-1, select old-2"))
})

var _ = It("I7: A machine moves with its labels and the owners that others have given it", func() {
	v := updateOf(2, manual, oldSet(2, "du", enabled), newestSet(0, ""))
	other := metav1.OwnerReference{Kind: "Other", Name: "other", UID: "other"}
	m := v.Sets[0].Machines[0]
	m.OwnerReferences = append(m.OwnerReferences, other)
	old := v.Sets[0].Object
	old.Spec.Template.Labels = map[string]string{"name": "pool", "machine-template-hash": "old", "only": "old"}
	old.Spec.Selector.MatchLabels = old.Spec.Template.Labels
	for _, m := range v.Sets[0].Machines {
		m.Labels["only"] = "old"
	}
	p := New(v)
	Expect(p.Machines).To(HaveLen(1))
	after := p.Machines[0].After
	Expect(after.Labels).To(Equal(map[string]string{
		"name": "pool", "machine-template-hash": "newest", "others": "stay", mcm.NodeLabelKey: "node-old-0", result: "successful",
	}))
	Expect(after.OwnerReferences).To(ConsistOf(other, *metav1.NewControllerRef(v.Sets[1].Object, mcm.SchemeGroupVersion.WithKind("MachineSet"))))
	Expect(after.Spec).To(Equal(m.Spec), "with its class")
	Expect(nodeAfter(v, p, "old-0").Spec.Unschedulable).To(BeTrue(), "no pods before critical components are awaited")
	Expect(setChanged(v, p, "old").Labels).To(HaveKeyWithValue(machineutils.LabelKeyMachineSetScaleUpDisabled, "true"), "or a machine would be created in its place")
	Expect(New(updateOf(2, manual, oldSet(2, "du"), newestSet(0, ""))).Again).To(beSoon(), "sizes follow soon")
})

var _ = It("I6: A Node whose update is over loses its marks and accepts pods after critical components", func() {
	v := updateOf(1, manual, newestSet(1, "d"))
	critical := corev1.Taint{Key: machineutils.TaintNodeCriticalComponentsNotReady, Effect: corev1.TaintEffectNoSchedule}
	others := corev1.Taint{Key: "others", Effect: corev1.TaintEffectNoSchedule}
	node := nodeAfter(v, New(v), "newest-0")
	Expect(node.Labels).To(BeEmpty())
	Expect(node.Annotations).To(Equal(map[string]string{"others": "stay"}))
	Expect(node.Spec).To(Equal(corev1.NodeSpec{Taints: []corev1.Taint{others, critical}}))
	stored := v.Nodes["node-newest-0"]
	Expect(stored.Spec.Unschedulable).To(BeTrue(), "what was looked at is as it was")
	stored.Spec.Taints = []corev1.Taint{critical, others}
	Expect(nodeAfter(v, New(v), "newest-0").Spec.Taints).To(ConsistOf(critical, others), "each once")
	noExecute := corev1.Taint{Key: machineutils.TaintNodeCriticalComponentsNotReady, Effect: corev1.TaintEffectNoExecute}
	stored.Spec.Taints = []corev1.Taint{noExecute}
	Expect(nodeAfter(v, New(v), "newest-0").Spec.Taints).To(ConsistOf(noExecute, critical), "another effect is another taint")
})

var _ = It("I6: A Node is not done before its condition says so", func() {
	v := updateOf(1, manual, newestSet(1, "d"))
	v.Nodes["node-newest-0"].Status.Conditions[1].Reason = mcm.ReadyForUpdate
	Expect(New(v).Nodes).To(BeEmpty())
})

var _ = It("I1, I2, R6, R7: Old sets and their Nodes are marked, and all Nodes are protected", func() {
	v := updateOf(4, manual, olderSet(0, "", enabled), oldSet(3, "rrr", enabled, func(s *mcm.MachineSet) { delete(s.Annotations, PreferNoSchedule) }), newestSet(1, "r"))
	v.Settings.ProtectInRollout = true
	p := New(v)
	for name, disabled := range map[string]bool{"older": true, "old": true, "newest": false} {
		_, is := setChanged(v, p, name).Labels[machineutils.LabelKeyMachineSetScaleUpDisabled]
		Expect(is).To(Equal(disabled), name)
	}
	for name, isOld := range map[string]bool{"old-0": true, "old-1": true, "old-2": true, "newest-0": false} {
		node := nodeAfter(v, p, name)
		Expect(node.Labels[candidate] == "true").To(Equal(isOld), name)
		Expect(len(node.Spec.Taints) == 1).To(Equal(isOld), name)
		Expect(node.Annotations).To(HaveKey("cluster-autoscaler.kubernetes.io/scale-down-disabled"), name)
	}
})

var _ = It("I2: Sets keep the label as it is, and get none while no old machine serves", func() {
	v := updateOf(2, manual, oldSet(2, "rr", disabledBy("by hand")), newestSet(0, "", disabledBy("by hand")))
	p := New(v)
	Expect(setChanged(v, p, "old").Labels).To(HaveKeyWithValue(machineutils.LabelKeyMachineSetScaleUpDisabled, "by hand"))
	Expect(setChanged(v, p, "newest").Labels).To(HaveKeyWithValue(machineutils.LabelKeyMachineSetScaleUpDisabled, "by hand"))
	v = updateOf(2, manual, oldSet(2, "uu", enabled), newestSet(0, ""))
	Expect(setChanged(v, New(v), "old").Labels).NotTo(HaveKey(machineutils.LabelKeyMachineSetScaleUpDisabled))
})

var _ = It("I2: A set that is the newest again creates machines", func() {
	v := updateOf(2, manual, newestSet(2, "r", disabledBy("true")))
	p := New(v)
	Expect(setChanged(v, p, "newest").Labels).NotTo(HaveKey(machineutils.LabelKeyMachineSetScaleUpDisabled))
	Expect(updateSteps(p)).To(Equal("newest creates 1"))
})

var _ = It("I1, R9, R12: When it is over, Nodes are not protected any more, and old sets go", func() {
	v := updateOf(1, manual, oldSet(0, ""), newestSet(1, "r"))
	v.Settings.ProtectInRollout = true
	v.Deployment.Spec.RevisionHistoryLimit = new(int32)
	v.Nodes["node-newest-0"].Annotations = map[string]string{
		"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true", "cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm": "true",
	}
	v.Nodes["node-newest-0"].Spec.Taints = []corev1.Taint{{Key: PreferNoSchedule, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule}}
	Expect(New(v).SetDeletions).To(BeEmpty(), "the status does not say yet that it is over")
	status := &v.Deployment.Status
	status.ObservedGeneration, status.Replicas, status.UpdatedReplicas, status.AvailableReplicas = 2, 1, 1, 1
	p := New(v)
	Expect(p.SetDeletions).To(HaveExactElements(HaveField("Name", "old")))
	node := nodeAfter(v, p, "newest-0")
	Expect(node.Annotations).To(BeEmpty())
	Expect(node.Spec.Taints).To(HaveLen(1), "no R11")
})

var _ = DescribeTable("Two versions of a Node say the same about its update", func(change func(*corev1.Node), same bool) {
	g := stages['s']
	v := updateOf(1, manual)
	g.machine(v, newSet("s", 1), "a")
	node := v.Nodes["node-a"]
	other := node.DeepCopy()
	change(other)
	Expect(SameUpdate(node, other)).To(Equal(same))
},
	Entry("if anything else differs", func(n *corev1.Node) { n.Labels["zone"] = "a"; n.Spec.Unschedulable = true }, true),
	Entry("unless it is no candidate any more", func(n *corev1.Node) { delete(n.Labels, candidate) }, false),
	Entry("unless it is not selected any more", func(n *corev1.Node) { delete(n.Labels, selected) }, false),
	Entry("unless it has a result", func(n *corev1.Node) { n.Labels[result] = "failed" }, false),
	Entry("unless the condition has another reason", func(n *corev1.Node) { n.Status.Conditions[1].Reason = mcm.UpdateSuccessful }, false),
)
