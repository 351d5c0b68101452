// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

var _ = Describe("Conditions", func() {
	before, now := metav1.NewTime(Born), metav1.NewTime(Noon)
	stored := func(kind mcm.MachineDeploymentConditionType, status mcm.ConditionStatus, reason string) v1alpha1.MachineDeploymentCondition {
		return v1alpha1.MachineDeploymentCondition{Type: kind, Status: status, Reason: reason, Message: "m", LastUpdateTime: before, LastTransitionTime: before}
	}
	wanted := func(status bool, reason string) []Condition {
		return []Condition{{Type: ConditionBalanced, Status: status, Reason: reason, Message: "m"}}
	}
	theirs := stored("Available", mcm.ConditionTrue, "x")

	It("are added beside those of others", func() {
		is, differs := NewConditions([]v1alpha1.MachineDeploymentCondition{theirs}, wanted(true, "Even"), now)
		Expect(differs).To(BeTrue())
		Expect(is).To(Equal([]v1alpha1.MachineDeploymentCondition{theirs, {Type: ConditionBalanced, Status: mcm.ConditionTrue, Reason: "Even", Message: "m", LastUpdateTime: now, LastTransitionTime: now}}))
	})

	It("stay to the letter where nothing changes", func() {
		was := []v1alpha1.MachineDeploymentCondition{stored(ConditionBalanced, mcm.ConditionTrue, "Even"), theirs}
		is, differs := NewConditions(was, wanted(true, "Even"), now)
		Expect(differs).To(BeFalse())
		Expect(is).To(Equal(was))
	})

	It("keep their time where only the reason changes", func() {
		is, differs := NewConditions([]v1alpha1.MachineDeploymentCondition{stored(ConditionBalanced, mcm.ConditionFalse, "Moving")}, wanted(false, "Waiting"), now)
		Expect(differs).To(BeTrue())
		Expect(is[0].LastTransitionTime).To(Equal(before))
		Expect(is[0].LastUpdateTime).To(Equal(now))
	})

	It("have a new time where the status changes", func() {
		is, _ := NewConditions([]v1alpha1.MachineDeploymentCondition{stored(ConditionBalanced, mcm.ConditionFalse, "Moving")}, wanted(true, "Even"), now)
		Expect(is[0].LastTransitionTime).To(Equal(now))
	})

	It("go when there is nothing to say", func() {
		is, differs := NewConditions([]v1alpha1.MachineDeploymentCondition{theirs, stored(ConditionShare, mcm.ConditionTrue, "Spread")}, nil, now)
		Expect(differs).To(BeTrue())
		Expect(is).To(Equal([]v1alpha1.MachineDeploymentCondition{theirs}))
	})

	DescribeTable("of this controller go when there is nothing to say, whichever", func(kind mcm.MachineDeploymentConditionType) {
		is, differs := NewConditions([]v1alpha1.MachineDeploymentCondition{stored(kind, mcm.ConditionTrue, "x")}, nil, now)
		Expect(differs).To(BeTrue())
		Expect(is).To(BeEmpty())
	},
		Entry("that of replicas", ConditionBalanced),
		Entry("that of the pool's excess", ConditionShare),
		Entry("that of rights", ConditionRights),
	)

	It("are written where only the message changes", func() {
		was := stored(ConditionBalanced, mcm.ConditionTrue, "Even")
		was.Message = "old"
		is, differs := NewConditions([]v1alpha1.MachineDeploymentCondition{was}, wanted(true, "Even"), now)
		Expect(differs).To(BeTrue())
		Expect(is[0].Message).To(Equal("m"))
		Expect(is[0].LastTransitionTime).To(Equal(before))
	})

	It("are written where one changes and a later one does not", func() {
		was := []v1alpha1.MachineDeploymentCondition{stored(ConditionBalanced, mcm.ConditionFalse, "Moving"), stored(ConditionShare, mcm.ConditionTrue, "Spread")}
		want := append(wanted(true, "Even"), Condition{Type: ConditionShare, Status: true, Reason: "Spread", Message: "m"})
		is, differs := NewConditions(was, want, now)
		Expect(differs).To(BeTrue())
		Expect(is[0].Reason).To(Equal("Even"))
		Expect(is[1]).To(Equal(was[1]))
	})

	It("are written where one goes and a later one does not change", func() {
		was := []v1alpha1.MachineDeploymentCondition{stored(ConditionRights, mcm.ConditionFalse, "Forbidden"), stored(ConditionBalanced, mcm.ConditionTrue, "Even")}
		is, differs := NewConditions(was, wanted(true, "Even"), now)
		Expect(differs).To(BeTrue())
		Expect(is).To(Equal(was[1:]))
	})

	DescribeTable("name missing rights", func(want string, m Member) {
		v := view(m)
		v.Missing = []string{"It may not read the Worker", "It may not read the Cluster"}
		Expect(message(New(v), "a", ConditionRights)).To(Equal(want))
		v.Missing = nil
		Expect(condition(New(v), "a", ConditionRights)).To(BeEmpty())
	},
		Entry("to a pool with an excess", "It may not read the Worker. It may not read the Cluster", NewMember("a", 1, Excess("1"))),
		Entry("to one with an excess of its own", "It may not read the Worker. It may not read the Cluster", NewMember("a", 1, ExcessField(1))),
		Entry("to one that still has a share", "It may not read the Worker. It may not read the Cluster", NewMember("a", 1, share(0))),
		Entry("not where no reserve is requested", "", NewMember("a", 1, ScaleUp, ExcessField(0))),
	)

	It("name each mistake in a member's bounds and its pool's excess", func() {
		p := New(view(NewMember("a", 1, bounds("many"), Excess("some"))))
		Expect(condition(p, "a", ConditionShare)).To(Equal("False Invalid"))
		Expect(message(p, "a", ConditionShare)).To(MatchRegexp(`"many".*; .*"some"`))
	})

	It("say that replicas are balanced", func() {
		Expect(message(New(view(zones(ScaleUp, 2, 2)...)), "a", ConditionBalanced)).To(Equal("replicas are balanced across similar MachineDeployments"))
	})

	It("do not flap: the same view says the same", func() {
		v := view(zones(Continuous, 4, 1)...)
		Expect(New(v).Outcomes).To(Equal(New(v).Outcomes))
	})
})

