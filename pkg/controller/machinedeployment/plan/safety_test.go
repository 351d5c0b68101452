// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// crowd are so many machines that run, and so many that have been leaving for a minute.
type crowd struct{ running, leaving int }

func (c crowd) of(s *mcm.MachineSet) (all []*mcm.Machine) {
	for i := range c.running {
		all = append(all, newMachine(s, fmt.Sprintf("%s-r%02d", s.Name, i), mcm.MachineRunning))
	}
	for i := range c.leaving {
		all = append(all, newMachine(s, fmt.Sprintf("%s-t%02d", s.Name, i), mcm.MachineTerminating, leavingFor(time.Minute)))
	}
	for _, m := range all {
		m.Labels = s.Spec.Template.Labels
	}
	return all
}

func leavingFor(d time.Duration) machineChange {
	return func(m *mcm.Machine) { m.DeletionTimestamp = deleted(noon.Add(-d)) }
}

// byCondition is a MachineSet that was frozen an hour ago.
func byCondition(s *mcm.MachineSet) {
	s.Status.Conditions = append(s.Status.Conditions, mcm.MachineSetCondition{
		Type: mcm.MachineSetFrozen, Status: mcm.ConditionTrue, Reason: "OverShootingReplicaCount", LastTransitionTime: at(-time.Hour),
	})
}

func frozenFully(s *mcm.MachineSet) {
	frozen(s)
	byCondition(s)
}

func toThaw(s *mcm.MachineSet) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, Unfreeze, "yes") }

// carried returns a view after the plan has changed its objects, but no machine.
func carried(v View, p Plan) View {
	next := View{Now: v.Now, Settings: v.Settings, Deployment: v.Deployment, Nodes: v.Nodes}
	if next.Deployment != nil {
		d := v.Deployment.DeepCopy()
		if p.Deployment != nil {
			d = p.Deployment.After.DeepCopy()
		}
		if p.DeploymentStatus != nil {
			d.Status = p.DeploymentStatus.After
		}
		next.Deployment = d
	}
	for _, s := range v.Sets {
		next.Sets = append(next.Sets, Set{Object: setAfter(s.Object, p), Machines: s.Machines})
	}
	return next
}

// freezes returns in words how an object is frozen.
func freezes(o metav1.Object, condition bool) string {
	var words []string
	add := func(is bool, word string) {
		if is {
			words = append(words, word)
		}
	}
	_, asked := o.GetAnnotations()[Unfreeze]
	add(pool.Frozen(o), "label")
	add(condition, "condition")
	add(asked, "annotation")
	return strings.Join(words, " and ")
}

func freezeOf(s *mcm.MachineSet) string {
	return freezes(s, slices.ContainsFunc(s.Status.Conditions, func(c mcm.MachineSetCondition) bool { return c.Type == mcm.MachineSetFrozen }))
}

func freezeOfDeployment(d *v1alpha1.MachineDeployment) string {
	return freezes(d, slices.ContainsFunc(d.Status.Conditions, func(c mcm.MachineDeploymentCondition) bool { return c.Type == mcm.MachineDeploymentFrozen }))
}

// eventsOf returns the reasons of events about MachineSets.
func eventsOf(p Plan) (reasons []string) {
	for _, c := range p.Sets {
		for _, e := range c.Events {
			if e.Set != nil {
				reasons = append(reasons, e.Set.Name+" "+e.Type+" "+e.Reason)
			}
		}
	}
	return reasons
}

const both = "label and condition"

