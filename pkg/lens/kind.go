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

	"github.com/evenkeel/evenkeel/pkg/written"
)

type object interface {
	metav1.Object
	runtime.Object
}

// verbs are the methods that the generated interfaces of all kinds have in common.
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

// kindClient is the client of one kind in one namespace. On errors it returns what a generated
// client returns, an empty object and never nil: machine-controller-manager reads the name of an
// object whose write has failed.
type kindClient[T object, L any] struct {
	verbs[T, L]

	tracker   *writeTracker
	c         *Consistent
	namespace string
	blank     func() T
}

func (k *kindClient[T, L]) Create(ctx context.Context, object T, o metav1.CreateOptions) (T, error) {
	if err := k.stopError(); err != nil {
		return k.blank(), err
	}
	if object.GetName() != "" || object.GetGenerateName() == "" {
		return k.writeByName(ctx, object.GetName(), func() (T, error) { return k.verbs.Create(ctx, object, o) })
	}
	made, err := k.createOnce(ctx, object, o)
	return k.awaitShown(ctx, made, err)
}

func (k *kindClient[T, L]) Update(ctx context.Context, object T, o metav1.UpdateOptions) (T, error) {
	return k.writeByName(ctx, object.GetName(), func() (T, error) { return k.verbs.Update(ctx, object, o) })
}

func (k *kindClient[T, L]) UpdateStatus(ctx context.Context, object T, o metav1.UpdateOptions) (T, error) {
	return k.writeByName(ctx, object.GetName(), func() (T, error) { return k.verbs.UpdateStatus(ctx, object, o) })
}

func (k *kindClient[T, L]) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (T, error) {
	return k.writeByName(ctx, name, func() (T, error) { return k.verbs.Patch(ctx, name, pt, data, o, subresources...) })
}

func (k *kindClient[T, L]) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	if err := k.stopError(); err != nil {
		return err
	}
	if len(o.DryRun) > 0 { // never shows; of other writes a dry run has no new version
		return k.verbs.Delete(ctx, name, o)
	}
	victim, held, err := k.deletedUID(name)
	if err != nil {
		return err
	}
	err = k.deleteOnce(ctx, name, o)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
	case held: // also when it is not found: then the store is behind some deletion
		k.tracker.awaitWrite(ctx, k.tracker.recordDeletion(k.objectKey(name), victim))
	case err == nil: // an object of others' that the store has yet to show
		k.awaitLive(ctx, name)
	}
	return err
}

// deletedUID returns the uid by which the store shows an object that is about to be deleted. If the
// store has never shown the object, it could not show the deletion either, so the object is awaited
// first.
func (k *kindClient[T, L]) deletedUID(name string) (types.UID, bool, error) {
	object, held := k.tracker.lookup(k.objectKey(name))
	if !held {
		if err := k.tracker.awaitAll(); err != nil {
			return "", false, err
		}
		object, held = k.tracker.lookup(k.objectKey(name))
	}
	if !held {
		return "", false, nil
	}
	return object.GetUID(), true, nil
}

func (k *kindClient[T, L]) DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error {
	return apierrors.NewMethodNotSupported(k.tracker.groupResource(), "deletecollection")
}

func (k *kindClient[T, L]) Get(ctx context.Context, name string, o metav1.GetOptions) (T, error) {
	if err := k.stopError(); err != nil {
		return k.blank(), err
	}
	return k.verbs.Get(ctx, name, o)
}

// List shows informers the stored state.
func (k *kindClient[T, L]) List(ctx context.Context, o metav1.ListOptions) (L, error) {
	written.ListStored(&o)
	return k.verbs.List(ctx, o)
}

// writeByName carries out a write of an object whose name the caller knows. If its outcome is
// unknown, the caller still gets the error: it retries by that name, and a version or AlreadyExists
// shows what has happened.
func (k *kindClient[T, L]) writeByName(ctx context.Context, name string, write func() (T, error)) (T, error) {
	if err := k.stopError(); err != nil {
		return k.blank(), err
	}
	result, err := write()
	if outcomeUnknown(err) {
		k.c.metrics.unknown.WithLabelValues(k.tracker.resource).Inc()
		k.awaitLive(ctx, name)
	}
	return k.awaitShown(ctx, result, err)
}

// awaitShown waits until the store shows what was written.
func (k *kindClient[T, L]) awaitShown(ctx context.Context, result T, err error) (T, error) {
	if err != nil {
		return result, err
	}
	k.tracker.awaitWrite(ctx, k.tracker.recordWrite(k.objectKey(result.GetName()), result.GetResourceVersion()))
	return result, nil
}

func (k *kindClient[T, L]) stopError() error {
	if k.c.stop.Err() != nil {
		return fmt.Errorf("access %s: %w", k.tracker.resource, ErrStopped)
	}
	return nil
}

func (k *kindClient[T, L]) objectKey(name string) string {
	return k.namespace + "/" + name
}