var _ = Describe("Again", func() {
	It("is when a zone that fails may be tried, a try is over, or a machine should be ready", func() {
		v := view(NewMember("a", 1), NewMember("b", 1))
		Expect(New(v).Again).To(BeZero())
		v.Memory.Paused = map[string]time.Time{"a": Noon.Add(3 * time.Minute)}
		Expect(New(v).Again).To(Equal(3 * time.Minute))
		v.Memory.Failing = map[string]Failure{"b": {Failures: 1, Since: Born, Until: Noon.Add(2 * time.Minute)}}
		Expect(New(v).Again).To(Equal(2 * time.Minute))
		machines(NewMachine("x", phase(mcm.MachinePending), bornAt(Noon.Add(-9*time.Minute))))(&v.Members[0])
		Expect(New(v).Again).To(Equal(time.Minute))
	})

	It("is not because of what is over", func() {
		v := view(NewMember("a", 1), NewMember("b", 0, machines(failing("ResourceExhausted", time.Minute))))
		v.Memory.Paused = map[string]time.Time{"a": Noon}
		v.Memory.Failing = map[string]Failure{"b": {Failures: 1, Since: Born, Until: Noon.Add(-time.Minute)}}
		Expect(New(v).Again).To(BeZero())
		v.Members[1].Machines = nil
		v.Memory.Failing = map[string]Failure{"b": {Failures: 1, Since: Born, Until: Noon.Add(time.Minute), Probing: true}}
		Expect(New(v).Again).To(BeZero(), "it is tried already")
		v.Memory.Paused = map[string]time.Time{"a": Noon.Add(time.Nanosecond)}
		Expect(New(v).Again).To(Equal(time.Nanosecond))
	})

	It("is not lost where something else is due just now", func() {
		v := view(NewMember("a", 1), NewMember("b", 0, machines(failing("ResourceExhausted", time.Minute))))
		v.Memory.Paused = map[string]time.Time{"a": Noon.Add(2 * time.Minute)}
		v.Memory.Failing = map[string]Failure{"b": {Failures: 1, Since: Born, Until: Noon}}
		Expect(New(v).Again).To(Equal(2 * time.Minute))
	})

	It("is not because of a new member whose bounds are not split", func() {
		Expect(New(view(NewMember("a", 1, young))).Again).To(BeZero())
	})

	It("is the soonest of all, wherever it is in the order", func() {
		v := view(NewMember("a", 1), NewMember("b", 1), NewMember("c", 1))
		v.Memory.Paused = map[string]time.Time{"a": Noon.Add(2 * time.Minute), "b": Noon.Add(time.Minute), "c": Noon.Add(3 * time.Minute)}
		Expect(New(v).Again).To(Equal(time.Minute))
	})
})

