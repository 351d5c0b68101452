// SPDX-License-Identifier: Apache-2.0

// Package stores reads the stores of informers: its indexes find the objects of a MachineDeployment
// for package pool.
package stores

import (
	"iter"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// The indexes.
const (
	ByOwner    = "owner"    // the UID of the controlling owner
	ByNode     = "node"     // the name of a Machine's or a pod's Node
	ByInstance = "instance" // a Machine's instance: see [pool.InstanceID]
	Orphans    = "orphans"  // the namespace of an object that nothing controls
)

// OwnerIndex returns the indexes of the objects that another object controls, and that none does.
func OwnerIndex() cache.Indexers { return cache.Indexers{ByOwner: ownerKeys, Orphans: orphan} }

// Machines are the indexes of Machines.
func Machines() cache.Indexers {
	return cache.Indexers{ByOwner: ownerKeys, ByNode: nodeOfMachine, ByInstance: instance, Orphans: orphan}
}

// PodIndex returns the indices of pods.
func PodIndex() cache.Indexers { return cache.Indexers{ByNode: nodeOfPod} }

func ownerKeys(item any) ([]string, error) {
	object, err := meta.Accessor(item)
	if err != nil {
		return nil, nil
	}
	return oneOrNone(string(ownerOf(object))), nil
}

func orphan(item any) ([]string, error) {
	object, err := meta.Accessor(item)
	if err != nil || ownerOf(object) != "" {
		return nil, nil
	}
	return []string{object.GetNamespace()}, nil
}

// ownerOf returns the UID of the controlling owner, empty if there is none.
func ownerOf(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}

func nodeOfMachine(item any) ([]string, error) {
	if m, ok := item.(*mcm.Machine); ok {
		return oneOrNone(m.Labels[mcm.NodeLabelKey]), nil
	}
	return nil, nil
}

func instance(item any) ([]string, error) {
	if m, ok := item.(*mcm.Machine); ok {
		return oneOrNone(pool.InstanceID(m.Spec.ProviderID)), nil
	}
	return nil, nil
}

func nodeOfPod(item any) ([]string, error) {
	if pod, ok := item.(*corev1.Pod); ok {
		return oneOrNone(pod.Spec.NodeName), nil
	}
	return nil, nil
}

func oneOrNone(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// Indexed returns the objects that an index contains for a value.
func Indexed[T any](store cache.Indexer, index, value string) []T {
	if store == nil {
		return nil
	}
	items, err := store.ByIndex(index, value)
	if err != nil {
		panic(err) // the index belongs to this package
	}
	return typedItems[T](items)
}

// All yields the objects that a store has now, each time the same ones.
func All[T any](store cache.Indexer) iter.Seq[T] {
	var items []any
	if store != nil {
		items = store.List()
	}
	return func(yield func(T) bool) {
		for _, item := range items {
			if object, ok := item.(T); ok && !yield(object) {
				return
			}
		}
	}
}

// List returns all objects of a store.
func List[T any](store cache.Indexer) []T {
	if store == nil {
		return nil
	}
	return typedItems[T](store.List())
}

func typedItems[T any](items []any) []T {
	all := make([]T, 0, len(items))
	for _, item := range items {
		if object, ok := item.(T); ok {
			all = append(all, object)
		}
	}
	return all
}

// Find returns the object with this key, nil if there is none.
func Find[T any](store cache.Indexer, key string) *T {
	if store == nil {
		return nil
	}
	item, _, _ := store.GetByKey(key) // fails only without a key
	object, _ := item.(*T)
	return object
}

// Controller returns the object in a store that controls another one, nil if there is none. An
// object that only has the same name does not count.
func Controller[T any, P interface {
	*T
	metav1.Object
}](store cache.Indexer, of metav1.Object) P {
	ref := metav1.GetControllerOfNoCopy(of)
	if ref == nil {
		return nil
	}
	owner := P(Find[T](store, of.GetNamespace()+"/"+ref.Name))
	if owner == nil || owner.GetUID() != ref.UID {
		return nil
	}
	return owner
}
