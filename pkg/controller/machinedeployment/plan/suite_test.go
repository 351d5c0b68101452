// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/laws"
)

func TestPlan(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Plan of machinedeployment")
}

func TestMain(m *testing.M) { laws.Main(m, 1000) }

// noon is when views are observed; machines are an hour old unless they are as old as stated.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// beSoon matches times after which the rest is decided: not never, and not at once.
func beSoon() OmegaMatcher { return And(BeNumerically(">", 0), BeNumerically("<", time.Second)) }

func at(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(d)) }

func mark(d time.Duration) string { return noon.Add(d).Format(time.RFC3339) }

// setChange changes a MachineSet, machineChange a Machine.
type (
	setChange     = func(*mcm.MachineSet)
	machineChange = func(*mcm.Machine)
)

// newSet returns a valid MachineSet with our finalizer, whose status has yet to be written.
func newSet(name string, replicas int32, change ...setChange) *mcm.MachineSet {
	s := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Generation: 3, Finalizers: []string{Finalizer},
	}}
	s.Spec.Replicas = replicas
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}
	s.Spec.Template.Labels = map[string]string{"name": name, "part": "whole"}
	s.Spec.Template.Spec.Class = mcm.ClassSpec{Kind: "MachineClass", Name: "class"}
	for _, c := range change {
		c(s)
	}
	return s
}

// newMachine returns a machine of a MachineSet.
func newMachine(s *mcm.MachineSet, name string, phase mcm.MachinePhase, change ...machineChange) *mcm.Machine {
	m := &mcm.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", CreationTimestamp: at(-time.Hour),
		Labels:          map[string]string{"name": s.Name, "part": "whole"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, mcm.SchemeGroupVersion.WithKind("MachineSet"))},
	}}
	m.Spec = *s.Spec.Template.Spec.DeepCopy()
	m.Status.CurrentStatus.Phase = phase
	for _, c := range change {
		c(m)
	}
	return m
}

func deleted(at time.Time) *metav1.Time { return &metav1.Time{Time: at} }

func frozen(s *mcm.MachineSet)  { s.Labels = map[string]string{pool.FreezeLabel: "True"} }
func goes(s *mcm.MachineSet)    { s.DeletionTimestamp = deleted(noon) }
func without(s *mcm.MachineSet) { s.Finalizers = nil }
func updating(s *mcm.MachineSet) {
	s.Labels = map[string]string{machineutils.LabelKeyMachineSetScaleUpDisabled: ""}
}
func all(s *mcm.MachineSet)     { s.Spec.Selector = &metav1.LabelSelector{} }
func nothing(s *mcm.MachineSet) { s.Spec.Selector = nil }
func keeps(n int32) setChange {
	return func(s *mcm.MachineSet) { s.Spec.AutoPreserveFailedMachineMax = n }
}
func kind(text string) setChange {
	return func(s *mcm.MachineSet) { s.Spec.Template.Spec.Class.Kind = text }
}
func scaled(d time.Duration) setChange {
	return func(s *mcm.MachineSet) {
		s.Annotations = map[string]string{machineutils.LastDeploymentReplicaChangeByScalerTime: mark(d)}
	}
}

func leaving(m *mcm.Machine)   { m.DeletionTimestamp = deleted(noon) }
func orphan(m *mcm.Machine)    { m.OwnerReferences = nil }
func relabeled(m *mcm.Machine) { m.Labels = map[string]string{"name": "other"} }
func updated(m *mcm.Machine) {
	m.Labels[mcm.LabelKeyNodeUpdateResult] = mcm.LabelValueNodeUpdateSuccessful
}
func aged(d time.Duration) machineChange {
	return func(m *mcm.Machine) { m.CreationTimestamp = at(-d) }
}
func onNode(m *mcm.Machine) { m.Labels[mcm.NodeLabelKey] = "node" }
func annotated(key, value string) machineChange {
	return func(m *mcm.Machine) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, value) }
}
func priority(text string) machineChange { return annotated(machineutils.MachinePriority, text) }
func marked(d time.Duration) machineChange {
	return annotated(machineutils.MarkedForDeletionTime, mark(d))
}
func preserve(value string) machineChange {
	return annotated(machineutils.PreserveMachineAnnotationKey, value)
}
func expires(d time.Duration) machineChange {
	return func(m *mcm.Machine) { t := at(d); m.Status.CurrentStatus.PreserveExpiryTime = &t }
}

// newView returns a view of one MachineSet, whose status is the one that is due.
func newView(s *mcm.MachineSet, machines ...*mcm.Machine) View {
	v := View{Now: noon, Settings: Settings{SafetyUp: 2, SafetyDown: 1}, Sets: []Set{{Object: s}}, Nodes: map[string]*corev1.Node{}}
	for _, m := range machines {
		if metav1.GetControllerOf(m) == nil {
			v.Orphans = append(v.Orphans, m)
		} else {
			v.Sets[0].Machines = append(v.Sets[0].Machines, m)
		}
	}
	return reported(v)
}

// reported returns a view in which no status is to be written.
func reported(v View) View {
	for _, c := range New(v).Statuses {
		for i := range v.Sets {
			if v.Sets[i].Object.UID == c.Set.UID {
				s := c.Set.DeepCopy()
				s.Status = c.After
				v.Sets[i].Object = s
			}
		}
	}
	return v
}

// text returns a plan in words, except for its statuses.
func text(p Plan) string {
	var words []string
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	for _, c := range p.Claims {
		say("%s %s", map[bool]string{true: "adopt", false: "release"}[c.Adopt], c.Machine.Name)
	}
	for _, c := range p.Sets {
		if was, is := len(c.Before.Finalizers), len(c.After.Finalizers); was != is {
			say("%s finalizer", map[bool]string{true: "add", false: "remove"}[is > was])
		}
	}
	for _, c := range p.Machines {
		say("change %s", c.Before.Name)
		value, is := c.After.Annotations[machineutils.PreserveMachineAnnotationKey]
		if was := c.Before.Annotations[machineutils.PreserveMachineAnnotationKey]; was != value {
			say("(preserve %s)", map[bool]string{true: strconv.Quote(value), false: "no more"}[is])
		}
	}
	for _, c := range p.Creations {
		say("create %d", c.Count)
	}
	for _, d := range p.Deletions {
		say("delete %s (%s)", d.Machine.Name, d.Reason)
	}
	return strings.Join(words, ", ")
}
