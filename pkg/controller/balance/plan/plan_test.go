// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	. "github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	. "github.com/evenkeel/evenkeel/test/builders/balance"
)

// texts are what annotations may hold, sense and nonsense.
var texts = map[string][]string{
	v1alpha1.BalanceAnnotation:         {"Off", "ScaleUp", "Continuous", "", "on"},
	v1alpha1.AppliedReplicasAnnotation: {"0", "1", "3", "2147483647", "-1", "many", ""},
	v1alpha1.ShareAnnotation:           {"0", "1", "2", "2147483647", "-1", "x"},
	v1alpha1.BoundsAnnotation:          {"0:0", "1:3", "1:3:2", "2:1", "0:2147483647:10%", "x", "1:3:cpu=4"},
	v1alpha1.GivenBoundsAnnotation:     {"1:3", "1:3:2", "x"},
	v1alpha1.OwnExcessAnnotation:       {"0", "2", "x"},
	v1alpha1.DeclinedMoveAnnotation:    {"1", "2", "x", ""},
	v1alpha1.MoveAnnotation: {
		`{"id":"1","to":{"a":1}}`, `{"id":"1","to":{"b":2,"c":1}}`, `{"id":"1","to":{"gone":1}}`, `{"id":"1","to":{"b":1},"machine":"a-0"}`,
		`{"id":"1","from":"a"}`, `{"id":"1","from":"a","reserve":1}`, `{"id":"1","from":"a","taken":1}`, `{"id":"2","from":"gone","taken":2}`, `{"id":"2","from":"b","reserve":2147483647}`, `{`, ``,
	},
}

func drawMember(t *rapid.T, name string) Member {
	m := NewMember(name, rapid.IntRange(0, 4).Draw(t, "replicas"))
	for _, key := range []string{
		v1alpha1.BalanceAnnotation, v1alpha1.AppliedReplicasAnnotation, v1alpha1.ShareAnnotation, v1alpha1.BoundsAnnotation,
		v1alpha1.GivenBoundsAnnotation, v1alpha1.OwnExcessAnnotation, v1alpha1.MoveAnnotation, v1alpha1.DeclinedMoveAnnotation,
	} {
		if rapid.Bool().Draw(t, "set") {
			Annotate(key, rapid.SampledFrom(texts[key]).Draw(t, key))(&m)
		}
	}
	if rapid.Bool().Draw(t, "pooled") {
		Labelled("p")(&m)
	}
	if rapid.Bool().Draw(t, "wants") {
		Excess(rapid.SampledFrom([]string{"0", "3", "10%", "cpu=9", "licence=1", "2147483647", "", "x"}).Draw(t, "excess"))(&m)
	}
	if rapid.Bool().Draw(t, "field") {
		ExcessField(int32(rapid.IntRange(-1, 3).Draw(t, "excess")))(&m)
	}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		unknownTemplate(&m)
	case 1:
		paused(&m)
	case 2:
		now := metav1.NewTime(Noon)
		m.Object.DeletionTimestamp = &now
	case 3:
		m.Rollout.Spread = true
	case 4:
		m.Object.Spec.Replicas = -1
	case 5:
		frozen(&m)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "machines") {
		x := NewMachine(fmt.Sprintf("%s-x%d", name, i), rapid.SampledFrom([]func(*Machine){inReserve, exhausted, leaving, phase(""), phase(mcm.MachineUnknown), phase(mcm.MachinePending)}).Draw(t, "machine"))
		m.Machines = append(m.Machines, x)
	}
	for i := range m.Machines {
		rapid.SampledFrom([]func(*Machine){func(*Machine) {}, isReady, isNotReady, readiness(corev1.ConditionTrue, time.Minute)}).Draw(t, "node")(&m.Machines[i])
	}
	return m
}