var _ = DescribeTable("A MachineSet without a MachineDeployment is frozen",
	func(s *mcm.MachineSet, c crowd, settings Settings, want, events string) {
		v := View{Now: noon, Settings: settings, Sets: []Set{{Object: s, Machines: c.of(s)}}}
		p := New(v)
		next := carried(v, p)
		Expect(freezeOf(next.Sets[0].Object)).To(Equal(want))
		Expect(strings.Join(eventsOf(p), ", ")).To(Equal(events))
		again := New(next)
		Expect(again.Sets).To(BeEmpty())
		Expect(again.Statuses).To(BeEmpty())
	},
	Entry("F3: from 2 x replicas + safety-up on", newSet("s", 1), crowd{4, 0}, usual, both, "s Normal FrozeMachineSet"),
	Entry("F3: and not before", newSet("s", 1), crowd{3, 0}, usual, "", ""),
	Entry("F3: also if it is to have none", newSet("s", 0), crowd{2, 0}, usual, both, "s Normal FrozeMachineSet"),
	Entry("F3: by the flag", newSet("s", 1), crowd{4, 0}, Settings{SafetyUp: 3, SafetyDown: 1}, "", ""),
	Entry("F3: with more replicas than 32 bits have room for", newSet("s", 1<<30), crowd{3, 0}, usual, "", ""),
	Entry("F2: machines that leave count", newSet("s", 1), crowd{1, 3}, usual, both, "s Normal FrozeMachineSet"),
	Entry("F4: until there are fewer", newSet("s", 1, frozenFully), crowd{4, 0}, usual, both, ""),
	Entry("F4: and then not", newSet("s", 1, frozenFully), crowd{3, 0}, usual, "", "s Normal UnfrozeMachineSet"),
	Entry("F4: between the limits it stays as it is, frozen", newSet("s", 2, frozenFully), crowd{5, 0}, Settings{SafetyUp: 3, SafetyDown: 3}, both, ""),
	Entry("F4: between the limits it stays as it is, free", newSet("s", 2), crowd{5, 0}, Settings{SafetyUp: 3, SafetyDown: 3}, "", ""),
	Entry("F4: down to safety-down", newSet("s", 2, frozenFully), crowd{4, 0}, Settings{SafetyUp: 3, SafetyDown: 3}, "", "s Normal UnfrozeMachineSet"),
	Entry("F3: not for ever: what it may have thaws it", newSet("s", 1, frozenFully), crowd{2, 0}, Settings{SafetyUp: 2, SafetyDown: 9}, "", "s Normal UnfrozeMachineSet"),
	Entry("F3: and not just below", newSet("s", 1, frozenFully), crowd{3, 0}, Settings{SafetyUp: 2, SafetyDown: 9}, both, ""),
	Entry("F3: with safety-down 0 it does not flap", newSet("s", 1), crowd{4, 0}, Settings{SafetyUp: 2}, both, "s Normal FrozeMachineSet"),
	Entry("F3: with safety-down 0 it does not flap either when it is frozen", newSet("s", 1, frozenFully), crowd{4, 0}, Settings{SafetyUp: 2}, both, ""),
	Entry("F3: with safety-up 0 what it may have does not freeze it", newSet("s", 1), crowd{2, 0}, Settings{}, "", ""),
	Entry("F3: and one more does", newSet("s", 1), crowd{3, 0}, Settings{}, both, "s Normal FrozeMachineSet"),
	Entry("F4: not because of a label", newSet("s", 2, frozen), crowd{2, 0}, usual, "", "s Normal UnfrozeMachineSet"),
	Entry("F4: not because of a condition", newSet("s", 2, byCondition), crowd{2, 0}, usual, "", ""),
	Entry("F6: with a condition where only a label is", newSet("s", 1, frozen), crowd{4, 0}, usual, both, ""),
	Entry("F6: with a label where only a condition is", newSet("s", 1, byCondition), crowd{4, 0}, usual, both, "s Normal FrozeMachineSet"),
	Entry("F6: but between the limits it is free where only a condition is, which is written last", newSet("s", 2, byCondition), crowd{5, 0}, Settings{SafetyUp: 3, SafetyDown: 3}, "", ""),
	Entry("F6: that it is frozen is said once, though it changes", newSet("s", 1, frozenFully, without), crowd{4, 0}, usual, both, ""),
	Entry("F8: between the limits not any more, if people ask", newSet("s", 2, frozenFully, toThaw), crowd{5, 0}, Settings{SafetyUp: 3, SafetyDown: 3}, "", "s Normal UnfrozeMachineSet"),
	Entry("F8: anew beyond the limit, if people ask", newSet("s", 1, frozenFully, toThaw), crowd{4, 0}, usual, both, "s Normal FrozeMachineSet"),
	Entry("F8: and the annotation goes if it is not frozen", newSet("s", 1, toThaw), crowd{1, 0}, usual, "", ""),
	Entry("O8: nothing is decided any more when it goes", newSet("s", 1, goes, frozen, toThaw), crowd{1, 0}, usual, "label and annotation", ""),
	Entry("O8: nor is one frozen that goes", newSet("s", 1, goes), crowd{9, 0}, usual, "", ""),
)

