// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

// parts are the MachineSets of a view.
func parts(all ...part) []part { return all }

// isMarked is for MachineSets whose Nodes have been marked.
func isMarked(s *mcm.MachineSet) { s.Annotations[PreferNoSchedule] = "True" }

var _ = DescribeTable("RollingUpdate",
	func(d *api.MachineDeployment, sets []part, want string) {
		Expect(moves(New(viewOf(d, sets...)))).To(Equal(want))
	},
	Entry("D10: begins with a set that has room for surge", newDeployment(3), parts(of("old", 3, "rrr")), "new set of 1"),
	Entry("D10: the first set has all machines at once", newDeployment(3), parts(), "new set of 3"),
	Entry("D10: a set without machines where there is no room", newDeployment(3, rolls("0", "1")), parts(of("old", 3, "rrr")), "new set of 0"),
	Entry("D10: no more than replicas", newDeployment(2, rolls("9", "0")), parts(of("old", 2, "rr")), "new set of 2"),
	Entry("D10: machines that are leaving take a place", newDeployment(3), parts(of("old", 3, "rrrt")), "new set of 0"),
	Entry("D10: machines that are yet to come take a place", newDeployment(3), parts(of("old", 3, "rr")), "new set of 1, old creates 1"),
	Entry("D10: and so do those that come in place of leaving ones", newDeployment(3, rolls("2", "0")), parts(of("old", 3, "rrt"), of("new", 1, "p")), "old creates 1"),
	Entry("D10: grows by what there is room for", newDeployment(4, rolls("2", "0")), parts(of("old", 3, "rrr"), of("new", 1, "p")), "new 1 -> 3, new creates 2"),
	Entry("D12: a set for a new template also without replicas", newDeployment(0), parts(of("old", 0, "")), "new set of 0"),
	Entry("D12: all sets to 0 without replicas", newDeployment(0), parts(of("old", 1, "r"), of("new", 1, "r")), "old 1 -> 0, new 1 -> 0, delete old-0, delete new-0"),
	Entry("R1: a new set never has more than replicas", newDeployment(2), parts(of("old", 1, "r"), of("new", 4, "rrrr")), "old 1 -> 0, new 4 -> 2, delete old-0, delete new-0, delete new-1"),
	Entry("R1: what has all machines rests", newDeployment(2), parts(of("new", 2, "rr")), ""),
	Entry("R2: nothing goes while new machines boot", newDeployment(3), parts(of("old", 3, "rrr"), of("new", 1, "p")), ""),
	Entry("R2: as many go as may be unavailable", newDeployment(4, rolls("0", "2")), parts(of("old", 4, "rrrr"), of("new", 0, "")), "old 4 -> 2, delete old-0, delete old-1"),
	Entry("R2: new machines that boot are unavailable, too", newDeployment(4, rolls("1", "2")), parts(of("old", 4, "rrrr"), of("new", 1, "p")), "old 4 -> 2, delete old-0, delete old-1"),
	Entry("R2: the number of those that may be unavailable is rounded down", newDeployment(3, rolls("1", "50%")), parts(of("old", 3, "rrr"), of("new", 1, "p")), "old 3 -> 2, delete old-0"),
	Entry("R3: old machines that do not serve go at once, and make room", newDeployment(3), parts(of("old", 3, "rpu"), of("new", 1, "r")), "old 3 -> 2, delete old-2"),
	Entry("R3: from the oldest set first", newDeployment(3, rolls("1", "1")), parts(of("a", 1, "p"), of("b", 1, "p"), of("new", 2, "rp")), "a 1 -> 0, delete a-0"),
	Entry("R3: those first in all sets", newDeployment(3, rolls("1", "0")), parts(of("a", 1, "r"), of("b", 2, "rp"), of("new", 1, "r")), "b 2 -> 1, delete b-1"),
	Entry("R3: machines that were not created yet do not serve", newDeployment(3), parts(of("old", 3, "rr"), of("new", 1, "r")), "old 3 -> 2"),
	Entry("R3: nor do those that others have deleted", newDeployment(3), parts(of("a", 1, "r"), of("b", 2, "rl"), of("new", 1, "r")), "b 2 -> 1"),
	Entry("R4: then one for each new one that serves, the oldest set first", newDeployment(3), parts(of("a", 1, "r"), of("b", 2, "rr"), of("new", 1, "r")), "a 1 -> 0, delete a-0"),
	Entry("R4: down to the last", newDeployment(2), parts(of("old", 1, "r"), of("new", 2, "rr")), "old 1 -> 0, delete old-0"),
	Entry("R4: more new machines than replicas make no room", newDeployment(2), parts(of("old", 2, "rr"), of("new", 0, "rr")), "delete new-0, delete new-1"),
	Entry("R4: a set that is being deleted does not serve", newDeployment(3), parts(of("a", 2, "rr", goes), of("b", 2, "rr"), of("new", 1, "r")), "delete a-0, delete a-1"),
	Entry("T13: what keeps its size gets no record", newDeployment(2), parts(of("old", 2, "rr", unrecorded), of("new", 1, "p")), ""),
	Entry("T3: nor does a new one that is, so that the last that serves stays", newDeployment(1), parts(of("old", 1, "r"), of("new", 1, "r", goes)), "delete new-0"),
	Entry("T3: nor does a new one that is", newDeployment(2), parts(of("old", 1, "r"), of("new", 2, "rr", goes)), "delete new-0, delete new-1"),
	Entry("R5: the machines that serve least go", newDeployment(2, rolls("0", "1")), parts(of("old", 2, "ru"), of("new", 0, "")), "old 2 -> 1, delete old-1"),
	Entry("D11: one may be unavailable where nothing else is possible", newDeployment(2, rolls("0", "0")), parts(of("old", 2, "rr"), of("new", 0, "")), "old 2 -> 1, delete old-0"),
)

