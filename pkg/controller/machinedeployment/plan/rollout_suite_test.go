// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

const (
	hashLabel    = "machine-template-hash"
	desired      = "deployment.kubernetes.io/desired-replicas"
	maximum      = "deployment.kubernetes.io/max-replicas"
	revision     = "deployment.kubernetes.io/revision"
	history      = "deployment.kubernetes.io/revision-history"
	scaleDown    = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	scaleDownMCM = "cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm"
)

// deploymentChange changes a MachineDeployment.
type deploymentChange = func(*api.MachineDeployment)

// newDeployment returns a MachineDeployment with our finalizer, which rolls one machine after the other.
func newDeployment(replicas int32, change ...deploymentChange) *api.MachineDeployment {
	d := &api.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "d", UID: "uid-d", ResourceVersion: "1", Generation: 2, Finalizers: []string{Finalizer}, CreationTimestamp: at(-5 * time.Hour),
	}}
	d.Spec.Replicas = replicas
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "d"}}
	d.Spec.Template.Labels = map[string]string{"name": "d"}
	d.Spec.Template.Spec.Class = mcm.ClassSpec{Kind: "MachineClass", Name: "new"}
	rolls("1", "0")(d)
	for _, c := range change {
		c(d)
	}
	return d
}

func rolls(surge, unavailable string) deploymentChange {
	return func(d *api.MachineDeployment) {
		s, u := intstr.Parse(surge), intstr.Parse(unavailable)
		d.Spec.Strategy = mcm.MachineDeploymentStrategy{
			Type:          mcm.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: &mcm.RollingUpdateMachineDeployment{UpdateConfiguration: mcm.UpdateConfiguration{MaxSurge: &s, MaxUnavailable: &u}},
		}
	}
}

func recreates(d *api.MachineDeployment) {
	d.Spec.Strategy = mcm.MachineDeploymentStrategy{Type: mcm.RecreateMachineDeploymentStrategyType}
}

func paused(d *api.MachineDeployment) { d.Spec.Paused = true }
func ends(d *api.MachineDeployment)   { d.DeletionTimestamp = deleted(noon) }
func keepsSets(n int32) deploymentChange {
	return func(d *api.MachineDeployment) { d.Spec.RevisionHistoryLimit = &n }
}

// completed gives a MachineDeployment the status of one that has all machines.
func completed(d *api.MachineDeployment) {
	r := d.Spec.Replicas
	d.Status.StockMachineDeploymentStatus = mcm.MachineDeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: r, UpdatedReplicas: r, ReadyReplicas: r, AvailableReplicas: r, Conditions: d.Status.Conditions,
	}
}

// part is a MachineSet of a MachineDeployment, with a letter for each of its machines: r is running, a available, p pending,
// f failed, u unknown, t terminating, l leaving but not terminating yet, and n has no phase.
type part struct {
	name     string
	replicas int32
	machines string
	change   []setChange
}

func of(name string, replicas int32, machines string, change ...setChange) part {
	return part{name, replicas, machines, change}
}

var letters = map[rune]mcm.MachinePhase{
	'r': mcm.MachineRunning, 'a': mcm.MachineAvailable, 'p': mcm.MachinePending, 'f': mcm.MachineFailed, 'u': mcm.MachineUnknown, 't': mcm.MachineTerminating, 'l': mcm.MachineRunning, 'n': "",
}

// object returns the MachineSet, as it is when the rollout to it or from it goes on. The class of a set has its
// name, so the one that is called new has the template of the MachineDeployment.
func (p part) object(d *api.MachineDeployment, age int) *mcm.MachineSet {
	return newSet(p.name, p.replicas, append([]setChange{func(s *mcm.MachineSet) {
		s.CreationTimestamp = at(time.Duration(age-60) * time.Minute)
		s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, mcm.SchemeGroupVersion.WithKind("MachineDeployment"))}
		surge, _ := Bounds(d)
		s.Annotations = map[string]string{desired: fmt.Sprint(d.Spec.Replicas), maximum: fmt.Sprint(d.Spec.Replicas + surge), revision: fmt.Sprint(age + 1)}
		s.Labels = map[string]string{"name": "d", hashLabel: p.name}
		s.Spec.Template = *d.Spec.Template.DeepCopy()
		s.Spec.Template.Labels = map[string]string{"name": "d", hashLabel: p.name}
		s.Spec.Selector = &metav1.LabelSelector{MatchLabels: s.Spec.Template.Labels}
		s.Spec.Template.Spec.Class.Name = p.name
	}}, p.change...)...)
}

