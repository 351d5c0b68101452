// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// spares is a MachineDeployment with a reserve, and what is remembered of it from plan to plan.
type spares struct {
	View
	settings machinetaint.Settings
	memory   machinetaint.Memory
	pods     map[string][]*corev1.Pod
	change   []func(*machinetaint.View)
}

// Sets implements [pool.Source].
func (s *spares) Sets(types.UID) []*mcm.MachineSet { return setsOf(s.View) }

// Machines implements [pool.Source].
func (s *spares) Machines(set types.UID) []*mcm.Machine {
	for _, one := range s.View.Sets {
		if one.Object.UID == set {
			return one.Machines
		}
	}
	return nil
}

// Class implements [pool.Source].
func (s *spares) Class(string, string) *mcm.MachineClass { return nil }

// Node implements [pool.Source].
func (s *spares) Node(name string) *corev1.Node { return s.Nodes[name] }

// Pods implements [pool.Source].
func (s *spares) Pods(node string) []*corev1.Pod { return s.pods[node] }

// Devices implements [pool.Source].
func (s *spares) Devices(string, string) (int, string) { return 0, "" }

// view returns the view with all that decides about the reserve.
func (s *spares) view() View {
	d := s.View.Deployment
	one := machinetaint.View{Now: s.Now, Settings: s.settings, Deployment: d, Memory: s.memory}
	snapshot := pool.Read(d, s, s.Now)
	for _, m := range snapshot.Machines {
		one.Machines = append(one.Machines, machinetaint.Machine{Machine: m})
	}
	for _, set := range snapshot.Sets {
		one.SetReplicas += int(set.Spec.Replicas)
	}
	one.CurrentSet, one.Rollout, one.Allocatable = snapshot.Rollout.Set, snapshot.Rollout.Replacing, snapshot.Allocatable
	one.Evictions = &machinetaint.Evictions{Pods: map[string][]*corev1.Pod{}}
	for _, m := range one.Machines {
		if m.Node != nil {
			one.Evictions.Pods[m.Object.Name] = s.pods[m.Node.Name]
		}
	}
	for _, change := range s.change {
		change(&one)
	}
	v := s.View
	v.Reserve = &one
	return v
}

// decide returns the plan.
func (s *spares) decide() Plan { return New(s.view()) }

// carryOut carries out a plan, except for pods.
func (s *spares) carryOut(p Plan) {
	s.View = carriedOut(s.View, p)
	if p.Memory != nil {
		s.memory = *p.Memory
	}
	for i, set := range s.View.Sets {
		for _, c := range p.Creations {
			if c.Set.UID != set.Object.UID {
				continue
			}
			added := s.View.Sets[i].Machines[len(set.Machines)-c.Count:]
			for j := range added {
				added[j].CreationTimestamp = metav1.NewTime(s.Now)
				if j >= c.Count-c.Reserve {
					added[j] = pool.Mark(added[j], c.Mark)
				}
			}
		}
	}
	for i, set := range s.View.Sets {
		if slices.ContainsFunc(p.NewSets, func(one *mcm.MachineSet) bool { return one.Name == set.Object.Name }) {
			s.View.Sets[i].Machines = nil // the next plan decides about their roles
		}
	}
}

// boot makes a machine ready, whose Node is as its template says.
func (s *spares) boot(m *mcm.Machine) *mcm.Machine {
	m = m.DeepCopy()
	m.Spec.ProviderID, m.Status.CurrentStatus.Phase = "x:///"+m.Name, mcm.MachineRunning
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + m.Name, Annotations: maps.Clone(m.Spec.NodeTemplateSpec.Annotations)}}
	node.Spec.ProviderID, node.Spec.Taints = m.Spec.ProviderID, slices.Clone(m.Spec.NodeTemplateSpec.Spec.Taints)
	m.Labels = maps.Clone(m.Labels)
	m.Labels[mcm.NodeLabelKey] = node.Name
	s.Nodes[node.Name] = node
	return m
}

// each replaces each machine by what change makes of it; nil removes it.
func (s *spares) each(change func(*mcm.Machine) *mcm.Machine) {
	s.View.Sets = slices.Clone(s.View.Sets)
	for i, set := range s.View.Sets {
		var all []*mcm.Machine
		for _, m := range set.Machines {
			if m = change(m); m != nil {
				all = append(all, m)
			}
		}
		s.View.Sets[i].Machines = all
	}
}

// edit changes the MachineDeployment.
func (s *spares) edit(change ...deploymentChange) {
	d := s.View.Deployment.DeepCopy()
	d.Generation++
	for _, c := range change {
		c(d)
	}
	s.View.Deployment = d
}

// occupy binds pods to a Node.
func (s *spares) occupy(node string, pods ...*corev1.Pod) {
	for _, p := range pods {
		p.Spec.NodeName = node
	}
	s.pods[node] = append(s.pods[node], pods...)
}

func (s *spares) machine(name string) *mcm.Machine {
	for _, m := range machinesOf(s.View) {
		if m.Name == name {
			return m
		}
	}
	panic("no machine " + name)
}

// tolerant is a pod that may run in the reserve.
func tolerant(p *corev1.Pod) {
	p.Spec.Tolerations = []corev1.Toleration{{Key: api.ReserveTaintKey, Operator: corev1.TolerationOpExists}}
}