var _ = DescribeTable("F2: A MachineSet whose machines have begun to leave", func(c crowd, since time.Duration, want string, change ...setChange) {
	s := newSet("s", 1, change...)
	v := View{Now: noon, Settings: usual, Sets: []Set{{Object: s, Machines: c.of(s)}}}
	for _, m := range v.Sets[0].Machines[c.running:] {
		leavingFor(since)(m)
	}
	p := New(v)
	Expect(freezeOf(carried(v, p).Sets[0].Object)).To(Equal(want))
	if want == "" && len(p.Sets) == 0 {
		Expect(p.Again).To(Equal(time.Minute - since))
	}
},
	Entry("is not frozen a moment later", crowd{1, 3}, 20*time.Second, ""),
	Entry("is not frozen before a minute is over", crowd{1, 3}, time.Minute-1, ""),
	Entry("is frozen after a minute", crowd{1, 3}, time.Minute, both),
	Entry("is frozen at once if the others are too many as well", crowd{4, 1}, 20*time.Second, both),
	Entry("is frozen at once if another is missing, which would be created", crowd{0, 4}, 20*time.Second, both),
	Entry("stays frozen", crowd{1, 3}, 20*time.Second, both, frozenFully),
	Entry("is not frozen any more if people ask", crowd{1, 3}, 20*time.Second, "", frozenFully, toThaw),
)

var _ = It("F2: A MachineSet is not looked at again for machines that leave below the limit", func() {
	s := newSet("s", 1)
	v := View{Now: noon, Settings: usual, Sets: []Set{{Object: s, Machines: crowd{1, 2}.of(s)}}}
	for _, m := range v.Sets[0].Machines[1:] {
		leavingFor(20 * time.Second)(m)
	}
	Expect(New(v).Again).To(BeZero())
})

var _ = It("F2: Machines without all labels of the template do not count when they leave, either", func() {
	s := newSet("s", 1)
	v := View{Now: noon, Settings: usual, Sets: []Set{{Object: s, Machines: crowd{4, 0}.of(s)}}}
	v.Sets[0].Machines = append(v.Sets[0].Machines, newMachine(s, "a", mcm.MachineTerminating, leavingFor(time.Second), func(m *mcm.Machine) { delete(m.Labels, "part") }))
	Expect(freezeOf(carried(v, New(v)).Sets[0].Object)).To(Equal(both))
})

// usual are the defaults of the flags.
var usual = Settings{SafetyUp: 2, SafetyDown: 1}

var _ = DescribeTable("A MachineSet that is frozen",
	func(s *mcm.MachineSet, c crowd, others []machineOf, want string) {
		v := newView(s, slices.Concat(c.of(s), objects(s, others))...)
		Expect(text(New(v))).To(Equal(want))
	},
	Entry("S5: creates nothing", newSet("s", 3, frozenFully), crowd{1, 7}, nil, ""),
	Entry("S5, F9: nor in the plan that freezes it", newSet("s", 3), crowd{1, 7}, nil, ""),
	Entry("S5, F9: but in the plan that thaws it", newSet("s", 3, frozenFully), crowd{1, 6}, nil, "create 2"),
	Entry("E7: deletes no failed machine while it is short", newSet("s", 3, frozenFully), crowd{1, 6}, these(failed("a")), ""),
	Entry("S5, F9: deletes what is too many", newSet("s", 1, frozenFully), crowd{1, 2}, these(failed("a")), "delete a (Surplus)"),
	Entry("S5: deletes a failed machine if it is not short", newSet("s", 1, frozenFully), crowd{0, 3}, these(failed("a")), "delete a (Failed)"),
	Entry("F2: does not count machines without all labels of the template", newSet("s", 3, frozen), crowd{1, 6},
		these(running("a", func(m *mcm.Machine) { delete(m.Labels, "part") })), "create 1"),
)