var _ = DescribeTable("A write is empty", func(want bool, w Write) { Expect(w.IsEmpty()).To(Equal(want)) },
	Entry("if it changes nothing", true, Write{Annotations: map[string]string{}, Why: "split growth"}),
	Entry("not if it changes replicas", false, Write{Replicas: new(int32)}),
	Entry("not if it changes the field for excess", false, Write{Excess: new(int32)}),
	Entry("not if it removes an annotation", false, Write{Annotations: map[string]string{v1alpha1.ShareAnnotation: ""}}),
)

var _ = DescribeTable("The skew in the metric is", func(want map[string]int, members ...Member) {
	Expect(New(view(members...)).Skews).To(Equal(want))
},
	Entry("how far members are from even, by the first of their names", map[string]int{"a": 4},
		NewMember("a", 3, ScaleUp), NewMember("b", 1, ScaleUp), NewMember("c", 5, Continuous)),
	Entry("0 if they are even", map[string]int{"a": 0}, NewMember("a", 3, ScaleUp), NewMember("b", 3, ScaleUp)),
	Entry("none of one alone", map[string]int{}, NewMember("a", 3, ScaleUp), NewMember("b", 1)),
	Entry("one for each group", map[string]int{"a": 2, "c": 1},
		NewMember("a", 3, ScaleUp, Labelled("p")), NewMember("b", 1, ScaleUp, Labelled("p")),
		NewMember("c", 3, ScaleUp, Labelled("q")), NewMember("d", 2, ScaleUp, Labelled("q"))),
)

// failingReserve has a machine in reserve that cannot be created.
func failingReserve(m *Member) { machines(NewMachine(m.Object.Name+"-x", inReserve, exhausted))(m) }

// holding has a pod on each machine of a member.
func holding(changes ...func(*corev1.Pod)) Change {
	return func(m *Member) {
		for i := range m.Machines {
			hold(&m.Machines[i], pod("x", m.Machines[i].Object.Name, changes...))
		}
	}
}

func asked(n int32) Change { return func(m *Member) { m.Object.Spec.Replicas = n } }