// viewOf returns a view of a MachineDeployment with its MachineSets, the oldest first, whose statuses are due.
func viewOf(d *api.MachineDeployment, parts ...part) View {
	v := View{Now: noon, Deployment: d, Nodes: map[string]*corev1.Node{}, Settings: Settings{ProtectInRollout: true}}
	for age, p := range parts {
		s := p.object(d, age)
		if p.name == "new" {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, revision, s.Annotations[revision])
		}
		one := Set{Object: s}
		for i, letter := range p.machines {
			name := fmt.Sprintf("%s-%d", p.name, i)
			m := newMachine(s, name, letters[letter], aged(time.Duration(60-i)*time.Minute), func(m *mcm.Machine) {
				m.Labels = map[string]string{"name": "d", hashLabel: p.name, mcm.NodeLabelKey: "node-" + name}
			})
			if strings.ContainsRune("tl", letter) {
				leaving(m)
			}
			if strings.ContainsRune("raufl", letter) {
				v.Nodes["node-"+name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + name}}
			}
			one.Machines = append(one.Machines, m)
		}
		if metav1.GetControllerOf(s) == nil {
			v.OrphanSets = append(v.OrphanSets, s)
		} else {
			v.Sets = append(v.Sets, one)
		}
	}
	return v
}

// steps returns what a plan does to a MachineDeployment, its MachineSets and its Nodes, in words.
func steps(p Plan) string {
	var words []string
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	for _, c := range p.SetClaims {
		say("%s %s", map[bool]string{true: "adopt", false: "release"}[c.Adopt], c.Set.Name)
	}
	if c := p.Deployment; c != nil {
		if was, is := len(c.Before.Finalizers), len(c.After.Finalizers); was != is {
			say("%s finalizer", map[bool]string{true: "add", false: "remove"}[is > was])
		}
		if is := c.After.Annotations[revision]; is != c.Before.Annotations[revision] {
			say("revision %s", is)
		}
	}
	for _, s := range p.NewSets {
		say("new set of %d", s.Spec.Replicas)
	}
	for _, c := range p.Sets {
		words = append(words, setSteps(c)...)
	}
	for _, c := range p.Machines {
		say("change %s", c.Before.Name)
	}
	for _, c := range p.Creations {
		say("%s creates %d", c.Set.Name, c.Count)
	}
	for _, d := range p.Deletions {
		say("delete %s", d.Machine.Name)
	}
	for _, s := range p.SetDeletions {
		say("delete set %s", s.Name)
	}
	for _, c := range p.Nodes {
		words = append(words, nodeSteps(c)...)
	}
	return strings.Join(words, ", ")
}

func setSteps(c SetChange) (words []string) {
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	was, is := c.Before, c.After
	if was.Spec.Replicas != is.Spec.Replicas {
		say("%s %d -> %d", was.Name, was.Spec.Replicas, is.Spec.Replicas)
	}
	for _, key := range []string{desired, maximum, revision, history} {
		if was.Annotations[key] != is.Annotations[key] && (key != desired && key != maximum || was.Spec.Replicas == is.Spec.Replicas) {
			say("%s %s %s", was.Name, strings.TrimPrefix(key, "deployment.kubernetes.io/"), is.Annotations[key])
		}
	}
	if _, had := was.Annotations[PreferNoSchedule]; had != (is.Annotations[PreferNoSchedule] == "True") {
		say("%s %s", was.Name, map[bool]string{true: "is unmarked", false: "is marked"}[had])
	}
	if len(was.Finalizers) != len(is.Finalizers) {
		say("%s finalizer", was.Name)
	}
	return words
}

func nodeSteps(c NodeChange) (words []string) {
	name := strings.TrimPrefix(c.Before.Name, "node-")
	if was, is := len(c.Before.Spec.Taints), len(c.After.Spec.Taints); was != is {
		words = append(words, map[bool]string{true: "avoid ", false: "take again "}[is > was]+name)
	}
	if was, is := len(c.Before.Annotations), len(c.After.Annotations); was != is {
		words = append(words, map[bool]string{true: "protect ", false: "release "}[is > was]+name)
	}
	return words
}