var _ = Describe("A MachineSet that is frozen", func() {
	conditionsAfter := func(s *mcm.MachineSet, c crowd) []mcm.MachineSetCondition {
		v := View{Now: noon, Settings: usual, Sets: []Set{{Object: s, Machines: c.of(s)}}}
		return carried(v, New(v)).Sets[0].Object.Status.Conditions
	}
	since := func(d time.Duration) OmegaMatcher {
		return ConsistOf(And(HaveField("Type", mcm.MachineSetFrozen), HaveField("Status", mcm.ConditionTrue), HaveField("Reason", "OverShootingReplicaCount"), HaveField("LastTransitionTime", at(d))))
	}

	It("S27, F6: says of how many machines, and how many thaw it", func() {
		const message = "There are 5 machines. No more are created until there are 3 or fewer"
		Expect(conditionsAfter(newSet("s", 1), crowd{5, 0})).To(ConsistOf(HaveField("Message", message)))
		Expect(conditionsAfter(newSet("s", 1, frozen), crowd{5, 0})).To(ConsistOf(HaveField("Message", message)))
		s := newSet("s", 1)
		p := New(View{Now: noon, Settings: usual, Sets: []Set{{Object: s, Machines: crowd{5, 0}.of(s)}}})
		Expect(p.Sets[0].Events).To(ConsistOf(HaveField("Message", "Froze machine set s: it has 5 machines, and 4 are the limit")))
	})

	It("S27: says since when, and does not change that", func() {
		Expect(conditionsAfter(newSet("s", 1), crowd{4, 0})).To(since(0))
		Expect(conditionsAfter(newSet("s", 1, frozenFully), crowd{5, 0})).To(since(-time.Hour))
		Expect(conditionsAfter(newSet("s", 1, byCondition), crowd{5, 0})).To(since(-time.Hour))
	})

	It("F8: says so anew when people ask to unfreeze it", func() {
		Expect(conditionsAfter(newSet("s", 1, frozenFully, toThaw), crowd{4, 0})).To(since(0))
	})

	It("S27: says so also if somebody says otherwise", func() {
		s := newSet("s", 1, frozenFully)
		s.Status.Conditions[0].Status = mcm.ConditionFalse
		Expect(conditionsAfter(s, crowd{4, 0})).To(since(0))
	})

	It("S26: says so beside a failure, and not any more when machines could not be created after it was", func() {
		failureOf := func(s *mcm.MachineSet, c crowd) []mcm.MachineSetCondition {
			v := View{Now: noon, Settings: usual, Sets: []Set{{Object: s, Machines: c.of(s)}}}
			change, _ := v.WithFailure(v.Sets[0], Failure{FailedCreate, "quota"})
			Expect(s.Labels).To(Equal(map[string]string{pool.FreezeLabel: "True"}), "the view is not changed")
			return change.After.Conditions
		}
		Expect(failureOf(newSet("s", 3, frozenFully), crowd{2, 0})).To(ConsistOf(HaveField("Type", mcm.MachineSetReplicaFailure)))
		Expect(failureOf(newSet("s", 3, frozenFully), crowd{2, 6})).To(ConsistOf(HaveField("Type", mcm.MachineSetFrozen), HaveField("Type", mcm.MachineSetReplicaFailure)))
	})
})

