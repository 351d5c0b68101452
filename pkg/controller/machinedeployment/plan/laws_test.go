// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	machineinternal "github.com/gardener/machine-controller-manager/pkg/apis/machine"
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/validation"
	"github.com/gardener/machine-controller-manager/pkg/controller"
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/controller/machinedeployment/plan"
)

var phases = []mcm.MachinePhase{
	"", mcm.MachinePending, mcm.MachineAvailable, mcm.MachineRunning, mcm.MachineRunning, mcm.MachineUnknown, mcm.MachineFailed, mcm.MachineFailed,
	mcm.MachineCrashLoopBackOff, mcm.MachineTerminating, mcm.MachineInPlaceUpdating, mcm.MachineInPlaceUpdateFailed,
}

// sometimes draws one of some changes, or none.
func sometimes[T any](t *rapid.T, what string, changes ...T) []T {
	i := rapid.IntRange(0, 3*len(changes)).Draw(t, what)
	if i >= len(changes) {
		return nil
	}
	return changes[i : i+1]
}

// drawnSet is a MachineSet, usually a valid one.
func drawnSet(t *rapid.T, name string) *mcm.MachineSet {
	changes := []setChange{keeps(rapid.Int32Range(0, 3).Draw(t, "keeps"))}
	changes = append(changes, sometimes(t, "state", frozen, goes, updating)...)
	changes = append(changes, sometimes(t, "finalizer", without)...)
	changes = append(changes, sometimes(t, "scaled", scaled(0), scaled(-time.Minute))...)
	changes = append(changes, sometimes(t, "template", newLabels, newDrain, kind("Other"))...)
	if rapid.IntRange(0, 9).Draw(t, "invalid") == 0 {
		changes = append(changes, sometimes(t, "how", all, nothing, kind(""))...)
	}
	return newSet(name, rapid.Int32Range(0, 6).Draw(t, "replicas"), changes...)
}

func drawnMachine(t *rapid.T, s *mcm.MachineSet, name string) *mcm.Machine {
	changes := []machineChange{aged(time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Minute)}
	changes = append(changes, sometimes(t, "priority", priority("1"), priority("2"), priority("x"))...)
	changes = append(changes, sometimes(t, "mark", marked(0), marked(-2*time.Minute), marked(time.Minute))...)
	changes = append(changes, sometimes(t, "value", preserve("auto-preserved"), preserve("now"), preserve("false"), preserve("perhaps"))...)
	changes = append(changes, sometimes(t, "expiry", expires(time.Hour), expires(2*time.Hour), expires(-time.Hour))...)
	changes = append(changes, sometimes(t, "node", onNode)...)
	changes = append(changes, sometimes(t, "labels", relabeled, updated)...)
	changes = append(changes, sometimes(t, "leaving", leaving)...)
	changes = append(changes, sometimes(t, "orphan", orphan)...)
	m := newMachine(newSet(s.Name, 0), name, rapid.SampledFrom(phases).Draw(t, "phase"), changes...)
	if m.Status.CurrentStatus.Phase == mcm.MachineTerminating {
		leaving(m)
	}
	if rapid.IntRange(0, 3).Draw(t, "lastFailed") == 0 {
		lastFailed(m)
	}
	return m
}

// drawnView has one or two MachineSets with some machines.
func drawnView(t *rapid.T) View {
	v := View{Now: noon, Nodes: map[string]*corev1.Node{}}
	for i := range rapid.IntRange(1, 2).Draw(t, "sets") {
		s := Set{Object: drawnSet(t, fmt.Sprint("s", i))}
		for j := range rapid.IntRange(0, 8).Draw(t, "machines") {
			m := drawnMachine(t, s.Object, fmt.Sprintf("m%d-%d", i, j))
			if metav1.GetControllerOf(m) == nil {
				v.Orphans = append(v.Orphans, m)
			} else {
				s.Machines = append(s.Machines, m)
			}
		}
		v.Sets = append(v.Sets, s)
	}
	if rapid.Bool().Draw(t, "node") {
		v.Nodes["node"] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	}
	return v
}

