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