// guarded returns a MachineDeployment.
func guarded(replicas int32, strategy mcm.MachineDeploymentStrategy, change ...func(*v1alpha1.MachineDeployment)) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d", UID: "uid-d", ResourceVersion: "1", Generation: 1, Finalizers: []string{Finalizer}}}
	d.Spec.Replicas, d.Spec.Strategy = replicas, strategy
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "d"}}
	d.Spec.Template.Labels = map[string]string{"pool": "d"}
	d.Spec.Template.Spec.Class = mcm.ClassSpec{Kind: "MachineClass", Name: "class"}
	for _, c := range change {
		c(d)
	}
	return d
}

// ofPool makes a MachineSet one of the MachineDeployment. The one whose class is that of the MachineDeployment
// is the newest.
func ofPool(class string) setChange {
	return func(s *mcm.MachineSet) {
		labels := map[string]string{"pool": "d", mcm.DefaultMachineDeploymentUniqueLabelKey: s.Name}
		s.Labels = map[string]string{pool.FreezeLabel: s.Labels[pool.FreezeLabel], "pool": "d"}
		s.Spec.Selector.MatchLabels, s.Spec.Template.Labels = labels, labels
		s.Spec.Template.Spec.Class.Name = class
		s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(guarded(0, surging("1")), mcm.SchemeGroupVersion.WithKind("MachineDeployment"))}
	}
}

func surging(surge string) mcm.MachineDeploymentStrategy {
	return mcm.MachineDeploymentStrategy{Type: mcm.RollingUpdateMachineDeploymentStrategyType, RollingUpdate: &mcm.RollingUpdateMachineDeployment{UpdateConfiguration: withSurge(surge)}}
}

func surgingInPlace(surge string) mcm.MachineDeploymentStrategy {
	return mcm.MachineDeploymentStrategy{Type: mcm.InPlaceUpdateMachineDeploymentStrategyType, InPlaceUpdate: &mcm.InPlaceUpdateMachineDeployment{
		OrchestrationType: mcm.OrchestrationTypeAuto, UpdateConfiguration: withSurge(surge),
	}}
}

func recreatingAfter(before mcm.MachineDeploymentStrategy) mcm.MachineDeploymentStrategy {
	before.Type = mcm.RecreateMachineDeploymentStrategyType
	return before
}

func withSurge(surge string) mcm.UpdateConfiguration {
	return mcm.UpdateConfiguration{MaxSurge: new(intstr.Parse(surge)), MaxUnavailable: new(intstr.FromInt32(0))}
}

// crowded is a MachineSet with so many machines.
type crowded struct {
	set *mcm.MachineSet
	crowd
}

func crowdedView(d *v1alpha1.MachineDeployment, sets ...crowded) View {
	v := View{Now: noon, Settings: usual, Deployment: d}
	for _, s := range sets {
		v.Sets = append(v.Sets, Set{Object: s.set, Machines: s.of(s.set)})
	}
	return v
}

// labelled and reportedFrozen are of a MachineDeployment.
func labelled(d *v1alpha1.MachineDeployment) {
	metav1.SetMetaDataLabel(&d.ObjectMeta, pool.FreezeLabel, "True")
}
func reportedFrozen(d *v1alpha1.MachineDeployment) {
	d.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: mcm.MachineDeploymentFrozen, Status: mcm.ConditionTrue, Reason: "OverShootingReplicaCount", LastTransitionTime: at(-time.Hour)}}
}
func annotatedToThaw(d *v1alpha1.MachineDeployment) {
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, Unfreeze, "yes")
}
func guardedGoes(d *v1alpha1.MachineDeployment) { d.DeletionTimestamp = deleted(noon) }

func newest(size int32, c crowd, change ...setChange) crowded {
	return crowded{newSet("a", size, append(change, ofPool("class"))...), c}
}
func old(size int32, c crowd, change ...setChange) crowded {
	return crowded{newSet("b", size, append(change, ofPool("old"))...), c}
}

