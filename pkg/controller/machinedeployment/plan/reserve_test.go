// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// sparesChange changes a MachineDeployment with a reserve.
type sparesChange = func(*spares)

// to changes a machine.
func to(name string, change ...machineChange) sparesChange {
	return func(s *spares) {
		s.each(func(m *mcm.Machine) *mcm.Machine {
			if m.Name == name {
				m = m.DeepCopy()
				for _, c := range change {
					c(m)
				}
			}
			return m
		})
	}
}

func wants(x int32) sparesChange { return func(s *spares) { s.edit(asks(x)) } }

// lasting has lasted the surplus for so long.
func lasting(d time.Duration) sparesChange {
	return func(s *spares) { s.memory.SurplusSince = noon.Add(-d) }
}

func unreachable(s *spares) {
	s.change = append(s.change, func(v *machinetaint.View) { v.Unreachable = "it does not answer" })
}

func targetless(s *spares) {
	s.View.Nodes, s.pods = nil, nil
	s.change = append(s.change, func(v *machinetaint.View) { v.Targetless = true })
}

func forced(s *spares) {
	s.change = append(s.change, func(v *machinetaint.View) { v.AllLeaving = true })
}

// bounds sets the annotation.
func bounds(text string) sparesChange {
	return func(s *spares) {
		s.edit(func(d *api.MachineDeployment) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, api.BoundsAnnotation, text)
		})
	}
}

func changed(s *spares, change ...sparesChange) *spares {
	for _, c := range change {
		c(s)
	}
	return s
}

// nominates has a client name machines, a minute after it changed replicas.
func nominates(list string) func(*api.MachineDeployment) {
	return func(d *api.MachineDeployment) {
		d.Annotations = map[string]string{machineutils.TriggerDeletionByMCM: list, machineutils.LastDeploymentReplicaChangeByScalerTime: mark(-time.Minute)}
	}
}

func deletedAt(at time.Time) machineChange {
	return func(m *mcm.Machine) { m.DeletionTimestamp = &metav1.Time{Time: at} }
}

// markedNow puts a machine into the reserve that was created to serve.
func markedNow(m *mcm.Machine) { *m = *pool.Mark(m, plainSettings.NewMark(noon)) }

func phased(phase mcm.MachinePhase) machineChange {
	return func(m *mcm.Machine) { m.Status.CurrentStatus.Phase = phase }
}