// after is the view after a plan was carried out, and after the machine controller has done its part.
func after(v View, p Plan, round int) View {
	next := View{Now: v.Now, Nodes: v.Nodes}
	deleted, changed, released := map[types.UID]bool{}, map[types.UID]*mcm.Machine{}, map[types.UID]bool{}
	adopted := map[types.UID][]*mcm.Machine{}
	for _, d := range p.Deletions {
		deleted[d.Machine.UID] = true
	}
	for _, c := range p.Machines {
		changed[c.Before.UID] = c.After
	}
	for _, c := range p.Claims {
		released[c.Machine.UID] = true
		m := c.Machine.DeepCopy()
		if m.OwnerReferences = nil; c.Adopt {
			m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c.Set, mcm.SchemeGroupVersion.WithKind("MachineSet"))}
			adopted[c.Set.UID] = append(adopted[c.Set.UID], m)
		} else {
			next.Orphans = append(next.Orphans, m)
		}
	}
	for _, m := range v.Orphans {
		if !released[m.UID] && m.DeletionTimestamp == nil {
			next.Orphans = append(next.Orphans, m)
		}
	}
	for _, s := range v.Sets {
		one := Set{Object: setAfter(s.Object, p), Machines: adopted[s.Object.UID]}
		for _, m := range s.Machines {
			switch {
			case released[m.UID] || m.DeletionTimestamp != nil:
			case deleted[m.UID]:
				m = m.DeepCopy()
				leaving(m)
				m.Status.CurrentStatus.Phase = mcm.MachineTerminating
				one.Machines = append(one.Machines, m)
			case changed[m.UID] != nil:
				one.Machines = append(one.Machines, changed[m.UID])
			default:
				one.Machines = append(one.Machines, m)
			}
		}
		for _, c := range p.Creations {
			for i := range c.Count {
				if c.Set.UID == s.Object.UID {
					one.Machines = append(one.Machines, newMachine(s.Object, fmt.Sprintf("%s-%d-%d", s.Object.Name, round, i), ""))
				}
			}
		}
		if s.Object.DeletionTimestamp == nil || len(one.Object.Finalizers) > 0 {
			next.Sets = append(next.Sets, one)
		}
	}
	return next
}

func setAfter(s *mcm.MachineSet, p Plan) *mcm.MachineSet {
	s = s.DeepCopy()
	for _, c := range p.Sets {
		if c.Before.UID == s.UID {
			s = c.After.DeepCopy()
		}
	}
	for _, c := range p.Statuses {
		if c.Set.UID == s.UID {
			s.Status = c.After
		}
	}
	return s
}

func settled(s *mcm.MachineSet) bool {
	return s.DeletionTimestamp == nil && len(s.Labels) == 0 && s.Spec.Selector != nil && len(s.Spec.Selector.MatchLabels) > 0 && s.Spec.Template.Spec.Class.Kind != ""
}