func odd(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device"}} }

var _ = DescribeTable("The condition of a pool's excess says", func(says, text string, v View) {
	p := New(v)
	Expect(condition(p, v.Members[0].Object.Name, ConditionShare)).To(Equal(says))
	Expect(message(p, v.Members[0].Object.Name, ConditionShare)).To(Equal(text))
},
	Entry("over how many members it is spread", "True Spread", "the pool's excess of 4 is spread over 3 MachineDeployments",
		view(poolOf("4", 3, 3, 3)...)),
	Entry("which zones others stand in for", "True FailedOver",
		"the pool's excess of 4 is complete, partly in other zones, because machines cannot be created in b, c",
		view(with(with(poolOf("4", 3, 3, 3), 1, failingReserve), 2, failingReserve)...)),
	Entry("what has no room, and what to do about it", "False NoRoom",
		"there is no room for 2 machines of the pool's excess of 4: raise max in the bounds, or lower the excess",
		view(with(poolOf("4", 3), 0, bounds("1:5"))...)),
	Entry("what has no room, be it one machine", "False NoRoom",
		"there is no room for 1 machines of the pool's excess of 4: raise max in the bounds, or lower the excess",
		view(with(poolOf("4", 3), 0, bounds("1:6"))...)),
	Entry("what has no room while a max is not known, be it one machine", "False MaximumUnknown",
		"the maximum of this pool is unknown, so there is no room for 1 of the 4 machines in reserve: "+
			"set the worker annotation "+v1alpha1.BoundsAnnotation+", for example \"3:9:4\" for minimum, maximum and excess",
		stockRights(view(with(poolOf("4", 3, 3), 0, bounds("1:6"))...))),
	Entry("what has no room since zones fail", "False NoRoom",
		"there is no room for 2 machines of the pool's excess of 4: raise max in the bounds, or lower the excess, because machines cannot be created in b",
		view(with(with(poolOf("4", 3, 3), 0, bounds("1:5")), 1, failingReserve)...)),
	Entry("what has no room while a max is not known", "False MaximumUnknown",
		"the maximum of this pool is unknown, so there is no room for 2 of the 4 machines in reserve: "+
			"set the worker annotation "+v1alpha1.BoundsAnnotation+", for example \"3:9:4\" for minimum, maximum and excess",
		stockRights(view(with(poolOf("4", 3, 3), 0, bounds("1:5"))...))),
	Entry("that the cluster is hibernated", "True Hibernated", "the cluster is hibernated and has no reserve",
		func() View { v := view(poolOf("4", 3)...); v.Garden.Hibernated = true; return v }()),
)

var _ = Describe("The condition of a pool's excess that cannot be counted", func() {
	It("says what is missing and what to do about it, without a Node", func() {
		p := New(view(NewMember("a", 3, Excess("cpu=3"), unknownTemplate)))
		Expect(message(p, "a", ConditionShare)).To(ContainSubstring("give the MachineClass a nodeTemplate with that capacity"))
	})

	It("says what is missing and what to do about it, with Nodes", func() {
		p := New(view(NewMember("a", 3, Excess("licence=1"), Labelled("p")), NewMember("b", 3, Labelled("p"))))
		Expect(condition(p, "b", ConditionShare)).To(Equal("False ExcessUnknown"))
		Expect(message(p, "b", ConditionShare)).To(ContainSubstring("its machines do not offer that resource"))
	})

	It("says why devices are not known, unless another member of the pool has some", func() {
		members := poolOf("devices.gpu=6", 3, 3)
		for i := range members {
			members[i].DevicesUnknown = pool.Unknown{"devices.gpu": "no Node is ready"}
		}
		p := New(view(members...))
		Expect(condition(p, "a", ConditionShare)).To(Equal("False ExcessUnknown"))
		Expect(message(p, "a", ConditionShare)).To(HaveSuffix("devices.gpu: no Node is ready"))
		members[1].Devices, members[1].DevicesUnknown = corev1.ResourceList{"devices.gpu": resource.MustParse("2")}, nil
		v := view(members...)
		Expect(shares(v, New(v))).To(Equal("2/1"))
		members[0].Devices, members[0].DevicesUnknown = corev1.ResourceList{"devices.gpu": resource.MustParse("1")}, nil
		v = view(members...)
		Expect(shares(v, New(v))).To(Equal("3/3"), "the least counts")
	})

	DescribeTable("says what is missing where only some machines offer it, whichever come first by name", func(offering int) {
		members := poolOf("licence=1", 3, 3)
		members[offering].Template.Allocatable = members[offering].Template.Allocatable.DeepCopy()
		members[offering].Template.Allocatable["licence"] = resource.MustParse("1")
		p := New(view(members...))
		Expect(condition(p, "a", ConditionShare)).To(Equal("False ExcessUnknown"))
		Expect(message(p, "a", ConditionShare)).To(ContainSubstring("its machines do not offer that resource"))
	},
		Entry("the first", 0),
		Entry("the second", 1),
	)

	It("says so where no member has a valid one", func() {
		p := New(view(NewMember("a", 3, Excess("many"), Labelled("p")), NewMember("b", 3, Labelled("p"))))
		Expect(message(p, "b", ConditionShare)).To(Equal("no MachineDeployment of the pool has a valid excess"))
	})
})

var _ = DescribeTable("The condition of growth that stays where it is requested says", func(says, text string, v View) {
	p := New(v)
	Expect(writes(p)).NotTo(ContainSubstring("move"))
	Expect(condition(p, "a", ConditionBalanced)).To(Equal("False " + says))
	Expect(message(p, "a", ConditionBalanced)).To(Equal(text))
	Expect(p.Blocks).To(Equal(map[string]string{"a": says}))
},
	Entry("that no member has room", "NoRoom", "no similar MachineDeployment has room for the requested growth",
		view(NewMember("a", 6, ScaleUp, Applied(2), bounds("1:3")), NewMember("b", 2, ScaleUp, Applied(2), bounds("1:2")))),
	Entry("that no member has room for one replica", "NoRoom", "no similar MachineDeployment has room for the requested growth",
		view(NewMember("a", 3, ScaleUp, Applied(2), bounds("1:2")), NewMember("b", 2, ScaleUp, Applied(2), bounds("1:2")))),
	Entry("that no member has room, since zones fail", "NoRoom",
		"no similar MachineDeployment has room for the requested growth, because machines cannot be created in b",
		view(NewMember("a", 6, ScaleUp, Applied(2), bounds("1:3")), NewMember("b", 2, ScaleUp, Applied(2), failingReserve))),
	Entry("that no member has room, since it fails itself", "NoRoom",
		"no similar MachineDeployment has room for the requested growth, because machines cannot be created in b, a",
		view(NewMember("a", 6, ScaleUp, Applied(2), failingReserve), NewMember("b", 2, ScaleUp, Applied(2), failingReserve))),
	Entry("that pods could not run elsewhere, rather than that there is no room", "PodsBound", "none of the pods in a can run in b",
		view(NewMember("a", 6, ScaleUp, Applied(2), bounds("1:3"), holding(InZone("a"))), NewMember("b", 2, ScaleUp, Applied(2)))),
	Entry("that a waiting pod could not run elsewhere, and why", "PodsBound",
		"waiting pods cannot run in b: "+string(fit.Elsewhere),
		waiting(pod("x", "", InZone("a")), NewMember("a", 6, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2)))),
	Entry("that a waiting pod might not run elsewhere", "PodsBound", "waiting pods cannot run in b: it has a requirement that Evenkeel does not know",
		waiting(pod("x", "", odd), NewMember("a", 6, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2)))),
)