var _ = DescribeTable("A MachineDeployment with a reserve",
	func(s *spares, want string) { Expect(tale(s.decide())).To(Equal(want)) },
	Entry("rests", withSpares(2, newDeployment(2), of("new", 4, "rrRR")), ""),
	Entry("gets a set", withSpares(2, newDeployment(2)), "new set of 4"),
	Entry("gets machines with their roles", withSpares(2, newDeployment(2), of("new", 4, "")), "new creates 4, 2 in reserve"),
	Entry("gets what is missing of the reserve", withSpares(2, newDeployment(2), of("new", 4, "rrR")), "new creates 1, 1 in reserve"),
	Entry("replaces one that serves from the reserve, and fills that", withSpares(2, newDeployment(2), of("new", 4, "rtRR")), "new-2 leaves, new creates 1, 1 in reserve"),
	Entry("grows, from the reserve first", withSpares(2, newDeployment(3), of("new", 4, "rrRR", keptSized(4))), "new 4 -> 5, new-2 leaves, new creates 1, 1 in reserve"),
	Entry("grows by more than the reserve", withSpares(1, newDeployment(4), of("new", 3, "rrR", keptSized(3))), "new 3 -> 5, new-2 leaves, new creates 2, 1 in reserve"),
	Entry("shrinks the reserve, the newest first", changed(withSpares(3, newDeployment(1), of("new", 4, "rRRR")), wants(1)), "new 4 -> 2, delete new-3 (Surplus), delete new-2 (Surplus)"),
	Entry("shrinks the reserve, and does not touch one that pods run on", changed(withSpares(3, newDeployment(1), of("new", 4, "rRRB")), wants(1)), "new 4 -> 2, delete new-2 (Surplus), delete new-1 (Surplus)"),
	Entry("shrinks the reserve no further than pods let it", changed(withSpares(3, newDeployment(1), of("new", 4, "rBRB")), wants(0)), "new 4 -> 3, delete new-2 (Surplus)"),
	Entry("shrinks the reserve no further than to Nodes that are open", changed(withSpares(2, newDeployment(1), of("new", 3, "rOR")), wants(0)), "new 3 -> 2, delete new-2 (Surplus)"),
	Entry("shrinks by one that serves where replicas fall, the one that goes first", changed(withSpares(2, newDeployment(2), of("new", 5, "rrrRR", keptSized(5))), to("new-1", priority("1"))), "new 5 -> 4, delete new-1 (Surplus)"),
	Entry("shrinks by one that serves where replicas fall, the one that goes first, though another one boots", changed(withSpares(1, newDeployment(2), of("new", 4, "rrpR", keptSized(4))), to("new-0", priority("1"))), "new 4 -> 3, delete new-0 (Surplus)"),
	Entry("shrinks by one that serves where replicas fall, whatever goes first in reserve", changed(withSpares(2, newDeployment(2), of("new", 5, "rrrRR", keptSized(5))), to("new-3", priority("1"))), "new 5 -> 4, delete new-0 (Surplus)"),
	Entry("shrinks by none that is preserved in reserve", changed(withSpares(2, newDeployment(1), of("new", 3, "rRR")), to("new-2", expires(time.Hour)), wants(1)), "new 3 -> 2, delete new-1 (Surplus)"),
	Entry("shrinks by both where both fall", changed(withSpares(2, newDeployment(1), of("new", 4, "rrRR", keptSized(4))), wants(1)), "new 4 -> 2, delete new-3 (Surplus), delete new-0 (Surplus)"),
	Entry("deletes none that serves for one that cannot be created", withSpares(2, newDeployment(2), of("new", 4, "rrRC")), "new 4 -> 3, delete new-3 (Surplus)"),
	Entry("deletes none for one in reserve that is closed later", changed(withSpares(1, newDeployment(2), of("new", 3, "rrO")), wants(0)), ""),
	Entry("replaces a failed machine from the reserve", withSpares(1, newDeployment(2), of("new", 3, "rfR")), "new-2 leaves, delete new-1 (Failed)"),
	Entry("deletes a failed machine in reserve", withSpares(2, newDeployment(1), of("new", 3, "rRF")), "delete new-2 (Failed)"),
	Entry("deletes a failed machine in reserve that is too many, although one is missing that serves", changed(withSpares(1, newDeployment(2), of("new", 2, "rU", keptSized(3))), wants(0)), "delete new-1 (Surplus)"),
	Entry("puts an empty machine into the reserve where too many serve", withSpares(2, newDeployment(2), of("new", 4, "rreR")), "new-2 enters"),
	Entry("puts no busy one there", withSpares(2, newDeployment(2), of("new", 4, "rrrR")), ""),
	Entry("drains one of them after a while", changed(withSpares(2, newDeployment(2), of("new", 4, "rrrR")), lasting(10*time.Minute)), "delete new-2 (Drained)"),
	Entry("drains one of them beside one that is too many in all", changed(withSpares(2, newDeployment(2), of("new", 4, "rrrrR")), lasting(time.Hour)), "delete new-0 (Surplus), delete new-3 (Drained)"),
	Entry("drains none before", changed(withSpares(2, newDeployment(2), of("new", 4, "rrrR")), lasting(10*time.Minute-1)), ""),
	Entry("lets one serve that pods run on although it is in reserve", changed(withSpares(2, newDeployment(2), of("new", 4, "rrRR")), func(s *spares) { s.occupy("node-new-3", fixture.Pod("late", evictable)) }), "new-3 leaves"),
	Entry("lets nothing serve in place of one that a client names: replicas are restored", withSpares(1, newDeployment(1, func(d *api.MachineDeployment) {
		d.Annotations = map[string]string{machineutils.TriggerDeletionByMCM: "new-2~" + mark(-time.Minute), machineutils.LastDeploymentReplicaChangeByScalerTime: mark(0)}
	}), of("new", 3, "rrR", keptSized(3))), "delete new-2 (Named)"),
	Entry("lets a reserve machine serve in place of one that a client names and that is busy", withSpares(1, newDeployment(2, func(d *api.MachineDeployment) {
		d.Annotations = map[string]string{machineutils.TriggerDeletionByMCM: "new-0~" + mark(-time.Minute), machineutils.LastDeploymentReplicaChangeByScalerTime: mark(0)}
	}), of("new", 4, "rrrR", keptSized(4))), "new 4 -> 3, delete new-0 (Surplus)"),
	Entry("deletes one that serves and that a client names, later than it changed replicas", withSpares(1, newDeployment(2, nominates("new-0~"+mark(0))), of("new", 4, "rrrR", keptSized(4))), "new 4 -> 3, delete new-0 (Surplus)"),
	Entry("deletes none that serves and that a client names, before it changes replicas", withSpares(1, newDeployment(3, nominates("new-0~"+mark(0))), of("new", 4, "rrrR", keptSized(4))), "new-3 leaves"),
	Entry("deletes one in reserve that a client names, and restores replicas", withSpares(1, newDeployment(2, nominates("new-3~"+mark(0))), of("new", 4, "rrrR", keptSized(4))), "delete new-3 (Named)"),
	Entry("deletes no other for one that a client names and that is gone: replicas are restored", withSpares(1, newDeployment(2, nominates("gone~"+mark(0))), of("new", 4, "rrrR", keptSized(4))), ""),
	Entry("deletes no other for one that a client names and that leaves the reserve since: replicas are restored", changed(withSpares(1, newDeployment(2, nominates("new-3~"+mark(0))), of("new", 5, "rrrRR", keptSized(4))), to("new-3", deletedAt(noon), phased(mcm.MachineTerminating))), "new 5 -> 4"),
	Entry("deletes another one if replicas fall, and one that was named before leaves", changed(withSpares(1, newDeployment(2, nominates("new-3~"+mark(-time.Second))), of("new", 5, "rrrRR", keptSized(4))), to("new-3", deletedAt(noon), phased(mcm.MachineTerminating))), "new 5 -> 3, delete new-0 (Surplus)"),
	Entry("deletes no other for one that a client names, which leaves and served", changed(withSpares(1, newDeployment(2, nominates("new-0~"+mark(0))), of("new", 4, "rrrR", keptSized(4))), to("new-0", deletedAt(noon), phased(mcm.MachineTerminating))), "new 4 -> 3"),
	Entry("is within max: the reserve gives way", changed(withSpares(2, newDeployment(3), of("new", 4, "rrRR", keptSized(4))), bounds("1:4")), "new-2 leaves"),
	Entry("is within max: none comes while another one leaves", changed(withSpares(2, newDeployment(2), of("new", 4, "rrRRt")), bounds("1:4"), to("new-2", leaving, phased(mcm.MachineTerminating))), ""),
	Entry("is within max: one comes while two leave, if there is room", changed(withSpares(2, newDeployment(2), of("new", 4, "rrRR")), bounds("1:5"), to("new-2", leaving, phased(mcm.MachineTerminating))), "new creates 1, 1 in reserve"),
	Entry("with a cluster that does not answer: gets its machines", changed(withSpares(2, newDeployment(3), of("new", 4, "rrRR", keptSized(4))), unreachable), "new 4 -> 5, new creates 1, 1 in reserve"),
	Entry("with a cluster that does not answer: keeps those in reserve", changed(withSpares(2, newDeployment(2), of("new", 4, "rrRR")), unreachable, wants(0)), ""),
	Entry("with a cluster that does not answer: deletes what was never created", changed(withSpares(2, newDeployment(2), of("new", 4, "rrRC")), unreachable, wants(0)), "new 4 -> 3, delete new-3 (Surplus)"),
	Entry("without a target cluster: lets those in reserve go, however they came there", changed(withSpares(2, newDeployment(1), of("new", 3, "rRr")), to("new-2", markedNow), targetless, wants(0)), "new 3 -> 1, delete new-2 (Surplus), delete new-1 (Surplus)"),
	Entry("is paused: its size is decided as well", withSpares(2, newDeployment(3, paused), of("new", 4, "rrRR", keptSized(4))), "new 4 -> 5, new-2 leaves, new creates 1, 1 in reserve"),
	Entry("grows no further than replicas are applied", withSpares(1, newDeployment(5, func(d *api.MachineDeployment) {
		d.Annotations = map[string]string{api.AppliedReplicasAnnotation: "3"}
	}), of("new", 3, "rrR", keptSized(3))), "new 3 -> 4, new-2 leaves, new creates 1, 1 in reserve"),
	Entry("is no more, and its machines go with it", withSpares(2, newDeployment(2, ends), of("new", 4, "rrRR")), ""),
)

