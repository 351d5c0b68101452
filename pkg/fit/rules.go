// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// term selects pods, and contains the node label that defines its topology domains.
type term struct {
	key        string
	selector   labels.Selector
	namespaces []string
	// everywhere means every namespace; somewhere means namespaces selected by labels, which are
	// unknown here.
	everywhere, somewhere bool
}

// matches reports whether the term selects the pod. If namespaces are not known, it returns true.
func (t term) matches(p *Pod) bool {
	return t.reaches(p.Object.Namespace) && t.selector.Matches(labels.Set(p.Object.Labels))
}

// reaches reports whether the term may match pods of a namespace.
func (t term) reaches(namespace string) bool {
	return t.everywhere || t.somewhere || slices.Contains(t.namespaces, namespace)
}

// allMatch reports whether every term selects the pod.
func allMatch(terms []term, p *Pod) bool {
	for _, t := range terms {
		if !t.matches(p) {
			return false
		}
	}
	return true
}

// termsOf returns the required affinity and anti-affinity terms of a pod.
func termsOf(pod *corev1.Pod) (together, apart []term, err error) {
	if pod.Spec.Affinity == nil {
		return nil, nil, nil
	}
	var errs []error
	if a := pod.Spec.Affinity.PodAffinity; a != nil {
		together, err = parsed(pod, a.RequiredDuringSchedulingIgnoredDuringExecution)
		errs = append(errs, err)
	}
	if a := pod.Spec.Affinity.PodAntiAffinity; a != nil {
		apart, err = parsed(pod, a.RequiredDuringSchedulingIgnoredDuringExecution)
		errs = append(errs, err)
	}
	return together, apart, errors.Join(errs...)
}

// parsed returns the valid terms. The error names terms that require information that is not
// available here.
func parsed(pod *corev1.Pod, list []corev1.PodAffinityTerm) ([]term, error) {
	var terms []term
	var odd error
	for i := range list {
		selector, err := metav1.LabelSelectorAsSelector(list[i].LabelSelector)
		if err != nil {
			return nil, errors.New("the selector of its pod affinity is malformed")
		}
		t := term{key: list[i].TopologyKey, selector: selector, namespaces: list[i].Namespaces}
		switch n := list[i].NamespaceSelector; {
		case n != nil && len(n.MatchLabels)+len(n.MatchExpressions) > 0:
			t.somewhere = true
			odd = errors.New("its pod affinity selects namespaces by their labels")
		case n != nil:
			t.everywhere = true
		case len(t.namespaces) == 0:
			t.namespaces = []string{pod.Namespace}
		}
		terms = append(terms, t)
	}
	return terms, odd
}

// spread is one hard topology spread constraint.
type spread struct {
	key                 string
	selector            labels.Selector
	namespace           string
	maxSkew, minDomains int
	// anyNode reports whether domains of nodes that the pod does not select count, too.
	anyNode bool
}

// counted reports whether a pod that is on a node counts. A selector of everything counts nothing,
// as in the scheduler.
func (s spread) counted(p *Pod) bool {
	return p.Object.Namespace == s.namespace && !s.selector.Empty() && p.Object.DeletionTimestamp == nil && s.selector.Matches(labels.Set(p.Object.Labels))
}

func spreadOf(pod *corev1.Pod) ([]spread, error) {
	var all []spread
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		if c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor {
			return nil, fmt.Errorf("its topology spread over %s depends on taints", c.TopologyKey)
		}
		selector, err := spreadSelector(pod, c)
		if err != nil {
			return nil, fmt.Errorf("its topology spread over %s is malformed", c.TopologyKey)
		}
		s := spread{key: c.TopologyKey, selector: selector, namespace: pod.Namespace, maxSkew: int(c.MaxSkew), minDomains: 1}
		if c.MinDomains != nil {
			s.minDomains = int(*c.MinDomains)
		}
		s.anyNode = c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore
		all = append(all, s)
	}
	return all, nil
}

func spreadSelector(pod *corev1.Pod, c *corev1.TopologySpreadConstraint) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	if err != nil {
		return nil, err
	}
	more := labels.Set{}
	for _, key := range c.MatchLabelKeys {
		if value, ok := pod.Labels[key]; ok {
			more[key] = value
		}
	}
	requirements, _ := labels.SelectorFromSet(more).Requirements()
	return selector.Add(requirements...), nil
}

// place is a value of a node label: one topology domain.
type place struct{ key, value string }

// tally counts, for all pods of one shape, the other pods that affect where they may run.
type tally struct {
	// like is one pod of the shape.
	like *Pod
	// mates are the pods that match all its affinity terms, by place; total is 0 if there are none
	// anywhere.
	mates map[place]int
	total int
	// avoided are the pods that its anti-affinity terms match; hostile are those whose
	// anti-affinity matches it.
	avoided, hostile places
	// unsure are pods whose anti-affinity may match it, because the namespaces are unknown.
	unsure places
	// unread are pods that may affect it, or be affected by it, but about which too little is
	// known.
	unread int
	spread []*domains
}

// places count pods by place.
type places struct {
	counts map[place]int
	// keys are the labels that define the places.
	keys map[string]bool
}

// domains are the places over which one constraint spreads pods, and how many pods count in each.
type domains struct {
	spread
	// nodes are the nodes that count. Constraints of a pod that count the same nodes share them.
	nodes  []bool
	counts map[string]int
	least  int
	stale  bool
}

