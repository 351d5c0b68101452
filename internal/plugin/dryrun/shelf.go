// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// shelf contains objects of one kind by namespace and name. Objects are never changed, only
// replaced.
type shelf[T metav1.Object] map[string]T

func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

func newShelf[T metav1.Object](objects []T) shelf[T] {
	s := shelf[T]{}
	for _, o := range objects {
		s[keyOf(o)] = o
	}
	return s
}

// sorted returns the objects in the order of their keys.
func (s shelf[T]) sorted() []T { return sorted(slices.Collect(maps.Values(s))) }

func sorted[T metav1.Object](list []T) []T {
	slices.SortFunc(list, func(a, b T) int { return strings.Compare(keyOf(a), keyOf(b)) })
	return list
}

// ownedBy returns the objects that an owner controls, in the order of their keys.
func (s shelf[T]) ownedBy(by types.UID) []T {
	var list []T
	for _, o := range s {
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil && owner.UID == by {
			list = append(list, o)
		}
	}
	return sorted(list)
}