var _ = DescribeTable("A rollout with a reserve",
	func(s *spares, want string) { Expect(tale(s.decide())).To(Equal(want)) },
	Entry("begins with surge", withSpares(1, newDeployment(2), of("old", 3, "rrR")), "new set of 1"),
	Entry("creates new machines in reserve while the old ones serve", withSpares(1, newDeployment(2), of("old", 3, "rrR"), of("new", 1, "")), "new creates 1, 1 in reserve"),
	Entry("creates new machines that serve while too few do", withSpares(1, newDeployment(3), of("old", 2, "rR"), of("new", 2, "")), "new 2 -> 3, old-1 leaves, new creates 3, 2 in reserve"),
	Entry("deletes old machines that serve, for which new ones in reserve will", withSpares(1, newDeployment(2), of("old", 3, "rrR"), of("new", 1, "R")), "old 3 -> 2, delete old-0 (Surplus)"),
	Entry("deletes old machines in reserve last, the newest first", withSpares(2, newDeployment(1), of("old", 2, "RR"), of("new", 2, "rR")), "old 2 -> 1, delete old-1 (Surplus)"),
	Entry("deletes none of the last old machines in reserve that pods run on", withSpares(2, newDeployment(1), of("old", 2, "BR"), of("new", 2, "rR")), "old 2 -> 1, delete old-1 (Surplus)"),
	Entry("deletes none of the last old machines in reserve that are open", withSpares(2, newDeployment(1), of("old", 2, "RO"), of("new", 2, "rR")), "old 2 -> 1, delete old-0 (Surplus)"),
	Entry("waits for no pod that tolerates the reserve, if no other machine is left", withSpares(1, newDeployment(1), of("old", 0, "B"), of("new", 2, "rR")), "delete old-0 (Surplus)"),
	Entry("deletes first what is not ready in reserve", withSpares(1, newDeployment(2), of("old", 3, "rrP"), of("new", 1, "R")), "old 3 -> 2, delete old-2 (Surplus)"),
	Entry("deletes first what is not ready and serves", withSpares(1, newDeployment(2), of("old", 4, "rrpR"), of("new", 1, "R")), "old 4 -> 2, delete old-2 (Surplus), delete old-0 (Surplus)"),
	Entry("lets a ready one serve in place of one that boots", withSpares(1, newDeployment(2), of("old", 3, "rpR"), of("new", 1, "p")), "old-1 enters, old-2 leaves"),
	Entry("deletes first what is Unknown in reserve", withSpares(1, newDeployment(2), of("old", 3, "rrU"), of("new", 1, "R")), "old 3 -> 2, delete old-2 (Surplus)"),
	Entry("deletes first what boots in reserve, also if it was created to serve", changed(withSpares(1, newDeployment(2), of("old", 3, "rrp"), of("new", 1, "R")), to("old-2", markedNow)), "old 3 -> 2, delete old-2 (Surplus)"),
	Entry("deletes none of that while the cluster does not answer", changed(withSpares(1, newDeployment(2), of("old", 3, "rrp"), of("new", 1, "R")), to("old-2", markedNow), unreachable), "old 3 -> 2, delete old-0 (Surplus)"),
	Entry("deletes what was never created, also while the cluster does not answer", changed(withSpares(1, newDeployment(2), of("old", 3, "rrC"), of("new", 1, "R")), unreachable), "old 3 -> 2, delete old-2 (Surplus)"),
	Entry("deletes first what is not ready and serves, also while the cluster does not answer", changed(withSpares(1, newDeployment(2), of("old", 4, "rrpR"), of("new", 1, "R")), unreachable), "old 4 -> 2, delete old-2 (Surplus), delete old-0 (Surplus)"),
	Entry("waits for the last machine until its Node is closed", withSpares(1, newDeployment(1), of("old", 0, "O"), of("new", 2, "rR")), ""),
	Entry("takes those that are too many in reserve from the set that has them", changed(withSpares(2, newDeployment(2), of("old", 3, "rRR"), of("new", 2, "rp", keptSized(4))), wants(1)), "old 3 -> 2, delete old-2 (Surplus)"),
	Entry("takes those that are too many in reserve from the set that has them, though it is smaller", changed(withSpares(2, newDeployment(3), of("old", 4, "rrrr"), of("new", 2, "RR", keptSized(5))), wants(1)), "old 4 -> 3, new 2 -> 1, delete old-0 (Surplus), delete new-1 (Surplus)"),
	Entry("takes those that serve too many in proportion", withSpares(1, newDeployment(2), of("old", 4, "rrrR"), of("new", 2, "rR", keptSized(5))), "old 4 -> 2, new 2 -> 1, delete old-0 (Surplus), delete old-1 (Surplus), delete new-1 (Surplus)"),
	Entry("lets none go that workload needs in place of a new one in reserve whose Node is not seen", changed(withSpares(1, newDeployment(2), of("old", 1, "r"), of("new", 1, "rR", keptSized(2))), wants(0), unseen("new-1")), "delete new-1 (Surplus)"),
	Entry("lets none go that workload needs in place of such a one, though an old one is leaving", changed(withSpares(1, newDeployment(2), of("old", 1, "rl"), of("new", 1, "rR", keptSized(2))), wants(0), unseen("new-1")), "delete new-1 (Surplus)"),
	Entry("needs none for one that is leaving", changed(withSpares(1, newDeployment(4), of("old", 2, "rr"), of("new", 2, "rrl", keptSized(4))), wants(0)), ""),
	Entry("lets none go that workload needs in place of an old one in reserve that must stay", changed(withSpares(1, newDeployment(4), of("old", 1, "B"), of("new", 3, "rrrr", keptSized(4))), wants(0)), "old 1 -> 0, new 3 -> 4, delete old-0 (Surplus)"),
	Entry("lets none go of the newest set for one of the old set that goes", changed(withSpares(2, newDeployment(5), of("old", 2, "rr", keptSized(7)), of("new", 6, "rrrrOO", keptSized(7))), to("old-1", priority("1")), wants(1)), "old 2 -> 1, new 6 -> 5, delete old-1 (Surplus)"),
	Entry("lets none of the newest set go that old ones can go for, beside such a one", changed(withSpares(1, newDeployment(2), of("old", 1, "r"), of("new", 1, "rrR", keptSized(2))), wants(0), unseen("new-2")), "new 1 -> 2, delete new-2 (Surplus)"),
	Entry("lets those of the newest set go that workload does not need, beside such a one", changed(withSpares(1, newDeployment(2), of("old", 1, "r"), of("new", 1, "rrrR", keptSized(2))), wants(0), unseen("new-3")), "new 1 -> 2, delete new-0 (Surplus), delete new-3 (Surplus)"),
	Entry("names what a client has named", changed(withSpares(1, newDeployment(2), of("old", 2, "rr"), of("new", 2, "rR", keptSized(4))), to("old-1", priority("1"))), "old 2 -> 1, delete old-1 (Surplus)"),
	Entry("replaces failed machines", withSpares(1, newDeployment(2), of("old", 2, "rf"), of("new", 2, "rR")), "old 2 -> 1, delete old-1 (Surplus)"),
	Entry("drains none", changed(withSpares(1, newDeployment(2), of("old", 2, "rr"), of("new", 2, "rr")), lasting(time.Hour)), "old 2 -> 1, delete old-0 (Surplus)"),
	Entry("gives up what cannot be created", withSpares(1, newDeployment(2), of("old", 2, "rr"), of("new", 2, "rC")), "old 2 -> 1, new 2 -> 1, delete old-0 (Surplus), delete new-1 (Surplus)"),
	Entry("goes on while the cluster does not answer", changed(withSpares(1, newDeployment(2), of("old", 3, "rrR"), of("new", 1, "r")), unreachable), "old 3 -> 2, delete old-0 (Surplus)"),
	Entry("lets none of the last old machines in reserve go while the cluster does not answer", changed(withSpares(1, newDeployment(1), of("old", 0, "R"), of("new", 2, "rR")), unreachable), ""),
	Entry("lets preserved machines in reserve be the last to go", changed(withSpares(2, newDeployment(1), of("old", 3, "rRR"), of("new", 1, "R")), to("old-1", expires(time.Hour)), to("old-2", priority("10"))), "old 3 -> 2, delete old-0 (Surplus)"),
	Entry("lets preserved machines in reserve go all the same", changed(withSpares(2, newDeployment(1), of("old", 0, "RR"), of("new", 3, "rRR")), to("old-0", expires(time.Hour)), to("old-1", priority("10"))), "delete old-1 (Surplus), delete old-0 (Surplus)"),
	Entry("begins: nothing goes before there is a new set", withSpares(1, newDeployment(1), of("old", 2, "rR", keptSized(2))), "new set of 1"),
	Entry("with Recreate, lets all old ones go", withSpares(2, newDeployment(1, recreates), of("old", 3, "rRB")), "old 3 -> 0, delete old-0 (Surplus), delete old-1 (Surplus), delete old-2 (Surplus)"),
)

