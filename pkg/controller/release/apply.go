// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
)

// asideTime is how long replicas of a MachineDeployment are not raised after an admission policy has
// refused that. Meanwhile, pods can get machines of others.
const asideTime = 30 * time.Second

// applyRaises writes the raises. If one fails, the next decision uses what the API server has.
func (c *Controller) applyRaises(ctx context.Context, p plan.Plan) error {
	var errs []error
	for _, r := range p.Raises {
		err := c.nominate(ctx, r.Nominations)
		if err == nil {
			err = c.raiseReplicas(ctx, r)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c *Controller) raiseReplicas(ctx context.Context, r plan.Raise) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(r.Pool.Key)
	d, err := c.sendPatches(ctx, namespace, name, r.Patches())
	if err != nil && !apierrors.IsNotFound(err) {
		err = c.readAgain(ctx, namespace, name, r.Pool.Basis, err)
	}
	c.metrics.raised(r, err)
	c.refused.record(r.Pool.Basis, err, c.clock.Now())
	switch {
	case err == nil:
		c.record(d)
		c.raised(ctx, d)
		c.recordRaise(ctx, d, r)
		return nil
	case apierrors.IsNotFound(err):
		return nil
	}
	return fmt.Errorf("raise replicas of %s: %w", r.Pool.Key, err)
}

// readAgain reads a MachineDeployment after a raise has failed: whatever went wrong, the next decision
// must use the present object. It returns the error of the raise. An admission policy answers as the
// API server does if a test of the patch fails, but then nothing that was tested has changed.
func (c *Controller) readAgain(ctx context.Context, namespace, name string, basis plan.Basis, err error) error {
	live, getErr := c.client.MachineDeployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if getErr != nil {
		return err
	}
	c.record(live)
	if apierrors.IsInvalid(err) && reflect.DeepEqual(basis, plan.BasisOf(live)) {
		return refusedError{err}
	}
	return err
}

// refusedError is an error of a raise that would be refused again.
type refusedError struct{ error }

// record remembers a MachineDeployment that the API server returned.
func (c *Controller) record(d *v1alpha1.MachineDeployment) {
	c.latest.Record(d)
	c.claimed.Record(d, c.clock.Now())
}

// sendPatches sends patches until one of them is not outdated.
func (c *Controller) sendPatches(ctx context.Context, namespace, name string, patches [][]byte) (*v1alpha1.MachineDeployment, error) {
	var errs []error
	for _, patch := range patches {
		d, err := c.client.MachineDeployments(namespace).Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{})
		if !outdated(err) {
			return d, err
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// outdated reports whether a patch was refused because something that it is based on has changed.
func outdated(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsConflict(err) }

func (c *Controller) recordRaise(ctx context.Context, d *v1alpha1.MachineDeployment, r plan.Raise) {
	klog.FromContext(ctx).V(2).Info("Raised replicas for waiting pods", "machineDeployment", r.Pool.Key,
		"from", r.Pool.Replicas, "to", r.Pool.Replicas+r.By, "machines", r.Machines, "pods", len(r.For), "uncreated", r.Uncreated)
	c.recorder.Eventf(v1alpha1.ReferenceTo(d), corev1.EventTypeNormal, "ReserveNeeded", "Raised replicas from %d to %d for %s, to release %s",
		r.Pool.Replicas, r.Pool.Replicas+r.By, podsText(r), nameSome(r.Machines, "machine"))
}

// podsText describes the pods of a raise.
func podsText(r plan.Raise) string {
	switch {
	case r.Uncreated == 0 && len(r.For) == 0:
		return "pods that must start together"
	case r.Uncreated == 0:
		return nameSome(r.For, "pod")
	case len(r.For) == 0:
		return fmt.Sprintf("%d pods that do not exist yet", r.Uncreated)
	}
	return fmt.Sprintf("%s and %d that do not exist yet", nameSome(r.For, "pod"), r.Uncreated)
}

// nameSome names the first few of many.
func nameSome(names []string, noun string) string {
	const few = 3
	switch {
	case len(names) == 1:
		return noun + " " + names[0]
	case len(names) <= few:
		return noun + "s " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%d %ss (%s, ...)", len(names), noun, strings.Join(names[:few], ", "))
}

// refusedRaises are the raises that an admission policy has refused, by the UID of the
// MachineDeployment.
type refusedRaises map[types.UID]refusedRaise

type refusedRaise struct {
	basis plan.Basis
	until time.Time
}

// record remembers a raise that has failed, if it was refused.
func (r refusedRaises) record(basis plan.Basis, err error, now time.Time) {
	var refused refusedError
	if errors.As(err, &refused) {
		r[basis.UID] = refusedRaise{basis, now.Add(asideTime)}
	}
}

// isAside reports whether the replicas of a MachineDeployment are not raised now: nothing has changed
// since that was refused.
func (r refusedRaises) isAside(basis plan.Basis) bool {
	refused, known := r[basis.UID]
	return known && reflect.DeepEqual(refused.basis, basis)
}

// forgetExpired forgets the raises that may be tried again.
func (r refusedRaises) forgetExpired(now time.Time) {
	maps.DeleteFunc(r, func(_ types.UID, one refusedRaise) bool { return !now.Before(one.until) })
}

// retryAfter returns how long it takes until the next raise may be tried again; 0 if there is none.
func (r refusedRaises) retryAfter(now time.Time) (wait time.Duration) {
	for _, one := range r {
		wait = requeue.Sooner(wait, one.until.Sub(now))
	}
	return wait
}
