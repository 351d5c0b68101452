// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

// continuous is a member whose replicas are applied and may move.
func continuous(name string, replicas int, changes ...Change) Member {
	return NewMember(name, replicas, append([]Change{Continuous, Applied(replicas)}, changes...)...)
}

// created is a member with a ready machine that was created for a move from a.
func created(name string, replicas int, changes ...Change) Member {
	return continuous(name, replicas, append([]Change{share(1), ready(1), move(v1alpha1.Move{ID: "1", From: "a", Reserve: 1})}, changes...)...)
}

// kept is the excess that its field contained before a share took its place.
func kept(n int) Change { return Annotate(v1alpha1.OwnExcessAnnotation, strconv.Itoa(n)) }

// cordoned is a machine whose Node accepts no pods.
func cordoned(m *Machine) { m.Node = &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}} }

var _ = Describe("A machine that was created for a move", func() {
	DescribeTable("leads to", func(want string, members ...Member) {
		Expect(writes(New(view(members...)))).To(Equal(want))
	},
		Entry("a promise, though another member lacks more replicas",
			`a: move={"id":"1","to":{"c":1},"machine":"a-0"}`, continuous("a", 6), continuous("b", 1), created("c", 2)),
		Entry("a promise by the member that has too many now",
			`b: move={"id":"1","from":"c","reserve":1}; c: move={"id":"1","to":{"b":1},"machine":"c-0"}`, continuous("a", 2), created("b", 1), continuous("c", 3)),
		Entry("nothing before it is ready", "",
			continuous("a", 3), created("b", 1, func(m *Member) { phase("Pending")(&m.Machines[1]); bornAt(Noon)(&m.Machines[1]) })),
		Entry("nothing before the reserve of its member is complete, too", "",
			continuous("a", 3), created("b", 1, share(3), ready(1), kept(2))),
		Entry("nothing before what a Reserve requests is ready, too", "",
			continuous("a", 3), created("b", 1, share(3), ready(1), requested(2))),
		Entry("a promise as soon as it is",
			`a: move={"id":"1","to":{"b":1},"machine":"a-0"}`, continuous("a", 3), created("b", 1, share(3), ready(2), kept(2))),
		Entry("a promise of a machine without pods, though no node template is known",
			`a: move={"id":"1","to":{"b":1},"machine":"a-0"}`, continuous("a", 3), created("b", 1, func(m *Member) { m.Fresh = nil })),
		Entry("a promise though another machine in reserve is cordoned",
			`a: move={"id":"1","to":{"b":1},"machine":"a-0"}`, continuous("a", 3), created("b", 1, share(2), kept(1), machines(NewMachine("b-x", inReserve, cordoned)))),
		Entry("a return to the reserve where no member may give a replica", "b: -share -move", continuous("a", 2, bounds("2:9")), created("b", 0)),
		Entry("a return to the reserve once members are even", "b: -share -move", continuous("a", 3), created("b", 3)),
		Entry("a return to the reserve once members are even by one", "b: -share -move", continuous("a", 3), created("b", 2)),
		Entry("a return to the reserve once its member has enough, though another lacks some",
			"c: -share -move", continuous("a", 5), continuous("b", 1), created("c", 3)),
		Entry("a return to the reserve where its member fails to create machines, though another lacks some",
			"c: -share -move", continuous("a", 6), continuous("b", 1), created("c", 1, machines(NewMachine("c-x", inReserve, exhausted)))),
		Entry("a return to the reserve where its member is updated", "b: -share -move", continuous("a", 4), created("b", 1, rollout)),
		Entry("a return to the reserve where its member was frozen", "b: -share -move", continuous("a", 4), created("b", 1, frozen)),
		Entry("a return to the reserve where that of its member is drained", "b: -share -move", continuous("a", 4), created("b", 1, drained)),
		Entry("a return to the reserve where that of its member stays as it is, because it is not known whether to drain it",
			"b: -share -move", continuous("a", 4), created("b", 1, Annotate(v1alpha1.DrainReserveAnnotation, "yes"))),
		Entry("a return to the reserve where that of its member stays as it is, because it is not known how to count it",
			"b: -share -move", continuous("a", 4), created("b", 1, Annotate(v1alpha1.AccountingAnnotation, "Both"))),
		Entry("a return to the reserve where its member has no one to be even with", "b: -share -move", NewMember("a", 4, ScaleUp, Applied(4)), created("b", 1)),
	)

	It("leads to a return to the reserve while all reserves are drained", func() {
		v := view(continuous("a", 4), created("b", 1))
		v.Settings.Drain = true
		Expect(writes(New(v))).To(Equal("b: -share -move"))
		v.Members[1] = continuous("b", 1)
		Expect(writes(New(v))).To(BeEmpty(), "no other one is requested")
	})

	It("leads to a promise though its member fails, if it was the probe", func() {
		v := view(continuous("a", 4), created("b", 1))
		v.Memory.Failing = map[string]Failure{"b": {Since: Noon.Add(-time.Minute), Failures: 1, Until: Noon, Probing: true}}
		for i := range v.Members[1].Machines {
			v.Members[1].Machines[i].Object.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(Born)
		}
		Expect(writes(New(v))).To(Equal(`a: move={"id":"1","to":{"b":1},"machine":"a-0"}`))
	})

	It("leads to a promise though its member was paused after an earlier one", func() {
		v := view(continuous("a", 4), created("b", 1))
		v.Memory.Paused = map[string]time.Time{"b": Noon.Add(time.Minute)}
		Expect(writes(New(v))).To(Equal(`a: move={"id":"1","to":{"b":1},"machine":"a-0"}`))
	})

	It("keeps its member from another one for five minutes after it was dropped", func() {
		p := New(view(continuous("a", 3), created("b", 3)))
		Expect(p.Memory.Paused).To(Equal(map[string]time.Time{"b": Noon.Add(5 * time.Minute)}))
		v := view(continuous("a", 4), continuous("b", 1))
		v.Memory = p.Memory
		p = New(v)
		Expect(writes(p)).To(BeEmpty())
		Expect(message(p, "a", ConditionBalanced)).To(Equal("the last try with b failed"))
		Expect(p.Memory.Paused).To(Equal(v.Memory.Paused))
		v.Now = v.Now.Add(5 * time.Minute)
		p = New(v)
		Expect(writes(p)).To(ContainSubstring("move"))
		Expect(p.Memory.Paused).To(BeEmpty())
	})

	It("is dropped for growth, which does not wait for it", func() {
		p := New(view(NewMember("a", 5, Continuous, Applied(4)), created("b", 1)))
		Expect(writes(p)).To(Equal("b: -share -move"))
		Expect(of(p, "b").Write.Why).To(Equal("drop a move"))
	})

	It("does not hold up growth while its member is being deleted, which can take hours", func() {
		p := New(view(NewMember("a", 5, Continuous, Applied(4)), created("b", 1, beingDeleted), continuous("c", 2)))
		Expect(writes(p)).To(Equal(`a: move={"id":"11","to":{"c":1}}`))
	})
})

