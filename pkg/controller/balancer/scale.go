// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
)

// machineGroup is the group of MachineDeployments and MachineSets.
const machineGroup = "machine.sapcloud.io"

// scale contains the scale subresource, and the workload's own counts.
type scale struct {
	replicas int64
	selector string
	version  string
	counts   plan.Counts
}

// scaleOf reads a workload's scale: from the object itself if the fields of its kind are known,
// otherwise from the API server, once per version of the object.
func (c *Controller) scaleOf(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) (scale, error) {
	s := scale{version: object.GetResourceVersion(), counts: ownCounts(object)}
	switch resource.Group {
	case "apps", machineGroup, corev1.GroupName: // of the core group, only ReplicationControllers have a scale
		replicas, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
		if s.replicas = replicas; resource.Group == machineGroup {
			return s, nil // these types omit a 0
		}
		if err != nil || !found {
			s.replicas = 1
		}
		s.selector = podSelector(object)
		return s, nil
	}
	return c.scales.scaleOf(object, s, func() (*unstructured.Unstructured, error) {
		return c.clients.Dynamic.Resource(resource).Namespace(object.GetNamespace()).Get(ctx, object.GetName(), metav1.GetOptions{}, "scale")
	})
}

func ownCounts(object *unstructured.Unstructured) plan.Counts {
	number := func(field string) (int64, bool) {
		n, found, err := unstructured.NestedInt64(object.Object, "status", field)
		return n, found && err == nil
	}
	var counts plan.Counts
	counts.Observed, _ = number("replicas")
	for _, field := range []string{"readyReplicas", "availableReplicas"} {
		if n, ok := number(field); ok {
			counts.Ready = n
			return counts
		}
	}
	return counts
}

// podSelector is the selector of a workload as text; empty if it has none.
func podSelector(object *unstructured.Unstructured) string {
	if object.GetAPIVersion() == corev1.SchemeGroupVersion.String() {
		pairs, _, err := unstructured.NestedStringMap(object.Object, "spec", "selector")
		if err != nil {
			return ""
		}
		return labels.SelectorFromSet(pairs).String()
	}
	selector, err := structuredSelector(object)
	if err != nil || selector.Empty() {
		return ""
	}
	return selector.String()
}

func structuredSelector(object *unstructured.Unstructured) (labels.Selector, error) {
	raw, _, err := unstructured.NestedMap(object.Object, "spec", "selector")
	if err != nil {
		return nil, fmt.Errorf("read spec.selector: %w", err)
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, selector); err != nil {
		return nil, fmt.Errorf("read spec.selector: %w", err)
	}
	return metav1.LabelSelectorAsSelector(selector)
}

func machineSelector(object *unstructured.Unstructured) (labels.Selector, error) {
	return structuredSelector(object)
}

// observer returns how to observe a target, and an error if the spec requests what is not possible. A
// workload without a pod selector cannot be observed through its pods: an empty selector would match
// all of them.
func observer(t plan.Target, s scale) (v1alpha1.Observer, error) {
	possible := v1alpha1.StatusObserver
	switch {
	case t.Object.Resource.Group == machineGroup:
		possible = v1alpha1.MachinesObserver
	case s.selector != "":
		possible = v1alpha1.PodsObserver
	}
	switch o := t.Spec.Observer; o {
	case "", possible:
		return possible, nil
	case v1alpha1.StatusObserver:
		return o, nil
	default:
		return possible, fmt.Errorf("it has no %s that the observer %s could select: remove observer from the target, or set it to Status", strings.ToLower(string(o)), o)
	}
}

// scales caches the answers of the API server. Each is valid for one version of its object.
type scales struct {
	mu    sync.Mutex
	known map[string]scale
}

func scaleKey(object *unstructured.Unstructured) string {
	return object.GetAPIVersion() + "/" + object.GetKind() + "/" + object.GetNamespace() + "/" + object.GetName()
}

func (s *scales) forget(object *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, scaleKey(object))
}

func (s *scales) scaleOf(object *unstructured.Unstructured, own scale, get func() (*unstructured.Unstructured, error)) (scale, error) {
	key := scaleKey(object)
	s.mu.Lock()
	known, ok := s.known[key]
	s.mu.Unlock()
	if ok && known.version == own.version {
		return known, nil
	}
	answer, err := get()
	if err != nil {
		return scale{}, fmt.Errorf("read scale: %w", err)
	}
	own.replicas, _, _ = unstructured.NestedInt64(answer.Object, "spec", "replicas")
	own.selector, _, _ = unstructured.NestedString(answer.Object, "status", "selector")
	if own.version = answer.GetResourceVersion(); own.counts.Observed == 0 {
		own.counts.Observed, _, _ = unstructured.NestedInt64(answer.Object, "status", "replicas")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]scale{}
	}
	s.known[key] = own
	return own, nil
}
