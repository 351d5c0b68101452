// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"sync"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

// unfreezeAnnotation has machine-controller-manager remove the label by which an object is frozen.
const unfreezeAnnotation = "safety.machine.sapcloud.io/unfreeze"

// recentlyRead is how many frozen objects an unfreezer remembers.
const recentlyRead = 16

// unfreezer repeats writes that do nothing but unfreeze an object of one kind, until one of them
// meets no other write.
//
// machine-controller-manager reads the object, updates its status, and then its labels, and tries
// that once a minute. Its other controllers write the same objects, and meanwhile they decide on
// each of these writes: with the lens, a write is shown to all of them before it returns.
type unfreezer[V any, T object[V]] struct {
	mu     sync.Mutex
	recent []T
}

// read remembers an object that was read by its name, if there is something to unfreeze.
func (u *unfreezer[V, T]) read(o T, err error) (T, error) {
	if err != nil || !showsFreeze(o) {
		return o, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.recent = append(u.recent, o.DeepCopyObject().(T))
	u.recent = u.recent[max(0, len(u.recent)-recentlyRead):]
	return o, nil
}

// write makes a change that was decided on an object. If that does nothing but unfreeze it, and the
// object has changed meanwhile, the object is unfrozen as it is now.
func (u *unfreezer[V, T]) write(after T, unfreeze func(T), write func(T) (T, error), get func() (T, error)) (T, error) {
	if !u.onlyUnfreezes(after, unfreeze) {
		return write(after)
	}
	for attempt := 1; ; attempt++ {
		result, err := write(after)
		if !apierrors.IsConflict(err) || attempt == maxAttempts {
			return u.read(result, err)
		}
		live, getErr := get()
		if getErr != nil || live.GetUID() != after.GetUID() {
			return result, err
		}
		after = unfrozen(live, unfreeze)
	}
}

// onlyUnfreezes reports whether an object that was read has been changed in nothing else.
func (u *unfreezer[V, T]) onlyUnfreezes(after T, unfreeze func(T)) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.ContainsFunc(u.recent, func(before T) bool {
		if before.GetResourceVersion() != after.GetResourceVersion() { // nearly always, and without a copy
			return false
		}
		wanted := unfrozen(before, unfreeze)
		return equality.Semantic.DeepEqual(wanted, after) && !equality.Semantic.DeepEqual(wanted, before)
	})
}

// showsFreeze reports whether an object has anything that the functions below remove.
func showsFreeze(o metav1.Object) bool {
	_, labeled := o.GetLabels()[pool.FreezeLabel]
	_, annotated := o.GetAnnotations()[unfreezeAnnotation]
	if labeled || annotated {
		return true
	}
	switch o := o.(type) {
	case *v1alpha1.MachineSet:
		return slices.ContainsFunc(o.Status.Conditions, isSetFrozen)
	case *v1alpha1.MachineDeployment:
		return slices.ContainsFunc(o.Status.Conditions, isDeploymentFrozen)
	}
	return false
}

func unfrozen[V any, T object[V]](o T, unfreeze func(T)) T {
	o = o.DeepCopyObject().(T)
	unfreeze(o)
	return o
}

func unfreezeLabels[T metav1.Object](o T) {
	delete(o.GetLabels(), pool.FreezeLabel)
	delete(o.GetAnnotations(), unfreezeAnnotation)
}

func unfreezeSetStatus(s *v1alpha1.MachineSet) {
	s.Status.Conditions = slices.DeleteFunc(s.Status.Conditions, isSetFrozen)
}

func unfreezeDeploymentStatus(d *v1alpha1.MachineDeployment) {
	d.Status.Conditions = slices.DeleteFunc(d.Status.Conditions, isDeploymentFrozen)
}

func isSetFrozen(c v1alpha1.MachineSetCondition) bool { return c.Type == v1alpha1.MachineSetFrozen }

func isDeploymentFrozen(c v1alpha1.MachineDeploymentCondition) bool {
	return c.Type == v1alpha1.MachineDeploymentFrozen
}