var _ = Describe("A machine for a move", func() {
	DescribeTable("is requested", func(want string, members ...Member) {
		Expect(writes(New(view(members...)))).To(Equal(want))
	},
		Entry("where most replicas are lacking, from where most are too many",
			`c: share=1 move={"id":"11","from":"b","reserve":1}`, continuous("a", 3), continuous("b", 5), continuous("c", 1), continuous("d", 2)),
		Entry("at the first by name of those that lack as many, from the first that has as many too many",
			`c: share=1 move={"id":"11","from":"a","reserve":1}`, continuous("a", 4), continuous("b", 4), continuous("c", 1), continuous("d", 1)),
		Entry("beside the member's own reserve",
			`b: share=3 move={"id":"11","from":"a","reserve":1} own-excess=2`, continuous("a", 4), continuous("b", 1, ExcessField(2), ready(2))),
		Entry("beside the reserve of the member's bounds",
			`b: share=3 move={"id":"11","from":"a","reserve":1}`, continuous("a", 4), continuous("b", 1, bounds("0:9:2"), ready(2))),
		Entry("beside what a Reserve requests",
			`b: share=3 move={"id":"11","from":"a","reserve":1}`, continuous("a", 4), continuous("b", 1, requested(2), ready(2))),
		Entry("beside what a Reserve requests, where the share of the pool's excess is less",
			`b: share=4 move={"id":"11","from":"a","reserve":3}`, continuous("a", 4, Labelled("p"), Excess("1"), share(0)), continuous("b", 1, Labelled("p"), Excess("1"), share(1), requested(3), ready(3))),
		Entry("beside the share of the pool's excess, where a Reserve requests less",
			`b: share=3 move={"id":"11","from":"a","reserve":1}`, continuous("a", 4, Labelled("p"), Excess("3"), share(1)), continuous("b", 1, Labelled("p"), Excess("3"), share(2), requested(2), ready(2))),
		Entry("from what a Reserve requests beyond the share, where max has no room for another",
			`b: move={"id":"11","from":"a"}`, continuous("a", 4, Labelled("p"), bounds("0:4"), Excess("1"), share(0)), continuous("b", 1, Labelled("p"), bounds("0:4"), Excess("1"), share(1), requested(3), ready(3))),
		Entry("from what a Reserve requests where max has no room for another",
			`b: move={"id":"11","from":"a"}`, continuous("a", 4), continuous("b", 1, requested(2), ready(2), bounds("0:3"))),
		Entry("as far as max has room for it beside the reserve",
			`b: share=3 move={"id":"11","from":"a","reserve":1} own-excess=2`, continuous("a", 4), continuous("b", 1, ExcessField(2), ready(2), bounds("0:4"))),
		Entry("from the reserve where max has no room for another",
			`b: move={"id":"11","from":"a"}`, continuous("a", 4), continuous("b", 1, ExcessField(2), ready(2), bounds("0:3"))),
		Entry("from the share where max has no room for another",
			`b: move={"id":"11","from":"a"}`, continuous("a", 4, Labelled("p"), bounds("0:4"), Excess("2"), share(0)), continuous("b", 1, Labelled("p"), bounds("0:3"), Excess("2"), share(2), ready(2))),
	)

	It("is explained to whoever reads the log", func() {
		p := New(view(continuous("a", 4), continuous("b", 1)))
		Expect(of(p, "b").Write.Why).To(Equal("create a machine for a move from a"))
		p = New(view(continuous("a", 4), created("b", 1)))
		Expect(of(p, "a").Write.Why).To(Equal("name a machine to move"))
	})
})