// poolAfter returns in words how the MachineDeployment and its MachineSets are frozen after one plan.
func poolAfter(v View) (words []string) {
	v = carried(v, New(v))
	words = append(words, "d: "+freezeOfDeployment(v.Deployment))
	for _, s := range v.Sets {
		words = append(words, s.Object.Name+": "+freezeOf(s.Object))
	}
	return words
}

var _ = DescribeTable("A MachineSet of a MachineDeployment is frozen",
	func(d *v1alpha1.MachineDeployment, s crowded, want string) {
		Expect(poolAfter(crowdedView(d, s))).To(Equal([]string{"d: " + want, "a: " + want}))
	},
	Entry("F3: from replicas + surge + safety-up on", guarded(2, surging("1")), newest(2, crowd{5, 0}), both),
	Entry("F3: and not before", guarded(2, surging("1")), newest(2, crowd{4, 0}), ""),
	Entry("F3: with a percentage, rounded up", guarded(3, surging("50%")), newest(3, crowd{6, 0}), ""),
	Entry("F3: and from one more on", guarded(3, surging("50%")), newest(3, crowd{7, 0}), both),
	Entry("F3: by replicas of the MachineDeployment, not of the MachineSet", guarded(4, surging("1")), newest(0, crowd{6, 0}), ""),
	Entry("F3: but not before the MachineSet has been scaled down, too", guarded(0, surging("1")), newest(5, crowd{5, 0}), ""),
	Entry("F3: with the surge of updates in place", guarded(2, surgingInPlace("2")), newest(2, crowd{5, 0}), ""),
	Entry("F3: and from one more on", guarded(2, surgingInPlace("2")), newest(2, crowd{6, 0}), both),
	Entry("F5: also where the strategy has no surge", guarded(2, recreatingAfter(mcm.MachineDeploymentStrategy{})), newest(2, crowd{4, 0}), both),
	Entry("F5: and not before", guarded(2, recreatingAfter(mcm.MachineDeploymentStrategy{})), newest(2, crowd{3, 0}), ""),
	Entry("F5: where a label does not, either", guarded(2, recreatingAfter(mcm.MachineDeploymentStrategy{})), newest(2, crowd{2, 0}, frozen), ""),
	Entry("F3: with the surge of the strategy that it had before", guarded(2, recreatingAfter(surging("1"))), newest(2, crowd{4, 0}), ""),
)