var _ = Describe("Any plan", func() {
	It("comes to rest, where nothing is written and the machines are as many as replicas (laws 1, 2, 3, 4 and 6)", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			v := drawnView(t)
			for round := 0; round < 12; round++ {
				p := New(v)
				v = after(v, p, round)
			}
			if p := New(v); !p.IsEmpty() {
				t.Fatalf("never rests: %s %v", text(p), p.Statuses)
			}
			for _, s := range v.Sets {
				staying := 0
				for _, m := range s.Machines {
					if !metav1.IsControlledBy(m, s.Object) {
						t.Fatalf("%s is not one of %s", m.Name, s.Object.Name)
					}
					if m.Labels[mcm.LabelKeyNodeUpdateResult] == "" {
						staying++
					}
				}
				if settled(s.Object) && (len(s.Machines) < int(s.Object.Spec.Replicas) || staying > int(s.Object.Spec.Replicas)) {
					t.Fatalf("%d of %d machines", len(s.Machines), s.Object.Spec.Replicas)
				}
			}
		})
	})

	It("creates no more than is missing, deletes no more than is beyond replicas, and does only one of them (laws 2 and 3)", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			v := drawnView(t)
			p := New(v)
			for _, s := range v.Sets {
				created, surplus, others, present, staying := 0, 0, 0, 0, 0
				for _, c := range p.Creations {
					if c.Set.UID == s.Object.UID {
						created += c.Count
					}
				}
				for _, d := range p.Deletions {
					switch {
					case d.Set.UID != s.Object.UID:
					case d.Machine.DeletionTimestamp != nil:
						t.Fatalf("deletes %s again", d.Machine.Name)
					case d.Reason == Surplus:
						surplus++
					default:
						others++
					}
				}
				for _, m := range s.Machines {
					if m.Status.CurrentStatus.Phase != mcm.MachineTerminating && m.Labels["name"] == s.Object.Name {
						present++
						if m.DeletionTimestamp == nil {
							staying++
						}
					}
				}
				want := int(s.Object.Spec.Replicas)
				if created > 0 && (surplus+others > 0 || present+created != want) {
					t.Fatalf("creates %d where %d of %d are present, and deletes %d", created, present, want, surplus+others)
				}
				if surplus > 0 && staying-surplus < want {
					t.Fatalf("deletes %d of %d where %d are wanted", surplus, staying, want)
				}
			}
		})
	})

	It("deletes as surplus none before another that machine-controller-manager would delete first (law 3)", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			s := newSet("s", rapid.Int32Range(0, 6).Draw(t, "replicas"))
			var machines []*mcm.Machine
			for i := range rapid.IntRange(1, 8).Draw(t, "machines") {
				m := drawnMachine(t, s, fmt.Sprint("m", i))
				m.OwnerReferences, m.Labels, m.DeletionTimestamp = newMachine(s, "a", "").OwnerReferences, map[string]string{"name": "s"}, nil
				if m.Status.CurrentStatus.Phase == mcm.MachineTerminating {
					m.Status.CurrentStatus.Phase = mcm.MachineRunning
				}
				if expiry := m.Status.CurrentStatus.PreserveExpiryTime; expiry != nil { // its order has a clock of its own
					expiry.Time = time.Now().Add(expiry.Sub(noon))
				}
				machines = append(machines, m)
			}
			v := newView(s, machines...)
			v.Now = time.Now()
			chosen := map[types.UID]bool{}
			for _, d := range New(v).Deletions {
				chosen[d.Machine.UID] = d.Reason == Surplus
			}
			for _, goes := range machines {
				for _, stays := range machines {
					if chosen[goes.UID] && !chosen[stays.UID] && (controller.ActiveMachines{stays, goes}).Less(0, 1) {
						t.Fatalf("%s goes, and %s stays", goes.Name, stays.Name)
					}
				}
			}
		})
	})

	It("does not depend on the order of objects, and changes none of them", func() {
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			v := drawnView(t)
			var was []*mcm.Machine
			for _, s := range v.Sets {
				for _, m := range s.Machines {
					was = append(was, m.DeepCopy())
				}
			}
			p := New(v)
			for _, s := range v.Sets {
				if now := s.Machines; !equality.Semantic.DeepEqual(now, was[:len(now)]) {
					t.Fatalf("machines of %s were changed", s.Object.Name)
				}
				was = was[len(s.Machines):]
			}
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
			v.Sets = slices.Clone(v.Sets)
			random.Shuffle(len(v.Sets), func(i, j int) { v.Sets[i], v.Sets[j] = v.Sets[j], v.Sets[i] })
			for i := range v.Sets {
				machines := v.Sets[i].Machines
				random.Shuffle(len(machines), func(i, j int) { machines[i], machines[j] = machines[j], machines[i] })
			}
			random.Shuffle(len(v.Orphans), func(i, j int) { v.Orphans[i], v.Orphans[j] = v.Orphans[j], v.Orphans[i] })
			if again := New(v); text(p) != text(again) || !equality.Semantic.DeepEqual(p.Statuses, again.Statuses) {
				t.Fatalf("%s\n%s", text(p), text(again))
			}
		})
	})

	It("rejects what machine-controller-manager rejects (law 5)", func() {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{machineinternal.AddToScheme, mcm.AddToScheme} {
			if err := add(scheme); err != nil {
				Fail(err.Error())
			}
		}
		rapid.Check(GinkgoTB(), func(t *rapid.T) {
			word := rapid.SampledFrom([]string{"", "a", "b"})
			s := newSet("s", rapid.Int32Range(-1, 2).Draw(t, "replicas"), kind(word.Draw(t, "kind")))
			s.Spec.Template.Spec.Class.Name = word.Draw(t, "class")
			s.Spec.Template.Labels["name"] = rapid.SampledFrom([]string{"s", "t"}).Draw(t, "label")
			internal := &machineinternal.MachineSet{}
			if err := scheme.Convert(s, internal, nil); err != nil {
				t.Fatal(err)
			}
			rejected := len(validation.ValidateMachineSet(internal)) > 0
			p := New(View{Now: noon, Sets: []Set{{Object: s}}})
			if invalid := len(p.Statuses) > 0 && len(p.Statuses[0].Events) > 0; invalid != rejected {
				t.Fatalf("invalid: %v, rejected: %v", invalid, rejected)
			}
		})
	})
})