var _ = Describe("A plan, by law", func() {
	draw := func(t *rapid.T) View {
		var members []Member
		for i := range rapid.IntRange(0, 4).Draw(t, "members") {
			members = append(members, drawMember(t, string(rune('a'+i))))
		}
		v := view(members...)
		v.Garden.Known = rapid.Bool().Draw(t, "known")
		v.NodesKnown, v.UnreadyCount = rapid.Bool().Draw(t, "nodes known"), rapid.IntRange(0, 9).Draw(t, "unready")
		v.NodeCount = v.UnreadyCount + rapid.IntRange(0, 9).Draw(t, "ready")
		v.Garden.Hibernated = rapid.IntRange(0, 9).Draw(t, "asleep") == 0
		v.Garden.Here = rapid.Bool().Draw(t, "here")
		v.Garden.Forbidden, v.Garden.ClusterKnown = rapid.Bool().Draw(t, "forbidden"), rapid.Bool().Draw(t, "cluster known")
		v.Garden.ClusterAwaited = !v.Garden.ClusterKnown && rapid.Bool().Draw(t, "cluster awaited")
		whole := rapid.SampledFrom([]string{"", "3:9:4", "1:2:10%", "0:0", "x"}).Draw(t, "whole")
		for i := range members {
			if annotations := &members[i].Object.Spec.Template.Spec.NodeTemplateSpec.Annotations; whole != "" {
				if *annotations == nil {
					*annotations = map[string]string{}
				}
				(*annotations)[v1alpha1.BoundsAnnotation] = whole
			}
		}
		if rapid.Bool().Draw(t, "worker") {
			v.Garden.Bounds = map[string]v1alpha1.Bounds{"a": between(0, 2), "b": between(1, 1)}
		}
		v.Settings.Enabled = rapid.IntRange(0, 9).Draw(t, "enabled") > 0
		return v
	}

	It("10: there is one for every view, with something for every member, and none for what is being deleted", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := draw(t)
			p := New(v)
			if len(p.Outcomes) != len(v.Members) {
				t.Fatalf("%d outcomes for %d members", len(p.Outcomes), len(v.Members))
			}
			for i, o := range p.Outcomes {
				d := v.Members[i].Object
				if o.Name != d.Name || d.DeletionTimestamp != nil && !o.Write.IsEmpty() {
					t.Fatalf("%s: %+v", d.Name, o)
				}
				if o.Write.Replicas != nil && *o.Write.Replicas < 0 {
					t.Fatalf("%d replicas", *o.Write.Replicas)
				}
			}
		})
	})

	It("11: where a Gardener is, and no max is known, there is no reserve", func() {
		seen := 0
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := draw(t)
			v.Garden.Known, v.Garden.Here = true, true
			p := New(v)
			for i, m := range v.Members {
				bounds := p.Outcomes[i].Write.Annotations[v1alpha1.BoundsAnnotation]
				before := m.Object.Annotations[v1alpha1.BoundsAnnotation]
				_, invalid := v1alpha1.ParseBounds(before)
				if move, err := v1alpha1.ParseMove(m.Object.Annotations[v1alpha1.MoveAnnotation]); err == nil && move.Reserve > 0 {
					continue // its share is for the machine that replaces another one
				}
				if text, written := p.Outcomes[i].Write.Annotations[v1alpha1.ShareAnnotation]; written && text != "" && text != "0" &&
					m.Object.Labels[PoolLabel] != "" && bounds == "" && (before == "" || invalid != nil) && m.Object.Annotations[v1alpha1.ShareAnnotation] == "" {
					t.Fatalf("%s gets a share of %s without a max", m.Object.Name, text)
				} else if text == "0" {
					seen++
				}
			}
		})
		Expect(seen).To(BeNumerically(">", 0))
	})

	It("9 and 10: it comes to rest from wherever it starts, and leaves no move behind", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := draw(t)
			w := newWorld(v.Members...)
			w.Garden, w.Settings = v.Garden, v.Settings
			w.NodesKnown, w.NodeCount, w.UnreadyCount = v.NodesKnown, v.NodeCount, v.UnreadyCount
			for i := range w.Members {
				for _, x := range w.Members[i].Machines {
					x.Object.CreationTimestamp = metav1.NewTime(w.Now)
				}
			}
			w.pass(20 * time.Minute)
			for _, m := range w.Members {
				applied, err := v1alpha1.ParseAppliedReplicas(m.Object.Annotations[v1alpha1.AppliedReplicasAnnotation])
				if m.Object.DeletionTimestamp == nil && err == nil && applied != max(0, m.Object.Spec.Replicas) {
					t.Fatalf("%s is asked for %d and applies %d", m.Object.Name, m.Object.Spec.Replicas, applied)
				}
				move, err := v1alpha1.ParseMove(m.Object.Annotations[v1alpha1.MoveAnnotation])
				if m.Object.DeletionTimestamp == nil && err == nil && len(move.To) > 0 && (move.Machine == "" || !strings.HasPrefix(condition(New(w.View), m.Object.Name, ConditionBalanced), "False")) {
					t.Fatalf("%s still gives %s, and no condition says why", m.Object.Name, move)
				}
			}
		})
	})

	It("changes nothing in the view it is made of", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := draw(t)
			before := fmt.Sprintf("%+v", objects(v))
			New(v)
			if after := fmt.Sprintf("%+v", objects(v)); after != before {
				t.Fatalf("%s became %s", before, after)
			}
		})
	})

	It("depends on no machine where machines cause no sync", func() {
		seen := 0
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := draw(t)
			v.Starting = rapid.Bool().Draw(t, "starting")
			for i, m := range v.Members {
				v.Members[i].Settling = rapid.Bool().Draw(t, "settling")
				kept := rapid.SampledFrom([]string{v1alpha1.BoundsAnnotation, v1alpha1.OwnExcessAnnotation, v1alpha1.GivenBoundsAnnotation, v1alpha1.BalanceAnnotation}).Draw(t, "kept")
				maps.DeleteFunc(m.Object.Annotations, func(key, _ string) bool { return key != kept })
				if rapid.IntRange(0, 3).Draw(t, "of a worker") > 0 {
					m.Object.Spec.Template.Spec.NodeTemplateSpec.Annotations = nil
				}
			}
			if concerned(v) {
				return
			}
			seen++
			with := New(v)
			for i := range v.Members {
				v.Members[i] = Member{Object: v.Members[i].Object, NoSet: true}
			}
			without := New(v)
			// What fails is remembered for decisions that machines concern.
			with.Memory, without.Memory = Memory{}, Memory{}
			with.Again, without.Again = 0, 0
			if !reflect.DeepEqual(with, without) {
				t.Fatalf("%+v\nwithout machines:\n%+v", with, without)
			}
		})
		Expect(seen).To(BeNumerically(">", 10))
	})

	It("8: bounds of a user stay", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			v := draw(t)
			p := New(v)
			for i, o := range p.Outcomes {
				was := v.Members[i].Object.Annotations
				text, set := was[v1alpha1.BoundsAnnotation]
				if _, written := o.Write.Annotations[v1alpha1.BoundsAnnotation]; set && text != was[v1alpha1.GivenBoundsAnnotation] && written {
					t.Fatalf("%q was %q and became %q", o.Name, text, o.Write.Annotations[v1alpha1.BoundsAnnotation])
				}
			}
		})
	})
})