var _ = DescribeTable("A MachineDeployment is frozen",
	func(v View, want ...string) {
		Expect(poolAfter(v)).To(Equal(want))
	},
	Entry("F4: with each of its MachineSets, alone", crowdedView(guarded(1, surging("1")), newest(1, crowd{4, 0}), old(0, crowd{3, 0})), "d: "+both, "a: "+both, "b: "),
	Entry("F4: with all of them at once", crowdedView(guarded(1, surging("1")), newest(1, crowd{4, 0}), old(0, crowd{0, 4})), "d: "+both, "a: "+both, "b: "+both),
	Entry("F7: as long as one of them is", crowdedView(guarded(1, surging("1"), labelled, reportedFrozen), newest(1, crowd{1, 0}, frozenFully), old(0, crowd{4, 0}, frozenFully)),
		"d: "+both, "a: ", "b: "+both),
	Entry("F7: and not longer", crowdedView(guarded(1, surging("1"), labelled, reportedFrozen), newest(1, crowd{1, 0})), "d: ", "a: "),
	Entry("F7: not because of a label", crowdedView(guarded(1, surging("1"), labelled), newest(1, crowd{1, 0})), "d: ", "a: "),
	Entry("F7: not because of a condition", crowdedView(guarded(1, surging("1"), reportedFrozen), newest(1, crowd{1, 0})), "d: ", "a: "),
	Entry("F7: also where somebody has removed the label", crowdedView(guarded(1, surging("1"), reportedFrozen), newest(1, crowd{4, 0}, frozenFully)), "d: "+both, "a: "+both),
	Entry("F7: also where somebody has removed the condition", crowdedView(guarded(1, surging("1"), labelled), newest(1, crowd{4, 0}, frozenFully)), "d: "+both, "a: "+both),
	Entry("F7: not if it has no MachineSet", crowdedView(guarded(0, surging("1"), labelled, reportedFrozen)), "d: "),
	Entry("F8: until people ask, which its MachineSets have to know first", crowdedView(guarded(1, surging("1"), labelled, reportedFrozen, annotatedToThaw), newest(1, crowd{4, 0}, frozenFully), old(0, crowd{0, 0})),
		"d: "+both+" and annotation", "a: "+both+" and annotation", "b: annotation"),
	Entry("F8: so that it forgets only what they know", crowdedView(guarded(1, surging("1"), labelled, reportedFrozen, annotatedToThaw), newest(1, crowd{4, 0}, frozenFully, toThaw), old(0, crowd{0, 0})),
		"d: "+both+" and annotation", "a: "+both+" and annotation", "b: annotation"),
	Entry("F8: and then", crowdedView(guarded(1, surging("1"), labelled, reportedFrozen, annotatedToThaw), newest(1, crowd{4, 0}, frozenFully, toThaw), old(0, crowd{0, 0}, toThaw)),
		"d: "+both, "a: "+both+" and annotation", "b: annotation"),
	Entry("F8: except for those that go", crowdedView(guarded(1, surging("1"), annotatedToThaw), newest(1, crowd{1, 0}, toThaw), old(0, crowd{1, 0}, goes)), "d: ", "a: annotation", "b: "),
	Entry("F8: or if it has none", crowdedView(guarded(0, surging("1"), annotatedToThaw)), "d: "),
	Entry("O7: as it was, when it goes", crowdedView(guarded(1, surging("1"), labelled, reportedFrozen, guardedGoes), newest(1, crowd{1, 0}, frozenFully)), "d: "+both, "a: "+both),
	Entry("E2: as it was, when it is to have less than no machines", crowdedView(guarded(-1, surging("1")), newest(1, crowd{3, 0})), "d: ", "a: "),
)

var _ = Describe("A MachineDeployment that is frozen", func() {
	It("E1: is scaled", func() {
		s := newest(2, crowd{2, 0})
		s.set.Annotations = map[string]string{"deployment.kubernetes.io/desired-replicas": "2"}
		Expect(New(crowdedView(guarded(5, surging("1"), labelled), s)).Creations).To(ConsistOf(HaveField("Count", 3)))
	})

	It("F8: asks its MachineSets to unfreeze, which decide anew once they are asked", func() {
		p := New(crowdedView(guarded(1, surging("1"), labelled, reportedFrozen, annotatedToThaw), newest(1, crowd{4, 0}, frozenFully)))
		Expect(p.Sets).To(HaveLen(1))
		Expect(eventsOf(p)).To(BeEmpty())
		for _, c := range p.Statuses {
			Expect(c.After.Conditions).To(ContainElement(HaveField("LastTransitionTime", at(-time.Hour))))
		}
	})

	It("F6: says since when and why, as its MachineSet does, and anew when people ask to unfreeze it", func() {
		condition := func(d *v1alpha1.MachineDeployment) any {
			v := crowdedView(d, newest(1, crowd{4, 0}, frozenFully, toThaw))
			after := carried(v, New(v))
			for _, c := range after.Deployment.Status.Conditions {
				if c.Type == mcm.MachineDeploymentFrozen {
					Expect(c.Reason).To(Equal("OverShootingReplicaCount"))
					Expect(c.Status).To(Equal(mcm.ConditionTrue))
					return c.LastTransitionTime
				}
			}
			return nil
		}
		Expect(condition(guarded(1, surging("1")))).To(Equal(at(0)))
		Expect(condition(guarded(1, surging("1"), reportedFrozen))).To(Equal(at(-time.Hour)))
		Expect(condition(guarded(1, surging("1"), reportedFrozen, annotatedToThaw))).To(Equal(at(0)))
	})
})

