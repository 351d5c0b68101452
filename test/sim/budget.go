// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var budgets = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}

// spendBudget takes an eviction from the budget of a pod, or refuses it. A pod that does not run
// needs no budget, and neither does one that is not ready if the budget is healthy without it. The
// numbers are those that the budget's controller has written.
func (s *Server) spendBudget(r *request, pod *version) error {
	p := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pod.object, p); err != nil {
		return apierrors.NewInternalError(err)
	}
	if p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning {
		return nil
	}
	found, err := s.budgetsOf(p)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return nil
	case len(found) > 1:
		return refusal(http.StatusInternalServerError, "", "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
	}
	return s.takeFromBudget(r, p, found[0])
}

func (s *Server) budgetsOf(p *corev1.Pod) ([]*version, error) {
	t := s.tables[budgets]
	if t == nil {
		return nil, nil
	}
	var found []*version
	for _, v := range t.sorted(p.Namespace) {
		b, err := budget(v)
		if err != nil {
			return nil, err
		}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(p.Labels)) {
			found = append(found, v)
		}
	}
	return found, nil
}

func budget(v *version) (*policyv1.PodDisruptionBudget, error) {
	b := &policyv1.PodDisruptionBudget{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(v.object, b); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return b, nil
}

func (s *Server) takeFromBudget(r *request, p *corev1.Pod, v *version) error {
	b, err := budget(v)
	if err != nil {
		return err
	}
	ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	always := b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
	switch {
	case !ready && (always || b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0):
		return nil
	case b.Status.ObservedGeneration < b.Generation:
		return overBudget(10, "Cannot evict pod as it would violate the pod's disruption budget.", "The disruption budget "+b.Name+" is still being processed by the server.")
	case b.Status.DisruptionsAllowed <= 0:
		return overBudget(0, "Cannot evict pod as it would violate the pod's disruption budget.", "The disruption budget "+b.Name+" does not allow evicting pods currently")
	case r.dryRun():
		return nil
	}
	b.Status.DisruptionsAllowed--
	if b.Status.DisruptedPods == nil {
		b.Status.DisruptedPods = map[string]metav1.Time{}
	}
	b.Status.DisruptedPods[p.Name] = metav1.Time{Time: s.serverTime().UTC()}.Rfc3339Copy()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(b)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	s.storeObject(s.tables[budgets], v.key, v, object)
	return nil
}

func overBudget(after int, message, cause string) error {
	err := apierrors.NewTooManyRequests(message, after)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: cause}}
	return err
}
