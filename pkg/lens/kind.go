// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

type object interface {
	metav1.Object
	runtime.Object
}

// verbs is what the generated interfaces of all kinds have in common.
type verbs[T object, L any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	UpdateStatus(context.Context, T, metav1.UpdateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error
	Get(context.Context, string, metav1.GetOptions) (T, error)
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
}

// kind is the client of one kind in one namespace. On errors it returns what a generated client returns, an empty
// object and never nil: machine-controller-manager reads the name of an object whose write has failed.
type kind[T object, L any] struct {
	verbs[T, L]

	horizon   *horizon
	c         *Consistent
	namespace string
	blank     func() T
}

func (k *kind[T, L]) Create(ctx context.Context, object T, o metav1.CreateOptions) (T, error) {
	if err := k.open(); err != nil {
		return k.blank(), err
	}
	if object.GetName() != "" || object.GetGenerateName() == "" {
		return k.change(ctx, object.GetName(), func() (T, error) { return k.verbs.Create(ctx, object, o) })
	}
	made, err := k.createOnce(ctx, object, o)
	return k.shown(ctx, made, err)
}

func (k *kind[T, L]) Update(ctx context.Context, object T, o metav1.UpdateOptions) (T, error) {
	return k.change(ctx, object.GetName(), func() (T, error) { return k.verbs.Update(ctx, object, o) })
}

func (k *kind[T, L]) UpdateStatus(ctx context.Context, object T, o metav1.UpdateOptions) (T, error) {
	return k.change(ctx, object.GetName(), func() (T, error) { return k.verbs.UpdateStatus(ctx, object, o) })
}

func (k *kind[T, L]) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (T, error) {
	return k.change(ctx, name, func() (T, error) { return k.verbs.Patch(ctx, name, pt, data, o, subresources...) })
}

func (k *kind[T, L]) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	if err := k.open(); err != nil {
		return err
	}
	if len(o.DryRun) > 0 { // never shows; of other writes a dry run has no new version
		return k.verbs.Delete(ctx, name, o)
	}
	victim, held, err := k.victim(name)
	if err != nil {
		return err
	}
	err = k.deleteOnce(ctx, name, o)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
	case held: // also when it is not found: then the store is behind some deletion
		k.horizon.await(ctx, k.horizon.deleted(k.key(name), victim))
	case err == nil: // an object of others' that the store has yet to show
		k.learn(ctx, name)
	}
	return err
}

// victim is the uid by which the store knows an object about to be deleted. From a store that has never shown an object
// there is no telling when it shows the deletion, so one created here is waited for first.
func (k *kind[T, L]) victim(name string) (types.UID, bool, error) {
	object, held := k.horizon.lookup(k.key(name))
	if !held {
		if err := k.horizon.hold(); err != nil {
			return "", false, err
		}
		object, held = k.horizon.lookup(k.key(name))
	}
	if !held {
		return "", false, nil
	}
	return object.GetUID(), true, nil
}

func (k *kind[T, L]) DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error {
	return apierrors.NewMethodNotSupported(k.horizon.group(), "deletecollection")
}

func (k *kind[T, L]) Get(ctx context.Context, name string, o metav1.GetOptions) (T, error) {
	if err := k.open(); err != nil {
		return k.blank(), err
	}
	return k.verbs.Get(ctx, name, o)
}

// List is for informers, which ask for "0": whatever a cache of the API server holds. A process that has just taken over
// from another one would begin with a state older than its predecessor's writes.
func (k *kind[T, L]) List(ctx context.Context, o metav1.ListOptions) (L, error) {
	if o.ResourceVersion == "0" && o.ResourceVersionMatch == "" {
		o.ResourceVersion = ""
	}
	return k.verbs.List(ctx, o)
}

// change carries out a write of an object whose name the caller knows. If its outcome is unknown the caller gets the
// error all the same: it retries by that name, and a version or AlreadyExists tells it what has happened.
func (k *kind[T, L]) change(ctx context.Context, name string, write func() (T, error)) (T, error) {
	if err := k.open(); err != nil {
		return k.blank(), err
	}
	result, err := write()
	if unknown(err) {
		k.c.metrics.unknown.WithLabelValues(k.horizon.resource).Inc()
		k.learn(ctx, name)
	}
	return k.shown(ctx, result, err)
}

// shown waits until the store shows what was written.
func (k *kind[T, L]) shown(ctx context.Context, result T, err error) (T, error) {
	if err != nil {
		return result, err
	}
	k.horizon.await(ctx, k.horizon.wrote(k.key(result.GetName()), result.GetResourceVersion()))
	return result, nil
}

func (k *kind[T, L]) open() error {
	if k.c.stop.Err() != nil {
		return fmt.Errorf("access %s: %w", k.horizon.resource, ErrStopped)
	}
	return nil
}

func (k *kind[T, L]) key(name string) string {
	return k.namespace + "/" + name
}