// evictable is a pod that is created anew elsewhere.
func evictable(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "work", UID: "1", Controller: new(true)}}
}

// plainSettings keep workload off the reserve by one taint.
var plainSettings = machinetaint.Settings{Effects: []corev1.TaintEffect{corev1.TaintEffectNoSchedule}, SurplusPatience: 10 * time.Minute, BootPatience: 15 * time.Minute}

// withSpares returns a MachineDeployment with an excess, which is applied, and its MachineSets. Their letters are as
// elsewhere, and capitals are in reserve. Besides, e is running and empty, c cannot be created, O is in reserve and has
// an open Node, and B is in reserve and runs a pod that tolerates that.
func withSpares(x int32, d *api.MachineDeployment, parts ...part) *spares {
	asks(x)(d)
	d.Annotations[api.AppliedExcessAnnotation] = fmt.Sprint(x)
	letters := map[string]string{}
	for i, p := range parts {
		letters[p.name] = p.machines
		parts[i].machines = strings.Map(func(r rune) rune {
			switch r = unicode.ToLower(r); r {
			case 'e', 'o', 'b':
				return 'r'
			case 'c':
				return 'p'
			}
			return r
		}, p.machines)
	}
	s := &spares{View: viewOf(d, parts...), settings: plainSettings, pods: map[string][]*corev1.Pod{}}
	for i, set := range s.View.Sets {
		surge, _ := Bounds(d)
		for key, value := range map[string]int32{desired: d.Spec.Replicas + x, maximum: d.Spec.Replicas + x + surge} {
			if set.Object.Annotations[key] == fmt.Sprint(value-x) {
				set.Object.Annotations[key] = fmt.Sprint(value)
			}
		}
		for j, letter := range letters[set.Object.Name] {
			aged(time.Hour - time.Duration(10*i+j)*time.Minute)(set.Machines[j])
			s.View.Sets[i].Machines[j] = s.as(set.Machines[j], letter)
		}
	}
	return s
}

// asks sets the excess.
func asks(x int32) deploymentChange {
	return func(d *api.MachineDeployment) {
		d.Spec.ExcessReplicas, d.Spec.ReserveWitness = &x, x > 0
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, api.WantedExcessAnnotation, fmt.Sprint(x))
		if x == 0 {
			delete(d.Annotations, api.WantedExcessAnnotation)
		}
	}
}

// as gives a machine what its letter says.
func (s *spares) as(m *mcm.Machine, letter rune) *mcm.Machine {
	name := m.Labels[mcm.NodeLabelKey]
	if !strings.ContainsRune("nNcC", letter) {
		m.Spec.ProviderID = "x:///" + m.Name
	}
	if strings.ContainsRune("pPnN", letter) {
		aged(time.Minute)(m)
	}
	if unicode.ToLower(letter) == 'c' {
		m.Status.CurrentStatus.Phase = mcm.MachineCrashLoopBackOff
		m.Status.LastOperation = mcm.LastOperation{Type: mcm.MachineOperationCreate, State: mcm.MachineStateFailed, ErrorCode: "Internal"}
	}
	if unicode.IsUpper(letter) {
		m = pool.Mark(m, s.settings.NewMark(m.CreationTimestamp.Time))
	}
	if node := s.Nodes[name]; node != nil {
		node.Spec.ProviderID = m.Spec.ProviderID
		if node.Annotations = maps.Clone(m.Spec.NodeTemplateSpec.Annotations); letter != 'O' {
			node.Spec.Taints = slices.Clone(m.Spec.NodeTemplateSpec.Spec.Taints)
		}
	}
	switch letter {
	case 'r':
		s.occupy(name, fixture.Pod("on-"+m.Name, evictable))
	case 'B':
		s.occupy(name, fixture.Pod("on-"+m.Name, evictable, tolerant))
	}
	return m
}

// unseen hides the Node of a machine.
func unseen(machine string) func(*spares) {
	return func(s *spares) { delete(s.Nodes, "node-"+machine) }
}

// keptSized makes a MachineSet one whose size was decided for so many machines in all.
func keptSized(n int32) setChange {
	return func(s *mcm.MachineSet) {
		s.Annotations[desired], s.Annotations[maximum] = fmt.Sprint(n), fmt.Sprint(n+1)
	}
}

// tale returns what a plan does to MachineSets and machines, in words.
func tale(p Plan) string {
	var words []string
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	for _, s := range p.NewSets {
		say("new set of %d", s.Spec.Replicas)
	}
	for _, c := range p.Sets {
		if was, is := c.Before.Spec.Replicas, c.After.Spec.Replicas; was != is {
			say("%s %d -> %d", c.Before.Name, was, is)
		}
	}
	for _, c := range p.Machines {
		switch {
		case pool.Marked(c.Before) && !pool.Marked(c.After):
			say("%s leaves", c.Before.Name)
		case !pool.Marked(c.Before) && pool.Marked(c.After):
			say("%s enters", c.Before.Name)
		}
	}
	for _, c := range p.Creations {
		say("%s creates %d, %d in reserve", c.Set.Name, c.Count, c.Reserve)
	}
	for _, d := range p.Deletions {
		say("delete %s (%s)", d.Machine.Name, d.Reason)
	}
	return strings.Join(words, ", ")
}
