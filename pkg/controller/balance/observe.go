// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/reachability"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balance/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
)

// caches of both clusters. Those of the target cluster are nil if there is none.
type caches struct {
	deployments, sets, machines, classes cache.Indexer
	nodes, pods, budgets                 cache.Indexer
	// budgetsUnknown returns why budgets are not known; empty if they are.
	budgetsUnknown func() string
	storage        target.Storage
	// devices counts the devices of Nodes; nil if there is no target cluster.
	devices pool.DeviceCounter
}

func (c caches) source() pool.Source {
	return &stores.Source{Kinds: stores.Kinds{Sets: c.sets, Machines: c.machines, Classes: c.classes, Nodes: c.nodes, Pods: c.pods}, Counter: c.devices}
}

// observe builds the view. current is false while a cache does not show all of our writes.
func (c *Controller) observe() (v plan.View, current bool) {
	v = plan.View{Now: c.clock.Now(), Settings: c.options.Settings, Garden: c.garden.snapshot(), Memory: c.memory}
	for _, rule := range c.options.Rights.Missing() {
		v.Missing = append(v.Missing, rule.String())
	}
	deployments := stores.List[*v1alpha1.MachineDeployment](c.stores.deployments)
	if slices.ContainsFunc(deployments, func(d *v1alpha1.MachineDeployment) bool { return !c.written.UpToDate(d) }) {
		return plan.View{}, false
	}
	slices.SortFunc(deployments, func(a, b *v1alpha1.MachineDeployment) int { return cmp.Compare(a.Name, b.Name) })
	moving := c.noteConcern(deployments)
	c.templates.noteReserve(stores.All[*mcm.Machine](c.stores.machines), v.Now)
	c.observeMembers(&v, deployments)
	c.templates.forgetOthers(v.Members)
	v.Starting = v.Now.Sub(c.templates.began) < similar.Settling
	if c.concerned.Load() {
		c.countNodes(&v)
	}
	switch {
	case !moving:
	case c.stores.nodes == nil:
		v.Unreachable = "there is no target cluster"
	default:
		if err := c.options.Target.Err(c.targetStores()...); err != nil {
			v.Unreachable = err.Error()
		}
		c.observePods(&v)
	}
	return v, true
}

// countNodes adds how many Nodes of the cluster are not ready, if that is known.
func (c *Controller) countNodes(v *plan.View) {
	if c.stores.nodes == nil || c.options.Target.Err(c.stores.nodes) != nil {
		return
	}
	v.NodesKnown = true
	v.UnreadyCount, v.NodeCount = target.CountUnready(c.stores.nodes)
}

// targetStores returns the stores of the target cluster that decide about pods. Budgets that are not
// known are never up to date.
func (c *Controller) targetStores() []reachability.Store {
	all := []reachability.Store{c.stores.nodes, c.stores.pods}
	if c.stores.budgetsUnknown() == "" {
		all = append(all, c.stores.budgets)
	}
	return all
}

// observeMembers adds the members. Where machines concern no decision, it reads neither these nor what
// a new one offers: with many machines, that takes much longer than the rest.
func (c *Controller) observeMembers(v *plan.View, deployments []*v1alpha1.MachineDeployment) {
	concerned, source := c.concerned.Load(), c.stores.source()
	for _, d := range deployments {
		s := pool.Snapshot{Deployment: d}
		if concerned {
			s = pool.ReadReserve(d, source, v.Now)
		}
		v.Members = append(v.Members, newMember(s))
	}
	if concerned {
		c.templates.setTemplates(v.Members, source, v.Now, v.Settings.Similar)
	}
}

// noteConcern records whether machines and pods concern this controller, and returns the latter. It
// must be called before the view is read: an event that arrives meanwhile then causes another sync.
func (c *Controller) noteConcern(deployments []*v1alpha1.MachineDeployment) (moving bool) {
	concerned := false
	for _, d := range deployments {
		machines, pods := plan.Concerns(d, c.options.Settings)
		moving = moving || pods
		concerned = concerned || machines
	}
	c.moving.Store(moving)
	c.concerned.Store(concerned || len(c.memory.Failing)+len(c.memory.Paused) > 0)
	return moving
}

func newMember(s pool.Snapshot) plan.Member {
	m := plan.Member{Object: s.Deployment, Rollout: s.Rollout, NoSet: len(s.Sets) == 0, Devices: devicesOf(s), DevicesUnknown: s.Unknown, Machines: make([]plan.Machine, len(s.Machines))}
	for i, one := range s.Machines {
		m.Machines[i].Machine = one
	}
	return m
}

// devicesOf returns how many devices of each DeviceClass that an excess names one machine has.
func devicesOf(s pool.Snapshot) corev1.ResourceList {
	has := corev1.ResourceList{}
	for _, class := range pool.DeviceClasses(s.Deployment) {
		if amount, known := s.Allocatable[v1alpha1.DevicesOf(class)]; known {
			has[v1alpha1.DevicesOf(class)] = amount
		}
	}
	return has
}

// observePods adds pods and their Nodes. This is expensive, so it happens only while a member
// grows, is uneven or has a move in progress.
func (c *Controller) observePods(v *plan.View) {
	if !plan.PodsNeeded(*v) {
		return
	}
	lookups := c.stores.storage.Lookups().Remembering()
	pods := map[string][]*fit.Pod{}
	for _, pod := range stores.List[*corev1.Pod](c.stores.pods) {
		switch {
		case pool.Finished(pod):
		case pod.Spec.NodeName != "":
			pods[pod.Spec.NodeName] = append(pods[pod.Spec.NodeName], fit.NewPod(pod, lookups))
		case isUnschedulable(pod):
			v.Waiting = append(v.Waiting, fit.NewPod(pod, lookups))
		}
	}
	for _, node := range stores.List[*corev1.Node](c.stores.nodes) {
		v.Nodes = append(v.Nodes, fit.Node{Object: node, Pods: pods[node.Name]})
	}
	slices.SortFunc(v.Waiting, func(a, b *fit.Pod) int { return cmp.Compare(a.Name(), b.Name()) })
	slices.SortFunc(v.Nodes, func(a, b fit.Node) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	for i := range v.Members {
		for j := range v.Members[i].Machines {
			if m := &v.Members[i].Machines[j]; m.Node != nil {
				m.Workload = slices.DeleteFunc(slices.Clone(pods[m.Node.Name]), func(p *fit.Pod) bool { return !pool.IsWorkload(p.Object) })
			}
		}
	}
	v.Budgets, v.BudgetsUnknown = pool.BudgetsOf(stores.List[*policyv1.PodDisruptionBudget](c.stores.budgets)), c.stores.budgetsUnknown()
}

// isUnschedulable reports whether a pod is unschedulable and not nominated for a Node.
func isUnschedulable(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.NominatedNodeName != "" {
		return false
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

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
