// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// attempts bounds how often a write is repeated that the server keeps answering with an error of its own, though
	// it has no effect: a webhook that is down is an error to report.
	attempts = 5
	// The pause between two requests doubles from the first to the last of these.
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second

	// What the API server appends to generateName, and the longest name it makes of it.
	suffixLength = 5
	nameLength   = 63
)

// unknown reports whether a write that failed with this error may have taken effect, or may still do so.
func unknown(err error) bool { return written.Outcome(err) == written.Unknown }

// createOnce creates an object that has only a prefix of a name, and creates it once whatever the answers are:
// under a name of our own a lost answer can be looked up, and the request be repeated while an earlier one is perhaps
// still under way. AlreadyExists counts as a lost answer too, since client-go repeats some requests by itself. A refusal says
// nothing about an earlier attempt whose outcome is unknown.
func (k *kind[T, L]) createOnce(ctx context.Context, object T, o metav1.CreateOptions) (T, error) {
	named := object.DeepCopyObject().(T)
	named.SetName(k.unusedName(object.GetGenerateName()))
	var doubt error
	for attempt := 1; ; attempt++ {
		made, err := k.verbs.Create(ctx, named, o)
		result := written.Outcome(err)
		if result == written.Done || result == written.Refused && doubt == nil {
			return made, err
		}
		if result != written.Refused {
			doubt = err
		}
		k.c.metrics.unknown.WithLabelValues(k.horizon.resource).Inc()
		found, lookErr := k.look(ctx, named.GetName())
		switch {
		case lookErr == nil && sameOwner(found, object):
			return found, nil
		case lookErr == nil || !apierrors.IsNotFound(lookErr) || attempt == attempts || result == written.Refused:
			return made, doubt
		}
		if k.c.pause(ctx, attempt) != nil {
			return made, doubt
		}
	}
}

// deleteOnce deletes, and does not answer with an unknown outcome as long as the server can be asked.
func (k *kind[T, L]) deleteOnce(ctx context.Context, name string, o metav1.DeleteOptions) error {
	for attempt := 1; ; attempt++ {
		err := k.verbs.Delete(ctx, name, o)
		if attempt > 1 && apierrors.IsNotFound(err) {
			return nil
		}
		if !unknown(err) {
			return err
		}
		k.c.metrics.unknown.WithLabelValues(k.horizon.resource).Inc()
		left, lookErr := k.look(ctx, name)
		switch {
		case apierrors.IsNotFound(lookErr), lookErr == nil && left.GetDeletionTimestamp() != nil:
			return nil
		case lookErr != nil || attempt == attempts:
			return err
		}
		if k.c.pause(ctx, attempt) != nil {
			return err
		}
	}
}

// learn makes the version that an object has now one that the store has to show.
func (k *kind[T, L]) learn(ctx context.Context, name string) {
	if found, err := k.look(ctx, name); err == nil {
		k.horizon.await(ctx, k.horizon.wrote(k.key(name), found.GetResourceVersion()))
	}
}

// look reads an object until the API server reveals whether it is there. A read that is denied or throttled reveals
// nothing. Only the end of the context bounds the wait: without an answer nothing can be decided.
func (k *kind[T, L]) look(ctx context.Context, name string) (T, error) {
	if name == "" {
		return k.blank(), apierrors.NewNotFound(k.horizon.group(), name)
	}
	for attempt := 1; ; attempt++ {
		found, err := k.Get(ctx, name, metav1.GetOptions{})
		if written.Answered(err) || errors.Is(err, ErrStopped) {
			return found, err
		}
		if attempt == attempts {
			klog.FromContext(k.c.stop).Error(err, "The outcome of a write is unknown and cannot be looked up; asking on",
				"resource", k.horizon.resource, "object", klog.KRef(k.namespace, name))
		}
		if err := k.c.pause(ctx, attempt); err != nil {
			return found, err
		}
	}
}

// unusedName is the prefix with a random suffix, as the API server would make it.
func (k *kind[T, L]) unusedName(prefix string) string {
	if room := nameLength - suffixLength; len(prefix) > room {
		prefix = prefix[:room]
	}
	for {
		name := prefix + rand.String(suffixLength)
		if _, taken := k.horizon.lookup(k.key(name)); !taken {
			return name
		}
	}
}

func sameOwner(a, b metav1.Object) bool {
	one, other := metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b)
	return one != nil && other != nil && one.UID == other.UID
}

// pause waits before the next attempt.
func (c *Consistent) pause(ctx context.Context, attempt int) error {
	timer := c.clock.NewTimer(min(firstPause<<min(attempt-1, 10), lastPause))
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pause: %w", context.Cause(ctx))
	case <-c.stop.Done():
		return ErrStopped
	}
}
