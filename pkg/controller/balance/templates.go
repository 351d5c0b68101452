// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"iter"
	"maps"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// templates remembers the properties of MachineDeployments' machines.
type templates struct {
	began time.Time
	// held is when a Machine was first seen to have lost the reserve mark, by name; zero while it has
	// the mark.
	held map[string]time.Time
	// last is the last known template from a Node of a MachineDeployment, with the class of its
	// machines.
	last map[string]remembered
}

type remembered struct {
	class    string
	template similar.Template
}

func newTemplates(now time.Time) templates {
	return templates{began: now, held: map[string]time.Time{}, last: map[string]remembered{}}
}

// setTemplates sets for each member what a fresh machine offers, and its Node.
func (t *templates) setTemplates(members []plan.Member, source pool.Source, now time.Time, o similar.Options) {
	var known []similar.Template
	var at []int
	for i, m := range members {
		candidates := t.candidates(m)
		template, ok := t.templateOf(m, candidates, source, now)
		members[i].Settling = (!ok || template.Estimated) && slices.ContainsFunc(candidates, func(c similar.Candidate) bool { return c.Fit(now.Add(similar.Settling)) })
		if ok {
			template.Taints = m.Object.Spec.Template.Spec.NodeTemplateSpec.Spec.Taints
			known, at = append(known, template), append(at, i)
		}
	}
	for i, template := range similar.Completed(known, o) {
		m := &members[at[i]]
		m.Template = &known[i]
		m.Fresh = freshNode(*m, template)
	}
}

// noteReserve remembers which Machines have the reserve mark or had it, and forgets those that no longer
// exist.
func (t *templates) noteReserve(machines iter.Seq[*mcm.Machine], now time.Time) {
	held := map[string]time.Time{}
	for m := range machines {
		at, known := t.held[m.Name]
		switch {
		case pool.Marked(m):
			held[m.Name] = time.Time{}
		case known && at.IsZero():
			held[m.Name] = now
		case known:
			held[m.Name] = at
		}
	}
	t.held = held
}

// forgetOthers forgets the templates of MachineDeployments that are not among the members.
func (t *templates) forgetOthers(members []plan.Member) {
	last := map[string]remembered{}
	for _, m := range members {
		if r, ok := t.last[m.Object.Name]; ok {
			last[m.Object.Name] = r
		}
	}
	t.last = last
}

// templateOf returns the template from a Node, otherwise the last known one of the same class,
// otherwise from the class.
func (t *templates) templateOf(m plan.Member, candidates []similar.Candidate, source pool.Source, now time.Time) (similar.Template, bool) {
	name, class := m.Object.Name, m.Object.Spec.Template.Spec.Class.Name
	if template, ok := similar.Choose(name, candidates, source.Pods, now); ok {
		t.last[name] = remembered{class, template}
		return template, true
	}
	if r, ok := t.last[name]; ok && r.class == class {
		return r.template, true
	}
	c := source.Class(m.Object.Namespace, class)
	if c == nil {
		return similar.Template{}, false
	}
	return similar.FromClass(name, c.NodeTemplate, m.Object.Spec.Template.Spec.NodeTemplateSpec.Labels)
}

// candidates returns the Nodes of the MachineSet whose machines stay the longest: others may have
// another template.
func (t *templates) candidates(m plan.Member) []similar.Candidate {
	var all []similar.Candidate
	for _, machine := range m.Machines {
		if machine.Node == nil || machine.Set != m.Rollout.Set {
			continue
		}
		c := similar.Candidate{Node: machine.Node, Reserve: machine.Marked(), Released: t.held[machine.Object.Name]}
		if machine.Object.CreationTimestamp.Time.Before(t.began) && c.Released.Before(t.began) {
			c.Released = t.began // it may have been in reserve until just before we came
		}
		all = append(all, c)
	}
	return all
}

// sameOffer reports whether two versions of a Node show the same of what a machine offers, once they
// may show it. One of them may be nil.
func sameOffer(a, b *corev1.Node) bool {
	shows := func(n *corev1.Node) bool { return n != nil && (similar.Candidate{Node: n}).Fit(settled) }
	return shows(a) == shows(b) && (!shows(a) || maps.Equal(a.Labels, b.Labels) &&
		equality.Semantic.DeepEqual(a.Status.Allocatable, b.Status.Allocatable) && equality.Semantic.DeepEqual(a.Status.Capacity, b.Status.Capacity))
}

// settled is later than any time of a Node.
var settled = time.Unix(1<<40, 0)

// freshNode returns the Node of a machine that is created now: what is free for pods there, and the
// taints of the pool.
func freshNode(m plan.Member, t similar.Template) *corev1.Node {
	name := "fresh." + m.Object.Name
	own := m.Object.Spec.Template.Spec.NodeTemplateSpec
	labels := maps.Clone(t.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, own.Labels)
	labels[corev1.LabelHostname] = name
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: own.Annotations},
		Spec:       corev1.NodeSpec{Taints: own.Spec.Taints},
		Status:     corev1.NodeStatus{Capacity: t.Capacity, Allocatable: t.Free},
	}
}
