// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/tools/cache"
)

// byLabel indexes objects by each of their labels and by their namespace, so that a selector reads
// only objects that are likely to match.
const byLabel = "label"

func indexByLabel(item any) ([]string, error) {
	object, err := meta.Accessor(item)
	if err != nil {
		return nil, err
	}
	keys := append(make([]string, 0, 1+len(object.GetLabels())), namespaceKey(object.GetNamespace()))
	for name, value := range object.GetLabels() {
		keys = append(keys, labelKey(object.GetNamespace(), name, value))
	}
	return keys, nil
}

func namespaceKey(namespace string) string { return namespace + "/" }

func labelKey(namespace, name, value string) string { return namespace + "/" + name + "=" + value }

// selected returns the objects of a namespace that match a selector.
func selected[T metav1.Object](index cache.Indexer, namespace string, selector labels.Selector) []T {
	var found []T
	for _, item := range candidates(index, namespace, selector) {
		object, ok := item.(T)
		if ok && object.GetNamespace() == namespace && selector.Matches(labels.Set(object.GetLabels())) {
			found = append(found, object)
		}
	}
	return found
}

// candidates returns all objects with one of the labels that the selector requires, the rarest of
// them. If the selector requires no label with a given value, it returns all objects of the
// namespace.
func candidates(index cache.Indexer, namespace string, selector labels.Selector) []any {
	best, count := namespaceKey(namespace), -1
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if r.Operator() != selection.Equals && r.Operator() != selection.In || r.Values().Len() != 1 {
			continue
		}
		key := labelKey(namespace, r.Key(), r.Values().UnsortedList()[0])
		keys, err := index.IndexKeys(byLabel, key)
		if err == nil && (count < 0 || len(keys) < count) {
			best, count = key, len(keys)
		}
	}
	items, _ := index.ByIndex(byLabel, best)
	return items
}
