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

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/scheme"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// maxAttempts bounds how often a write is repeated that the server rejects with an error of its
	// own: nine seconds in total. A server that does not respond is asked until the context ends:
	// nothing else can be done meanwhile.
	maxAttempts = 10
)

type object[V any] interface {
	*V
	metav1.Object
	runtime.Object
}

// writer applies changed views of one kind in one namespace to stored objects.
type writer[V any, T object[V]] struct {
	c         *Clientset
	rest      rest.Interface
	resource  string
	namespace string
	show      func(T) T
	restore   func(stored []byte, after T) ([]byte, error)
	// allow returns an error if a stored object must not become like this; nil allows everything.
	allow func(live, after T) error
}

// update writes a view that was decided on its version, and repeats the write while it fails for a
// temporary reason (V8). Only one request of the same version can take effect, so repeating is
// safe.
func (w writer[V, T]) update(ctx context.Context, after T, o metav1.UpdateOptions, subresource ...string) (T, error) {
	for answered, attempt := 0, 1; ; attempt++ {
		stored, live, err := w.readStored(ctx, after.GetName())
		result, open := T(new(V)), !written.Answered(err)
		if err == nil {
			result, err = w.tryUpdate(ctx, stored, live, after, o, attempt > 1, subresource...)
			open = written.Outcome(err) == written.Unknown
		}
		if !open || !mayRetry(err) {
			return result, err
		}
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			answered++
		}
		if answered == maxAttempts || written.Pause(ctx, w.c.stop, w.c.clock, attempt) != nil {
			return result, err
		}
	}
}

// tryUpdate makes one attempt. On errors it returns an empty object and never nil:
// machine-controller-manager reads the name of an object whose write has failed.
func (w writer[V, T]) tryUpdate(ctx context.Context, stored []byte, live, after T, o metav1.UpdateOptions, again bool, subresource ...string) (T, error) {
	if version := after.GetResourceVersion(); version != live.GetResourceVersion() {
		if again && w.tookEffect(live, after, len(subresource) > 0) {
			return w.show(live), nil
		}
		return new(V), apierrors.NewConflict(v1alpha1.Resource(w.resource), after.GetName(),
			fmt.Errorf("decided on version %q, stored is %q", version, live.GetResourceVersion()))
	}
	if w.allow != nil {
		if err := w.allow(live, after); err != nil {
			return new(V), err
		}
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

// readStored reads the stored object, including all fields that machine-controller-manager's types
// do not have.
func (w writer[V, T]) readStored(ctx context.Context, name string) ([]byte, T, error) {
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

// tookEffect reports whether an earlier attempt has taken effect although its response was lost:
// whether the view of the stored object is what was to be written.
func (w writer[V, T]) tookEffect(live, after T, status bool) bool {
	is, wanted := treeOf(w.show(live)), treeOf(after)
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

// mayRetry reports whether an error concerns a request that was sent, or was to be sent, so that
// another attempt may succeed. Other errors without a status occur before a request is made, and
// are permanent.
func mayRetry(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var status apierrors.APIStatus
	var request *url.Error
	var network net.Error
	return errors.As(err, &status) || errors.As(err, &request) || errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF)
}