// moves are the steps of a plan without those that mark Nodes and MachineSets.
func moves(p Plan) string {
	var words []string
	for _, word := range strings.Split(steps(p), ", ") {
		if !strings.Contains(word, "marked") && !strings.Contains(word, "avoid") && !strings.Contains(word, "protect") {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}

// conditionOf returns "status reason" of a condition in the status that a plan gives a MachineDeployment; empty
// if it has none.
func conditionOf(p Plan, of mcm.MachineDeploymentConditionType) string {
	if p.DeploymentStatus == nil {
		return ""
	}
	for _, c := range p.DeploymentStatus.After.Conditions {
		if c.Type == of {
			return fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
	}
	return ""
}

// reportOf returns the status that a MachineDeployment has after a plan.
func reportOf(v View) mcm.MachineDeploymentStatus {
	p := New(v)
	if p.DeploymentStatus == nil {
		return v.Deployment.Status.StockMachineDeploymentStatus
	}
	return p.DeploymentStatus.After.StockMachineDeploymentStatus
}

// carriedOut returns the view after a plan: with what it writes, without machines that are leaving.
func carriedOut(v View, p Plan) View {
	next := v
	next.Sets, next.Nodes = nil, map[string]*corev1.Node{}
	d := v.Deployment.DeepCopy()
	if p.Deployment != nil {
		d = p.Deployment.After.DeepCopy()
	}
	if d.Status = v.Deployment.Status; p.DeploymentStatus != nil {
		d.Status = p.DeploymentStatus.After
	}
	next.Deployment = d
	for name, node := range v.Nodes {
		next.Nodes[name] = node
	}
	for _, c := range p.Nodes {
		next.Nodes[c.Before.Name] = c.After
	}
	claimed := map[types.UID]bool{}
	for _, c := range p.SetClaims {
		if claimed[c.Set.UID] = true; c.Adopt {
			s := c.Set.DeepCopy()
			s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, mcm.SchemeGroupVersion.WithKind("MachineDeployment"))}
			next.Sets = append(next.Sets, Set{Object: s})
		}
	}
	next.OrphanSets = slices.DeleteFunc(slices.Clone(v.OrphanSets), func(s *mcm.MachineSet) bool { return claimed[s.UID] })
	for _, s := range v.Sets {
		if after, stays := setCarriedOut(s, p); stays && !claimed[s.Object.UID] {
			next.Sets = append(next.Sets, after)
		}
	}
	for i, s := range p.NewSets {
		s = s.DeepCopy()
		s.UID, s.ResourceVersion, s.CreationTimestamp = types.UID(fmt.Sprintf("uid-%s-%d", s.Name, i)), "1", metav1.NewTime(v.Now)
		next.Sets = append(next.Sets, Set{s, created(s, int(s.Spec.Replicas))})
	}
	return next
}

func setCarriedOut(s Set, p Plan) (Set, bool) {
	after := Set{Object: setAfter(s.Object, p)}
	for _, gone := range p.SetDeletions {
		if gone.UID == s.Object.UID {
			goes(after.Object)
		}
	}
	changed, gone := map[types.UID]*mcm.Machine{}, map[types.UID]bool{}
	for _, c := range p.Machines {
		changed[c.Before.UID] = c.After
	}
	for _, d := range p.Deletions {
		gone[d.Machine.UID] = true
	}
	for _, m := range s.Machines {
		if m.DeletionTimestamp != nil {
			continue
		}
		m = m.DeepCopy()
		if c := changed[m.UID]; c != nil {
			m = c.DeepCopy()
		}
		if gone[m.UID] {
			leaving(m)
			m.Status.CurrentStatus.Phase = mcm.MachineTerminating
		}
		after.Machines = append(after.Machines, m)
	}
	for _, c := range p.Creations {
		if c.Set.UID == s.Object.UID {
			after.Machines = append(after.Machines, created(after.Object, c.Count)...)
		}
	}
	return after, after.Object.DeletionTimestamp == nil || len(after.Object.Finalizers) > 0
}

// births are how many machines were created so far.
var births int

// created returns new machines of a MachineSet.
func created(s *mcm.MachineSet, n int) (machines []*mcm.Machine) {
	for range n {
		births++
		machines = append(machines, newMachine(s, fmt.Sprintf("%s-new-%06d", s.Name, births), "", func(m *mcm.Machine) {
			m.Labels = s.Spec.Template.Labels
			m.CreationTimestamp = at(0)
		}))
	}
	return machines
}

// sketch returns the MachineSets of a view with the letters of their machines.
func sketch(v View) string {
	var words []string
	for _, s := range v.Sets {
		phases := ""
		for _, m := range s.Machines {
			for letter, phase := range letters {
				if phase == m.Status.CurrentStatus.Phase && letter != 'l' {
					phases += string(letter)
				}
			}
		}
		words = append(words, fmt.Sprintf("%s %d (%s)", s.Object.Name, s.Object.Spec.Replicas, phases))
	}
	return strings.Join(words, ", ")
}

// booted returns a view in which all machines that can run do.
func booted(v View) View {
	next := v
	next.Sets = nil
	for _, s := range v.Sets {
		one := Set{Object: s.Object}
		for _, m := range s.Machines {
			if m.DeletionTimestamp == nil {
				m = m.DeepCopy()
				m.Status.CurrentStatus.Phase = mcm.MachineRunning
			}
			one.Machines = append(one.Machines, m)
		}
		next.Sets = append(next.Sets, one)
	}
	return next
}

// rest carries out plans until nothing is to be done.
func rest(v View) View {
	for range 60 {
		p := New(v)
		if p.IsEmpty() {
			return v
		}
		v = carriedOut(v, p)
	}
	Expect(steps(New(v))).To(BeEmpty(), "it never rests")
	return v
}

// isServing reports whether a machine is available and stays.
func isServing(m *mcm.Machine) bool {
	return m.DeletionTimestamp == nil && pool.Ready(m.Status.CurrentStatus.Phase)
}