// waiting is a view with a pod that waits.
func waiting(p *fit.Pod, members ...Member) View {
	v := view(members...)
	v.Waiting = []*fit.Pod{p}
	return v
}

var _ = DescribeTable("The condition says why no machine of a member may go", func(says, text string, v View) {
	p := New(v)
	Expect(writes(p)).To(Equal("b: -share -move"), "what was created for it is given up")
	Expect(condition(p, "a", ConditionBalanced)).To(Equal("False " + says))
	Expect(message(p, "a", ConditionBalanced)).To(Equal(text))
	Expect(p.Blocks).To(Equal(map[string]string{"a": says}))
	Expect(p.Memory.Paused).To(HaveKey("b"))
},
	Entry("where pods must not be evicted", "NotSafeToEvict", "NotSafeToEvict: pod default/x must not be evicted",
		view(continuous("a", 3, holding(safe("false"))), created("b", 1))),
	Entry("where pods would be lost", "NotReplicated", "NotReplicated: pod default/x has no controller and would not be recreated",
		view(continuous("a", 3, holding(alone)), created("b", 1))),
	Entry("where pods could not run elsewhere", "PodsBound", "PodsBound: pod default/x cannot run in b: "+string(fit.Elsewhere),
		view(continuous("a", 3, holding(InZone("a"))), created("b", 1))),
	Entry("where pods might not run elsewhere", "PodsBound", "PodsBound: pod default/x cannot run in b: it has a requirement that Evenkeel does not know",
		view(continuous("a", 3, holding(odd)), created("b", 1))),
	Entry("where no node template is known for the other member", "PodsBound", "PodsBound: no node template known for b",
		view(continuous("a", 3, holding()), created("b", 1, func(m *Member) { m.Fresh = nil }))),
	Entry("by the machine that would go first", "NotSafeToEvict", "NotSafeToEvict: pod default/x must not be evicted",
		view(continuous("a", 3, holding(InZone("a")), func(m *Member) { m.Machines[1].Workload[0] = pod("x", "a-1", safe("false"), aged(2*time.Hour)) }), created("b", 1))),
	Entry("where a budget is used up", "PodDisruptionBudget", "PodDisruptionBudget: default/q allows no eviction of pod default/x",
		budgeted(budget("q", 0), continuous("a", 3, holding(app("q"))), created("b", 1))),
)

// budgeted is a view with a budget.
func budgeted(b pool.Budget, members ...Member) View {
	v := view(members...)
	v.Budgets = []pool.Budget{b}
	return v
}
