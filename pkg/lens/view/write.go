// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"reflect"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/scheme"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// attempts bounds how often a write is made that the server answers with an error of its own: nine seconds in all.
	// A server that does not answer is asked until the context ends: nothing else can be done meanwhile.
	attempts = 10
	// The pause between two attempts doubles from the first to the last of these.
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

type object[V any] interface {
	*V
	metav1.Object
	runtime.Object
}

// writer lays changed views of one kind in one namespace over what is stored.
type writer[V any, T object[V]] struct {
	c         *Clientset
	rest      rest.Interface
	resource  string
	namespace string
	show      func(T) T
	restore   func(stored []byte, after T) ([]byte, error)
}

// update writes a view that was decided on the version it has, and repeats that while it fails for a passing reason (V8).
// Of requests of one version only one can take effect, so repeating is safe.
func (w writer[V, T]) update(ctx context.Context, after T, o metav1.UpdateOptions, subresource ...string) (T, error) {
	for answered, attempt := 0, 1; ; attempt++ {
		stored, live, err := w.get(ctx, after.GetName())
		result, open := T(new(V)), !written.Answered(err)
		if err == nil {
			result, err = w.put(ctx, stored, live, after, o, attempt > 1, subresource...)
			open = written.Outcome(err) == written.Unknown
		}
		if !open || !sent(err) {
			return result, err
		}
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			answered++
		}
		if answered == attempts || w.c.pause(ctx, attempt) != nil {
			return result, err
		}
	}
}

// put makes one attempt. On errors it returns an empty object and never nil: machine-controller-manager reads the
// name of an object whose write has failed.
func (w writer[V, T]) put(ctx context.Context, stored []byte, live, after T, o metav1.UpdateOptions, again bool, subresource ...string) (T, error) {
	if version := after.GetResourceVersion(); version != live.GetResourceVersion() {
		if again && w.holds(live, after, len(subresource) > 0) {
			return w.show(live), nil
		}
		return new(V), apierrors.NewConflict(v1alpha1.Resource(w.resource), after.GetName(),
			fmt.Errorf("decided on version %q, stored is %q", version, live.GetResourceVersion()))
	}
	body, err := w.restore(stored, after)
	if err != nil {
		return new(V), apierrors.NewBadRequest(err.Error())
	}
	result := T(new(V))
	err = w.rest.Put().Namespace(w.namespace).Resource(w.resource).Name(after.GetName()).SubResource(subresource...).
		VersionedParams(&o, scheme.ParameterCodec).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx).Into(result)
	if err != nil {
		return new(V), err
	}
	return w.show(result), nil
}

// get reads what is stored, with all that machine-controller-manager's types do not know.
func (w writer[V, T]) get(ctx context.Context, name string) ([]byte, T, error) {
	result := w.rest.Get().Namespace(w.namespace).Resource(w.resource).Name(name).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, nil, err
	}
	stored, err := result.Raw()
	if err != nil {
		return nil, nil, err
	}
	live := T(new(V))
	return stored, live, decode(stored, live)
}

// holds tells whether an earlier attempt has taken effect, though its answer was lost: whether what is stored shows as
// what was to be written.
func (w writer[V, T]) holds(live, after T, status bool) bool {
	is, err := treeOf(w.show(live))
	if err != nil {
		return false
	}
	wanted, err := treeOf(after)
	if err != nil {
		return false
	}
	if status {
		return reflect.DeepEqual(is["status"], wanted["status"])
	}
	for _, t := range []tree{is, wanted} {
		delete(t, "status")
		for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
			delete(branch(t, "metadata"), field)
		}
	}
	return reflect.DeepEqual(is, wanted)
}

// sent reports whether an error is about a request that was sent, or was to be, so that the next attempt may fare
// better. Other errors without a status arise here, from a request that cannot be made, and stay.
func sent(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var status apierrors.APIStatus
	var request *url.Error
	var network net.Error
	return errors.As(err, &status) || errors.As(err, &request) || errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF)
}

// pause waits before the next attempt.
func (c *Clientset) pause(ctx context.Context, attempt int) error {
	timer := c.clock.NewTimer(min(firstPause<<min(attempt-1, 10), lastPause))
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pause: %w", context.Cause(ctx))
	case <-c.stop.Done():
		return fmt.Errorf("pause: %w", context.Cause(c.stop))
	}
}