var _ = DescribeTable("RollingUpdate marks",
	func(d *api.MachineDeployment, sets []part, want string) {
		Expect(steps(New(viewOf(d, sets...)))).To(Equal(want))
	},
	Entry("R6, R7: no Nodes before there is a new set", newDeployment(2), parts(of("old", 2, "rr")), "new set of 1"),
	Entry("R6, R7: the Nodes of old sets, and protects all", newDeployment(2), parts(of("old", 2, "rr"), of("new", 1, "u")),
		"protect new-0, avoid old-0, protect old-0, avoid old-1, protect old-1"),
	Entry("R6: each set once", newDeployment(2), parts(of("old", 2, "pp"), of("new", 1, "p")), "old is marked"),
	Entry("R6: so no Nodes of machines that came later", newDeployment(2), parts(of("old", 2, "rr", isMarked), of("new", 1, "p")), "protect old-0, protect old-1"),
	Entry("R8: protects none where no old machine serves", newDeployment(2), parts(of("old", 2, "uu", isMarked), of("new", 1, "u")), ""),
	Entry("R8: nor where none runs", newDeployment(2), parts(of("old", 2, "aa", isMarked), of("new", 1, "u")), ""),
	Entry("R8: nor where none has all labels of its template", newDeployment(2), parts(of("old", 2, "rr", isMarked, func(s *mcm.MachineSet) {
		s.Spec.Template.Labels = map[string]string{"name": "d", hashLabel: "old", "more": "x"}
	}), of("new", 1, "u")), ""),
	Entry("R8: nor where the old ones are only leaving", newDeployment(2), parts(of("old", 0, "l", isMarked), of("new", 2, "rp")), ""),
)

// withMarks gives a Node what a rollout leaves on it.
func withMarks(v View, node string, annotations map[string]string) View {
	n := v.Nodes[node]
	n.Annotations = annotations
	n.Spec.Taints = []corev1.Taint{{Key: PreferNoSchedule, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule}}
	return v
}

