// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// maxAttempts bounds how often a write is repeated that the server keeps rejecting with an
	// error of its own although it has no effect: a webhook that is down is an error to report.
	maxAttempts = 5
	// The length of what the API server appends to generateName, and of the longest name that it
	// generates.
	suffixLength = 5
	nameLength   = 63
)

// errNoName is returned instead of an answer where there is no name to ask for. It does not leave
// the package.
var errNoName = errors.New("object has no name")

// outcomeUnknown reports whether a write that failed with this error may have taken effect, or may
// still do so.
func outcomeUnknown(err error) bool { return written.Outcome(err) == written.Unknown }

// createOnce creates an object that has only a prefix of a name, and creates it once whatever the
// responses are. It chooses the name, so that it can look the object up after a lost response, and
// repeat the request even if an earlier one is still in progress. AlreadyExists counts as a lost
// response too, because client-go repeats some requests by itself. A refusal says nothing about an
// earlier attempt whose outcome is unknown.
func (k *kindClient[T, L]) createOnce(ctx context.Context, object T, o metav1.CreateOptions) (T, error) {
	named := object.DeepCopyObject().(T)
	named.SetName(k.unusedName(object.GetGenerateName()))
	var doubt error
	for attempt := 1; ; attempt++ {
		made, err := k.verbs.Create(ctx, named, o)
		result := written.Outcome(err)
		if apierrors.IsConflict(err) { // unlike AlreadyExists, no effect of an earlier attempt
			result = written.Refused
		}
		if result == written.Done || result == written.Refused && doubt == nil {
			return made, err
		}
		if result != written.Refused {
			doubt = err
		}
		k.c.metrics.unknown.WithLabelValues(k.tracker.resource).Inc()
		found, lookErr := k.readLive(ctx, named.GetName())
		switch {
		case lookErr == nil && sameOwner(found, object):
			return found, nil
		case !apierrors.IsNotFound(lookErr) || attempt == maxAttempts || result == written.Refused:
			return made, doubt
		}
		if k.c.pause(ctx, attempt) != nil {
			return made, doubt
		}
	}
}

// deleteOnce deletes an object. It does not return an unknown outcome as long as the server can be
// asked. If an attempt is refused after another one whose outcome is unknown, the object shows whether
// that one took effect: a deletion that is limited to a version conflicts with its own effect.
func (k *kindClient[T, L]) deleteOnce(ctx context.Context, name string, o metav1.DeleteOptions) error {
	for attempt := 1; ; attempt++ {
		err := k.verbs.Delete(ctx, name, o)
		if attempt > 1 && apierrors.IsNotFound(err) {
			return nil
		}
		unknown := outcomeUnknown(err)
		if err == nil || !unknown && attempt == 1 {
			return err
		}
		if unknown {
			k.c.metrics.unknown.WithLabelValues(k.tracker.resource).Inc()
		}
		left, lookErr := k.readLive(ctx, name)
		switch {
		case apierrors.IsNotFound(lookErr), lookErr == nil && left.GetDeletionTimestamp() != nil:
			return nil
		case !unknown || lookErr != nil || attempt == maxAttempts:
			return err
		}
		if k.c.pause(ctx, attempt) != nil {
			return err
		}
	}
}

// awaitLive waits until the store shows the present version of an object.
func (k *kindClient[T, L]) awaitLive(ctx context.Context, name string) {
	if found, err := k.readLive(ctx, name); err == nil {
		k.tracker.awaitWrite(ctx, k.tracker.recordWrite(k.objectKey(name), found.GetResourceVersion()))
	}
}

// readLive reads an object until the API server reveals whether it exists. A read that is denied or
// throttled reveals nothing. Only the end of the context bounds the wait, since nothing can be
// decided without an answer.
func (k *kindClient[T, L]) readLive(ctx context.Context, name string) (T, error) {
	if name == "" {
		return k.blank(), errNoName
	}
	for attempt := 1; ; attempt++ {
		found, err := k.Get(ctx, name, metav1.GetOptions{})
		if written.Answered(err) || errors.Is(err, ErrStopped) {
			return found, err
		}
		if attempt == maxAttempts {
			klog.FromContext(k.c.stop).Error(err, "The outcome of a write is unknown and cannot be looked up; asking on",
				"resource", k.tracker.resource, "object", klog.KRef(k.namespace, name))
		}
		if ended := k.c.pause(ctx, attempt); ended != nil {
			return k.blank(), ended
		}
	}
}

// unusedName returns the prefix with a random suffix, as the API server would generate it.
func (k *kindClient[T, L]) unusedName(prefix string) string {
	if room := nameLength - suffixLength; len(prefix) > room {
		prefix = prefix[:room]
	}
	for {
		name := prefix + rand.String(suffixLength)
		if _, taken := k.tracker.lookup(k.objectKey(name)); !taken {
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
	return written.Pause(ctx, c.stop, c.clock, attempt)
}