var _ = Describe("The condition of uneven members", func() {
	DescribeTable("says what they wait for", func(want string, members ...Member) {
		p := New(view(members...))
		Expect(writes(p)).NotTo(ContainSubstring("move"))
		Expect(condition(p, "b", ConditionBalanced)).To(Equal("False Waiting"))
		Expect(message(p, "b", ConditionBalanced)).To(Equal(want))
		Expect(p.Blocks).NotTo(HaveKey("b"), "no one has to act")
	},
		Entry("a machine that leaves", "a machine of c is leaving", continuous("a", 4), continuous("b", 1), continuous("c", 3, machines(NewMachine("old", leaving)))),
		Entry("a machine that is not ready", "not all machines of a are ready", continuous("a", 4, stuckBoot), continuous("b", 1)),
		Entry("a machine that is not ready where one is to go", "not all machines of b are ready", continuous("a", 4), continuous("b", 1, stuckBoot)),
		Entry("a machine in reserve that is cordoned: pods could not move there", "the machines in reserve of b are cordoned",
			continuous("a", 4), created("b", 1, func(m *Member) { cordoned(&m.Machines[1]) })),
		Entry("growth that stays where it is requested", "a is growing",
			NewMember("a", 6, Continuous, Applied(5), func(m *Member) {
				for i := range m.Machines {
					hold(&m.Machines[i], pod("p", m.Machines[i].Object.Name, InZone("a")))
				}
			}), continuous("b", 1)),
	)

	It("says that many Nodes are not ready", func() {
		v := view(zones(Continuous, 4, 1)...)
		v.NodesKnown, v.NodeCount, v.UnreadyCount = true, 8, 4
		Expect(message(New(v), "a", ConditionBalanced)).To(Equal("too many Nodes of the cluster are not ready"))
	})

	It("says which machine moves", func() {
		p := New(view(zones(Continuous, 4, 1)...))
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False Moving"))
		Expect(message(p, "b", ConditionBalanced)).To(Equal("a machine is being moved from a to b"))
	})

	DescribeTable("of a frozen one stays what it is, while others", func(others string, members ...Member) {
		p := New(view(append(members, continuous("c", 3, frozen))...))
		Expect(condition(p, "a", ConditionBalanced)).To(Equal(others))
		Expect(condition(p, "c", ConditionBalanced)).To(Equal("False Frozen"))
	},
		Entry("are evened out", "False Moving", continuous("a", 4), continuous("b", 1)),
		Entry("wait to be evened out", "False Waiting", continuous("a", 4, stuckBoot), continuous("b", 1)),
		Entry("have a move in progress", "False Moving",
			continuous("a", 4, move(v1alpha1.Move{ID: "1", To: map[string]int32{"b": 1}, Machine: "a-0"})), created("b", 1)),
	)

	It("names the reason for which a person must act, in the metric, too", func() {
		v := view(continuous("a", 3), created("b", 1))
		for i := range v.Members[0].Machines {
			v.Members[0].Machines[i].Preserved = true
		}
		p := New(v)
		Expect(condition(p, "a", ConditionBalanced)).To(Equal("False NoMachineEligible"))
		Expect(message(p, "a", ConditionBalanced)).To(Equal("no machine of a may go"))
		Expect(p.Blocks).To(Equal(map[string]string{"a": "NoMachineEligible"}))
	})
})