// drawnPool has MachineSets that were frozen and unfrozen by anyone.
func drawnPool(t *rapid.T) View {
	changes := sometimes(t, "deployment", labelled, reportedFrozen, annotatedToThaw)
	d := guarded(rapid.Int32Range(0, 3).Draw(t, "replicas"), rapid.SampledFrom([]mcm.MachineDeploymentStrategy{surging("1"), surging("50%"), recreatingAfter(mcm.MachineDeploymentStrategy{})}).Draw(t, "strategy"), changes...)
	var sets []crowded
	for _, one := range []func(int32, crowd, ...setChange) crowded{newest, old}[:rapid.IntRange(0, 2).Draw(t, "sets")] {
		c := crowd{rapid.IntRange(0, 8).Draw(t, "running"), rapid.IntRange(0, 4).Draw(t, "leaving")}
		how := slices.Concat(sometimes(t, "frozen", frozen, byCondition, frozenFully), sometimes(t, "asked", toThaw))
		sets = append(sets, one(rapid.Int32Range(0, 3).Draw(t, "size"), c, how...))
	}
	v := crowdedView(d, sets...)
	v.Settings = Settings{SafetyUp: rapid.Int32Range(0, 3).Draw(t, "up"), SafetyDown: rapid.Int32Range(0, 4).Draw(t, "down")}
	return v
}

// crashed returns the part of a plan that a process has written before its end.
func crashed(t *rapid.T, p Plan) Plan {
	if rapid.Bool().Draw(t, "no deployment") {
		return Plan{}
	}
	part := Plan{Deployment: p.Deployment, Sets: p.Sets[:rapid.IntRange(0, len(p.Sets)).Draw(t, "written sets")]}
	if len(part.Sets) == len(p.Sets) {
		part.Statuses = p.Statuses[:rapid.IntRange(0, len(p.Statuses)).Draw(t, "written statuses")]
	}
	return part
}

var _ = It("F4, F6, F7, F8: While machines neither come nor go, any plan freezes once and for all, wherever a process ends", func() {
	rapid.Check(GinkgoTB(), func(t *rapid.T) {
		v := drawnPool(t)
		asked := map[string]bool{}
		for _, s := range v.Sets {
			asked[s.Object.Name] = strings.Contains(freezeOf(s.Object)+freezeOfDeployment(v.Deployment), "annotation")
		}
		for range 3 {
			v = carried(v, crashed(t, New(v)))
		}
		for range 6 {
			v = carried(v, New(v))
		}
		whole := ""
		for _, s := range v.Sets {
			is, n, most := freezeOf(s.Object), len(s.Machines), int(v.Deployment.Spec.Replicas)+surges(v.Deployment)
			upper := most + int(max(1, v.Settings.SafetyUp))
			lower := upper - int(max(1, v.Settings.SafetyDown))
			free := n <= most || n <= lower || n < upper && asked[s.Object.Name]
			if is != "" && (is != both || free) || is == "" && n >= upper {
				t.Fatalf("%s is frozen by %q, with %d machines", s.Object.Name, is, n)
			}
			whole = cmp.Or(whole, is)
		}
		if is := freezeOfDeployment(v.Deployment); is != whole {
			t.Fatalf("frozen by %q instead of %q", is, whole)
		}
		if p := New(v); len(p.Sets) > 0 || p.Deployment != nil || p.DeploymentStatus != nil {
			t.Fatalf("never rests: %v %v", p.Sets, p.DeploymentStatus)
		}
	})
})

// surges is how many machines the strategy of a drawn MachineDeployment allows beyond replicas.
func surges(d *v1alpha1.MachineDeployment) int {
	switch {
	case d.Spec.Strategy.RollingUpdate == nil:
		return 0
	case d.Spec.Strategy.RollingUpdate.MaxSurge.Type == intstr.String:
		return (int(d.Spec.Replicas) + 1) / 2
	}
	return 1
}