var _ = Describe("A rollout that is complete", func() {
	both := map[string]string{scaleDown: "true", scaleDownMCM: "true"}
	one := func(change ...deploymentChange) *api.MachineDeployment {
		return newDeployment(1, append(change, completed)...)
	}

	DescribeTable("ends what others were told", func(v View, want string) {
		Expect(steps(New(v))).To(Equal(want))
	},
		Entry("R9: protection ends", withMarks(viewOf(one(), of("new", 1, "r")), "node-new-0", both), "release new-0"),
		Entry("R9: not before the status says so", withMarks(viewOf(newDeployment(1), of("new", 1, "r")), "node-new-0", both), ""),
		Entry("R9: what a person has protected stays so", withMarks(viewOf(one(), of("new", 1, "r")), "node-new-0", map[string]string{scaleDown: "true"}), ""),
		Entry("R11: Nodes of a set that was an old one are taken again", withMarks(viewOf(one(), of("new", 1, "r", isMarked)), "node-new-0", nil), "take again new-0"),
		Entry("R11: which keeps its mark until all have been written", withMarks(viewOf(newDeployment(2, completed), of("new", 2, "rr", isMarked)), "node-new-0", nil), "take again new-0"),
		Entry("R11: and then the mark of the set goes", viewOf(one(), of("new", 1, "r", isMarked)), "new is unmarked"),
		Entry("R12: old sets beyond the limit go, the oldest first", viewOf(one(keepsSets(1)), of("a", 0, "", isMarked), of("b", 0, "", isMarked), of("new", 1, "r")), "delete set a"),
		Entry("R12: all are kept without a limit", viewOf(one(), of("a", 0, "", isMarked), of("b", 0, "", isMarked), of("new", 1, "r")), ""),
		Entry("R12: none that has machines, which uses up the limit", viewOf(one(keepsSets(1)), of("a", 0, "t", isMarked), of("b", 0, "", isMarked), of("new", 1, "r")), ""),
		Entry("R12: nor one that is being deleted, which does not", viewOf(one(keepsSets(1)), of("a", 0, "t", isMarked, goes), of("b", 0, "", isMarked), of("c", 0, "", isMarked), of("new", 1, "r")), "delete set b"),
		Entry("R12: a limit below none is none", viewOf(one(keepsSets(-1)), of("a", 0, "", isMarked), of("new", 1, "r")), "delete set a"),
		Entry("R12: nor one that is to have machines", viewOf(newDeployment(1, keepsSets(0), paused), of("a", 1, "", isMarked), of("new", 1, "p")), "a creates 1"),
		Entry("R12: not before the status is one of this generation", viewOf(newDeployment(1, keepsSets(0), completed, func(d *api.MachineDeployment) { d.Generation++ }), of("a", 0, "", isMarked), of("new", 1, "r")), ""),
		Entry("R12: nor before it counts the new machines", viewOf(newDeployment(1, keepsSets(0), completed, func(d *api.MachineDeployment) { d.Status.UpdatedReplicas = 0 }), of("a", 0, "", isMarked), of("new", 1, "r")), ""),
		Entry("R12: nor before it counts no other ones", viewOf(newDeployment(1, keepsSets(0), completed, func(d *api.MachineDeployment) { d.Status.Replicas = 2 }), of("a", 0, "", isMarked), of("new", 1, "r")), ""),
		Entry("R12: nor before it counts those as available", viewOf(newDeployment(1, keepsSets(0), completed, func(d *api.MachineDeployment) { d.Status.AvailableReplicas = 0 }), of("a", 0, "", isMarked), of("new", 1, "r")), ""),
		Entry("E6: not while it is paused and to go back", viewOf(newDeployment(1, keepsSets(0), paused, func(d *api.MachineDeployment) { d.Spec.RollbackTo = &mcm.RollbackConfig{} }), of("a", 0, "", isMarked), of("new", 1, "r")), ""),
		Entry("R12: not before the rollout is complete", viewOf(newDeployment(1, keepsSets(0)), of("a", 0, "", isMarked), of("new", 1, "r")), ""),
		Entry("R12, D8: while it is paused, too", viewOf(newDeployment(1, keepsSets(0), paused), of("a", 0, "", isMarked), of("new", 1, "r")), "delete set a"),
	)

	It("R11: leaves what is of others on Nodes", func() {
		v := withMarks(viewOf(one(), of("new", 1, "r", isMarked)), "node-new-0", nil)
		theirs := []corev1.Taint{{Key: "others", Effect: corev1.TaintEffectPreferNoSchedule}, {Key: PreferNoSchedule, Effect: corev1.TaintEffectNoSchedule}}
		node := v.Nodes["node-new-0"]
		node.Spec.Taints = append(node.Spec.Taints, theirs...)
		Expect(New(v).Nodes).To(ConsistOf(HaveField("After.Spec.Taints", ConsistOf(theirs))))
	})

	It("Y7: protects the Nodes of preserved machines longer", func() {
		v := withMarks(viewOf(one(), of("new", 1, "r")), "node-new-0", both)
		expires(3600e9)(v.Sets[0].Machines[0])
		Expect(moves(New(v))).To(BeEmpty())
	})
})

var _ = It("R7: Nodes are protected by an annotation, and by one that says who has set that", func() {
	p := New(viewOf(newDeployment(2), of("old", 2, "rr", isMarked), of("new", 1, "p")))
	Expect(p.Nodes).To(HaveLen(2))
	Expect(p.Nodes).To(HaveEach(HaveField("After.Annotations", Equal(map[string]string{scaleDown: "true", scaleDownMCM: "true"}))))
})

var _ = It("R7: Without the flag, a rollout protects no Nodes, and ends no protection", func() {
	v := viewOf(newDeployment(2), of("old", 2, "rr", isMarked), of("new", 1, "p"))
	v.Settings.ProtectInRollout = false
	Expect(New(v).Nodes).To(BeEmpty())
	v = withMarks(viewOf(newDeployment(1, completed), of("new", 1, "r")), "node-new-0", map[string]string{scaleDown: "true", scaleDownMCM: "true"})
	v.Settings.ProtectInRollout = false
	Expect(New(v).Nodes).To(BeEmpty())
})

var _ = It("Q1: A rollout goes on without a target cluster", func() {
	v := viewOf(newDeployment(2), of("old", 2, "rr"), of("new", 1, "r"))
	v.Nodes = nil
	Expect(steps(New(v))).To(Equal("old 2 -> 1, old is marked, delete old-0"))
})

var _ = It("Q9: What follows from a change of Nodes is decided soon", func() {
	p := New(viewOf(newDeployment(2), of("old", 2, "rr"), of("new", 1, "p")))
	Expect(p.Sets).To(BeEmpty())
	Expect(p.Again).To(beSoon())
})
