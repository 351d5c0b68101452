// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

// stage is how far the update of a machine is: the phase of the Machine, what its condition and that of the
// Node say, and the labels of the Node.
type stage struct {
	phase       mcm.MachinePhase
	reason      string
	marks       []string
	result      string
	moved, goes bool
}

var (
	candidate = mcm.LabelKeyNodeCandidateForUpdate
	selected  = mcm.LabelKeyNodeSelectedForUpdate
	result    = mcm.LabelKeyNodeUpdateResult
	bothMarks = []string{candidate, selected}
)

// stages are the letters of machines in these specs.
var stages = map[rune]stage{
	'r': {phase: mcm.MachineRunning},
	'c': {mcm.MachineRunning, mcm.CandidateForUpdate, []string{candidate}, "", false, false},
	's': {mcm.MachineRunning, mcm.SelectedForUpdate, bothMarks, "", false, false},
	'u': {mcm.MachineInPlaceUpdating, mcm.ReadyForUpdate, bothMarks, "", false, false},
	'U': {mcm.MachineInPlaceUpdating, mcm.UpdateSuccessful, bothMarks, mcm.LabelValueNodeUpdateSuccessful, false, false},
	'f': {mcm.MachineInPlaceUpdateFailed, mcm.UpdateFailed, bothMarks, mcm.LabelValueNodeUpdateFailed, false, false},
	'F': {mcm.MachineInPlaceUpdateFailed, mcm.UpdateSuccessful, bothMarks, mcm.LabelValueNodeUpdateSuccessful, false, false},
	'e': {mcm.MachineRunning, mcm.ReadyForUpdate, bothMarks, mcm.LabelValueNodeUpdateSuccessful, false, false}, // the machine controller has yet to see it
	'd': {mcm.MachineInPlaceUpdateSuccessful, mcm.UpdateSuccessful, bothMarks, mcm.LabelValueNodeUpdateSuccessful, false, false},
	'D': {mcm.MachineInPlaceUpdateSuccessful, mcm.UpdateSuccessful, bothMarks, mcm.LabelValueNodeUpdateSuccessful, false, true},
	'X': {mcm.MachineFailed, mcm.UpdateSuccessful, bothMarks, mcm.LabelValueNodeUpdateSuccessful, false, false},
	'R': {mcm.MachineRunning, mcm.UpdateSuccessful, bothMarks, mcm.LabelValueNodeUpdateSuccessful, false, false},
	'w': {mcm.MachineInPlaceUpdateSuccessful, mcm.UpdateSuccessful, bothMarks, "", false, false}, // without a result
	'm': {mcm.MachineInPlaceUpdateSuccessful, mcm.UpdateSuccessful, bothMarks, mcm.LabelValueNodeUpdateSuccessful, true, false},
	'b': {phase: mcm.MachinePending}, // has no Node yet
	'x': {phase: mcm.MachineFailed},
	'k': {mcm.MachineUnknown, mcm.CandidateForUpdate, []string{candidate}, "", false, false},
	't': {mcm.MachineTerminating, mcm.SelectedForUpdate, bothMarks, "", false, true},
	'l': {mcm.MachineRunning, mcm.CandidateForUpdate, []string{candidate}, "", false, true},
}

// setOf is one of its MachineSets, with a letter for each machine.
type setOf struct {
	name     string
	size     int32
	machines string
	change   []setChange
}

func oldSet(size int32, machines string, change ...setChange) setOf {
	return setOf{"old", size, machines, change}
}

func olderSet(size int32, machines string, change ...setChange) setOf {
	return setOf{"older", size, machines, change}
}

func newestSet(size int32, machines string, change ...setChange) setOf {
	return setOf{"newest", size, machines, change}
}

// sized is for a MachineSet whose size was decided for another number of replicas.
func sized(replicas int) setChange {
	return func(s *mcm.MachineSet) {
		s.Annotations["deployment.kubernetes.io/desired-replicas"] = fmt.Sprint(replicas)
	}
}

// enabled is for a MachineSet that may create machines.
func enabled(s *mcm.MachineSet) { delete(s.Labels, machineutils.LabelKeyMachineSetScaleUpDisabled) }

func disabledBy(value string) setChange {
	return func(s *mcm.MachineSet) { s.Labels[machineutils.LabelKeyMachineSetScaleUpDisabled] = value }
}

// limits are those of an update in place.
type limits struct {
	surge, unavailable int
	how                mcm.OrchestrationType
}

func auto(surge, unavailable int) limits {
	return limits{surge, unavailable, mcm.OrchestrationTypeAuto}
}

var manual = limits{0, 1, mcm.OrchestrationTypeManual}

func (l limits) strategy() mcm.MachineDeploymentStrategy {
	surge, unavailable := intstr.FromInt(l.surge), intstr.FromInt(l.unavailable)
	return mcm.MachineDeploymentStrategy{
		Type: mcm.InPlaceUpdateMachineDeploymentStrategyType,
		InPlaceUpdate: &mcm.InPlaceUpdateMachineDeployment{
			UpdateConfiguration: mcm.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &unavailable}, OrchestrationType: l.how,
		},
	}
}

