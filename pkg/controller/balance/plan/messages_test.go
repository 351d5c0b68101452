// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
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
		"the maximum of this pool is not known, so there is no room for 1 of the 4 machines in reserve: "+
			"set the worker annotation "+v1alpha1.BoundsAnnotation+", for example \"3:9:4\" for minimum, maximum and excess",
		stockRights(view(with(poolOf("4", 3, 3), 0, bounds("1:6"))...))),
	Entry("what has no room since zones fail", "False NoRoom",
		"there is no room for 2 machines of the pool's excess of 4: raise max in the bounds, or lower the excess, because machines cannot be created in b",
		view(with(with(poolOf("4", 3, 3), 0, bounds("1:5")), 1, failingReserve)...)),
	Entry("what has no room while a max is not known", "False MaximumUnknown",
		"the maximum of this pool is not known, so there is no room for 2 of the 4 machines in reserve: "+
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
		Expect(message(p, "b", ConditionShare)).To(Equal("no member has a valid excess"))
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
	Entry("that pods could not run elsewhere, rather than that there is no room", "PodsBound", "none of the pods in a could run in b",
		view(NewMember("a", 6, ScaleUp, Applied(2), bounds("1:3"), holding(InZone("a"))), NewMember("b", 2, ScaleUp, Applied(2)))),
	Entry("that a waiting pod could not run elsewhere, and why", "PodsBound",
		"waiting pods could not run in b: "+string(fit.Elsewhere),
		waiting(pod("x", "", InZone("a")), NewMember("a", 6, ScaleUp, Applied(2)), NewMember("b", 2, ScaleUp, Applied(2)))),
	Entry("that a waiting pod might not run elsewhere", "PodsBound", "waiting pods could not run in b: it cannot be told",
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
	Entry("where pods could not run elsewhere", "PodsBound", "PodsBound: pod default/x could not run in b: "+string(fit.Elsewhere),
		view(continuous("a", 3, holding(InZone("a"))), created("b", 1))),
	Entry("where pods might not run elsewhere", "PodsBound", "PodsBound: pod default/x could not run in b: it cannot be told",
		view(continuous("a", 3, holding(odd)), created("b", 1))),
	Entry("where no node template is known for the other member", "PodsBound", "PodsBound: no node template is known for b",
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