func newTally(like *Pod, slots []*slot) *tally {
	t := &tally{like: like, mates: map[place]int{}}
	t.spread = domainsOf(like, slots)
	for i, s := range slots {
		pods := s.pods
		if like.ruleCount() == 0 {
			pods = s.jealous
		}
		for _, p := range pods {
			t.update(p, i, s, 1)
		}
	}
	return t
}

// domainsOf returns the nodes that have the label of every constraint, and, unless told otherwise,
// that the pod selects.
func domainsOf(like *Pod, slots []*slot) []*domains {
	if len(like.spread) == 0 {
		return nil
	}
	labelled, selected := make([]bool, len(slots)), make([]bool, len(slots))
	for i, slot := range slots {
		labelled[i] = !slices.ContainsFunc(like.spread, func(s spread) bool {
			_, ok := slot.node.Labels[s.key]
			return !ok
		})
		matches, _ := like.required.Match(slot.node)
		selected[i] = labelled[i] && matches
	}
	var all []*domains
	for _, s := range like.spread {
		d := &domains{spread: s, nodes: selected, counts: map[string]int{}, stale: true}
		if s.anyNode {
			d.nodes = labelled
		}
		for i, slot := range slots {
			if d.nodes[i] {
				d.counts[slot.node.Labels[s.key]] += 0
			}
		}
		all = append(all, d)
	}
	return all
}

// update adds a pod that is on a node, or removes it.
func (t *tally) update(p *Pod, i int, s *slot, by int) {
	if p.unread {
		if t.concerns(p) {
			t.unread += by
		}
		return
	}
	if allMatch(t.like.together, p) {
		for _, term := range t.like.together {
			if value, ok := s.node.Labels[term.key]; ok {
				t.mates[place{term.key, value}] += by
				t.total += by
			}
		}
	}
	for _, term := range t.like.apart {
		if term.matches(p) {
			t.avoided.addPods(s, term.key, by)
		}
	}
	for _, term := range p.apart {
		switch {
		case !term.matches(t.like):
		case term.somewhere:
			t.unsure.addPods(s, term.key, by)
		default:
			t.hostile.addPods(s, term.key, by)
		}
	}
	for _, d := range t.spread {
		if d.nodes[i] && d.counted(p) {
			d.counts[s.node.Labels[d.key]] += by
			d.stale = true
		}
	}
}

// concerns reports whether a pod with unknown labels and rules may affect the shape, or be affected
// by it.
func (t *tally) concerns(p *Pod) bool {
	reaches := func(namespace string) func(term) bool {
		return func(t term) bool { return t.reaches(namespace) }
	}
	other := p.Object.Namespace
	return other == t.like.Object.Namespace || slices.ContainsFunc(p.apart, reaches(t.like.Object.Namespace)) ||
		slices.ContainsFunc(t.like.together, reaches(other)) || slices.ContainsFunc(t.like.apart, reaches(other))
}

// addPods counts pods in the topology domain of a node, if the node has the label.
func (c *places) addPods(s *slot, key string, by int) {
	value, ok := s.node.Labels[key]
	if !ok {
		return
	}
	if c.counts == nil {
		c.counts, c.keys = map[place]int{}, map[string]bool{}
	}
	c.counts[place{key, value}] += by
	c.keys[key] = true
}

// hasPod reports whether a pod is counted in a topology domain of the node.
func (c *places) hasPod(s *slot) bool {
	for key := range c.keys {
		if value, ok := s.node.Labels[key]; ok && c.counts[place{key, value}] > 0 {
			return true
		}
	}
	return false
}

// obstacle returns what keeps a pod of this shape from a node because of other pods.
func (t *tally) obstacle(p *Pod, i int, s *slot) Obstacle {
	switch {
	case t.unread > 0 || t.unsure.hasPod(s):
		return Undecided
	case !t.company(p, s):
		return Lonely
	case t.avoided.hasPod(s) || t.hostile.hasPod(s):
		return Repelled
	}
	for _, d := range t.spread {
		if !d.admits(p, s) {
			return Uneven
		}
	}
	return Fits
}

// company reports whether the pods that it must run with are there, or whether it is the first of
// them anywhere.
func (t *tally) company(p *Pod, s *slot) bool {
	there := true
	for _, term := range p.together {
		value, ok := s.node.Labels[term.key]
		if !ok {
			return false
		}
		there = there && t.mates[place{term.key, value}] > 0
	}
	return there || t.total == 0 && allMatch(p.together, p)
}

// admits reports whether one more pod would keep the skew of a node's topology domain within the
// limit.
func (d *domains) admits(p *Pod, s *slot) bool {
	value, ok := s.node.Labels[d.key]
	if !ok {
		return false
	}
	more := 0
	if d.selector.Matches(labels.Set(p.Object.Labels)) {
		more = 1
	}
	return d.counts[value]+more-d.emptiest() <= d.maxSkew
}

// emptiest returns the smallest number of pods in any place; 0 if there are fewer places than
// minDomains.
func (d *domains) emptiest() int {
	if d.stale {
		d.stale, d.least = false, -1
		for _, n := range d.counts {
			if d.least < 0 || n < d.least {
				d.least = n
			}
		}
	}
	if len(d.counts) < d.minDomains {
		return 0
	}
	return max(d.least, 0)
}