// concerned reports whether events of machines cause a sync.
func concerned(v View) bool {
	for _, m := range v.Members {
		if machines, _ := Concerns(m.Object, v.Settings); machines {
			return true
		}
	}
	return len(v.Memory.Failing)+len(v.Memory.Paused) > 0
}

func objects(v View) []any {
	var all []any
	for _, m := range v.Members {
		all = append(all, *m.Object)
		for _, x := range m.Machines {
			all = append(all, *x.Object)
		}
	}
	return all
}

var _ = It("9: the same view gives the same plan", func() {
	rapid.Check(GinkgoT(), func(t *rapid.T) {
		m := drawMember(t, "a")
		n := drawMember(t, "b")
		Expect(New(view(m, n))).To(Equal(New(view(m, n))))
	})
})

var _ = Describe("Work that users of the target cluster could make endless is bounded", func() {
	It("in the kinds of pods that wait: where there are too many, growth stays where it was asked for", func() {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		for i := range 5000 {
			w.Waiting = append(w.Waiting, pod(fmt.Sprint("p", i), "", app(fmt.Sprint("app", i))))
		}
		w.ask("b", 5)
		p := New(w.View)
		Expect(condition(p, "b", ConditionBalanced)).To(Equal("False PodsBound"))
		Expect(message(p, "b", ConditionBalanced)).To(Equal("more than 500 different pods wait, too many to check where each of them could run"))
		w.Waiting = w.Waiting[:501]
		Expect(writes(New(w.View))).NotTo(ContainSubstring("move"))
		w.Waiting = w.Waiting[:500]
		Expect(writes(New(w.View))).To(ContainSubstring("move"))
	})

	It("in the kinds of pods that wait, not in their number", func() {
		w := newWorld(zones(ScaleUp, 2, 2, 2)...)
		for i := range 5000 {
			w.Waiting = append(w.Waiting, pod(fmt.Sprint("p", i), "", app("same")))
		}
		w.ask("b", 5)
		Expect(writes(New(w.View))).To(ContainSubstring("move"))
	})

	It("in the kinds of pods that run: those after the first 501 do not count", func() {
		w := newWorld(zones(ScaleUp, 2, 2)...)
		for i := range 500 {
			w.put("a", 0, pod(fmt.Sprint("p", i), "a-0", app(fmt.Sprint("app", i)), InZone("a")))
		}
		w.put("a", 0, pod("free", "a-0"))
		w.ask("a", 4)
		Expect(writes(New(w.View))).To(ContainSubstring("move"))
		free := w.Members[0].Machines[0].Workload[500]
		w.Members[0].Machines[0].Workload[500] = pod("p500", "a-0", app("app500"), InZone("a"))
		w.put("a", 0, free)
		Expect(condition(New(w.View), "a", ConditionBalanced)).To(Equal("False PodsBound"))
	})

	It("in the machines that may go: only the hundred that come first count", func() {
		v := view(zones(Continuous, 101, 1)...)
		a := &v.Members[0]
		for i := range a.Machines {
			// The last by name is a-99.
			eviction := map[bool]string{true: "true", false: "false"}[i == 99]
			hold(&a.Machines[i], pod("x", a.Machines[i].Object.Name, safe(eviction)))
		}
		Expect(condition(New(v), "a", ConditionBalanced)).To(Equal("False NotSafeToEvict"))
		a.Machines, a.Object.Spec.Replicas = a.Machines[:100], 100
		Applied(100)(a)
		Expect(condition(New(v), "a", ConditionBalanced)).To(Equal("False Moving"))
	})

	It("in budgets: a namespace with too many of them lets no pod go", func() {
		v := view(zones(Continuous, 3, 1)...)
		for i := range v.Members[0].Machines {
			m := &v.Members[0].Machines[i]
			hold(m, pod("x", m.Object.Name))
			v.Nodes = append(v.Nodes, fit.Node{Object: node(m.Object.Name), Pods: m.Workload})
		}
		for i := range 5000 {
			v.Budgets = append(v.Budgets, budget(fmt.Sprint("q", i), 1))
		}
		Expect(condition(New(v), "a", ConditionBalanced)).To(Equal("False PodDisruptionBudget"))
		Expect(message(New(v), "a", ConditionBalanced)).To(Equal("PodDisruptionBudget: namespace default has more than 1000, too many to check"))
		v.Budgets = v.Budgets[:1001]
		Expect(condition(New(v), "a", ConditionBalanced)).To(Equal("False PodDisruptionBudget"))
		v.Budgets = v.Budgets[:1000]
		Expect(condition(New(v), "a", ConditionBalanced)).To(Equal("False Moving"))
	})
})

var _ = It("Growth is split over more MachineDeployments than fit into one annotation", func() {
	const many = 400
	var members []Member
	for i := range many {
		members = append(members, NewMember(fmt.Sprintf("%0200d", i), 2, ScaleUp, Applied(2)))
	}
	w := newWorld(members...)
	w.ask(members[0].Object.Name, 2+many)
	w.settle()
	for _, n := range Numbers(w.replicas()) {
		Expect(n).To(Equal(3))
	}
})

// BenchmarkNew plans for pools of three zones with five machines in each.
func BenchmarkNew(b *testing.B) {
	for _, n := range []int{3, 99, 999} {
		var members []Member
		for i := range n {
			pool := fmt.Sprintf("pool-%d", i/3)
			m := NewMember(fmt.Sprintf("md-%04d", i), 5, Continuous, Applied(5), Labelled(pool), Excess("3"), share(1), ready(1))
			nodeLabel("pool", pool)(&m)
			members = append(members, m)
		}
		v := view(members...)
		b.Run(fmt.Sprint("members=", n), func(b *testing.B) {
			for b.Loop() {
				New(v)
			}
		})
	}
}