var _ = It("An update in place with a reserve selects machines in reserve first, so that each pod moves only once", func() {
	updated := func(d *api.MachineDeployment) { d.Spec.Strategy = auto(0, 1).strategy() }
	Expect(updateSteps(withSpares(1, newDeployment(2, updated), of("old", 3, "rrR"), of("new", 0, "")).decide())).To(ContainSubstring("select old-2"))
})

// updatedByHand has machines be updated in place, by people.
func updatedByHand(d *api.MachineDeployment) { d.Spec.Strategy = manual.strategy() }

var _ = DescribeTable("An update in place with a reserve",
	func(s *spares, want string) { Expect(tale(s.decide())).To(Equal(want)) },
	Entry("begins with nothing beside the reserve", withSpares(1, newDeployment(2, updatedByHand), of("old", 3, "rrR")), "new set of 0"),
	Entry("has what it gets in reserve in the newest set", withSpares(2, newDeployment(3, updatedByHand), of("old", 3, "rrr", keptSized(3)), of("new", 0, "", keptSized(3))), "new 0 -> 2, new creates 2, 2 in reserve"),
	Entry("gives up what cannot be created, and none that serves", changed(withSpares(2, newDeployment(3, updatedByHand), of("old", 3, "rrr"), of("new", 2, "CC")), wants(0)), "new 2 -> 0, delete new-0 (Surplus), delete new-1 (Surplus)"),
	Entry("gives up one of them, whatever is applied", withSpares(2, newDeployment(3, updatedByHand), of("old", 3, "rrr"), of("new", 2, "RC")), "new 2 -> 1, delete new-1 (Surplus)"),
	Entry("gives up machines in reserve of all sets", changed(withSpares(2, newDeployment(2, updatedByHand), of("old", 3, "rrR"), of("new", 1, "R")), wants(0)), "old 3 -> 2, new 1 -> 0, delete old-2 (Surplus), delete new-0 (Surplus)"),
	Entry("gives up old ones if replicas fall", withSpares(1, newDeployment(2, updatedByHand), of("old", 3, "rrr", keptSized(4)), of("new", 1, "R", keptSized(4))), "old 3 -> 2, delete old-0 (Surplus)"),
)