// updateOf returns the view of a MachineDeployment in an update in place, the oldest MachineSet first.
func updateOf(replicas int32, l limits, sets ...setOf) View {
	d := &api.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "pool", UID: "uid-pool", ResourceVersion: "1", Generation: 2, Finalizers: []string{Finalizer},
		Annotations: map[string]string{"deployment.kubernetes.io/revision": "9"},
	}}
	d.Spec.Replicas, d.Spec.Strategy = replicas, l.strategy()
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "pool"}}
	d.Spec.Template.Labels = map[string]string{"name": "pool"}
	d.Spec.Template.Spec.Class = mcm.ClassSpec{Kind: "MachineClass", Name: "newest"}
	v := View{Now: noon, Deployment: d, Nodes: map[string]*corev1.Node{}}
	for age, one := range sets {
		v.Sets = append(v.Sets, one.in(v, age))
	}
	return v
}

// in returns a MachineSet and its machines, whose Nodes it adds to the view.
func (o setOf) in(v View, age int) Set {
	own := map[string]string{"name": "pool", "machine-template-hash": o.name}
	s := newSet(o.name, o.size, func(s *mcm.MachineSet) {
		s.CreationTimestamp = at(time.Duration(age-10) * time.Hour)
		s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(v.Deployment, mcm.SchemeGroupVersion.WithKind("MachineDeployment"))}
		s.Labels = map[string]string{"name": "pool", "machine-template-hash": o.name}
		s.Annotations = map[string]string{"deployment.kubernetes.io/revision": "1", PreferNoSchedule: "True"}
		s.Spec.Selector.MatchLabels, s.Spec.Template.Labels = own, own
		s.Spec.Template.Spec.Class.Name = o.name
		disabledBy("true")(s)
		if o.name == "newest" {
			enabled(s)
			s.Annotations["deployment.kubernetes.io/revision"] = "9"
		}
	})
	sized(int(v.Deployment.Spec.Replicas))(s)
	for _, change := range o.change {
		change(s)
	}
	set := Set{Object: s}
	for i, letter := range o.machines {
		set.Machines = append(set.Machines, stages[letter].machine(v, s, fmt.Sprintf("%s-%d", o.name, i)))
	}
	return set
}

// machine returns a machine, whose Node it adds to the view.
func (g stage) machine(v View, s *mcm.MachineSet, name string) *mcm.Machine {
	conditions := []corev1.NodeCondition{{Type: corev1.NodeReady, Reason: "KubeletReady"}, {Type: mcm.NodeInPlaceUpdate, Reason: g.reason}}
	if g.phase != mcm.MachinePending {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + name, Labels: map[string]string{}}}
		for _, key := range g.marks {
			node.Labels[key] = "true"
		}
		if node.Status.Conditions = conditions; g.result != "" {
			node.Labels[result] = g.result
			node.Annotations = map[string]string{mcm.AnnotationKeyMachineUpdateFailedReason: "none", "others": "stay"}
			node.Spec.Unschedulable = true
			node.Spec.Taints = []corev1.Taint{{Key: "others", Effect: corev1.TaintEffectNoSchedule}, {Key: PreferNoSchedule, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule}}
		}
		v.Nodes[node.Name] = node
	}
	return newMachine(s, name, g.phase, func(m *mcm.Machine) {
		m.Labels = map[string]string{"name": "pool", "machine-template-hash": s.Name, "others": "stay"}
		if g.phase != mcm.MachinePending {
			m.Labels[mcm.NodeLabelKey] = "node-" + name
		}
		if m.Status.Conditions = conditions; g.moved {
			m.Labels[result] = mcm.LabelValueNodeUpdateSuccessful
		}
		if g.goes {
			leaving(m)
		}
	})
}

// updateSteps returns what a plan does for an update in place, in words.
func updateSteps(p Plan) string {
	var words []string
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	for _, s := range p.NewSets {
		say("begin with %d", s.Spec.Replicas)
	}
	for _, c := range p.Sets {
		if was, is := c.Before.Spec.Replicas, c.After.Spec.Replicas; was != is {
			say("%s %d -> %d", c.Before.Name, was, is)
		}
	}
	for _, c := range p.Machines {
		switch {
		case metav1.GetControllerOf(c.Before).UID != metav1.GetControllerOf(c.After).UID:
			say("move %s", c.Before.Name)
		case c.Before.Labels[result] != c.After.Labels[result]:
			say("count %s", c.Before.Name)
		default:
			say("change %s", c.Before.Name)
		}
	}
	for _, c := range p.Creations {
		say("%s creates %d", c.Set.Name, c.Count)
	}
	for _, d := range p.Deletions {
		say("delete %s", d.Machine.Name)
	}
	for _, c := range p.Nodes {
		name := strings.TrimPrefix(c.Before.Name, "node-")
		if c.Before.Labels[selected] != c.After.Labels[selected] && c.After.Labels[selected] != "" {
			say("select %s", name)
		} else if c.Before.Labels[result] != c.After.Labels[result] {
			say("finish %s", name)
		}
	}
	return strings.Join(words, ", ")
}

// nodeAfter returns a Node as it is after a plan.
func nodeAfter(v View, p Plan, machine string) *corev1.Node {
	i := slices.IndexFunc(p.Nodes, func(c NodeChange) bool { return c.Before.Name == "node-"+machine })
	if i < 0 {
		return v.Nodes["node-"+machine]
	}
	return p.Nodes[i].After
}

// setChanged returns a MachineSet as it is after a plan.
func setChanged(v View, p Plan, name string) *mcm.MachineSet {
	for _, c := range p.Sets {
		if c.Before.Name == name {
			return c.After
		}
	}
	i := slices.IndexFunc(v.Sets, func(s Set) bool { return s.Object.Name == name })
	return v.Sets[i].Object
}
