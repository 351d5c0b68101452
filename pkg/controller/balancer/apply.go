// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// errRefused ends a sync: the API server did not accept a write. The next sync leaves that target
// alone.
var errRefused = errors.New("a write was refused")

// apply writes what the plan asks for: raises first, then lowerings.
func (c *Controller) apply(ctx context.Context, v plan.View, p plan.Plan) (plan.Outcome, error) {
	o := p.Current()
	if v.Balancer.Spec.Paused || p.Stop != (plan.Hold{}) {
		return o, nil
	}
	retried := c.retryRefused(ctx, v, p) // an error holds up no other target
	for _, due := range []func(i int) bool{
		func(i int) bool { return p.Shares[i].Next > o[i] },
		func(i int) bool { return p.Shares[i].Next < o[i] },
	} {
		var errs []error
		for i, s := range p.Shares {
			if s.Next == o[i] || !due(i) {
				continue
			}
			if err := c.scaleTarget(ctx, v, v.Targets[i], s); err != nil {
				errs = append(errs, err)
				continue
			}
			o[i] = s.Next
		}
		if len(errs) > 0 {
			return o, errors.Join(append(errs, retried)...)
		}
	}
	return o, retried
}

// scaleTarget scales a target to the replicas of the plan, unless the target has changed since it
// was observed.
func (c *Controller) scaleTarget(ctx context.Context, v plan.View, t plan.Target, s plan.Share) error {
	answer, err := c.writeScale(ctx, t, s.Next)
	c.metrics.countWrite(direction(s), err)
	switch {
	case err == nil:
	case refused(err):
		klog.FromContext(ctx).Error(err, "Leaving a target alone", "target", s.Name, "for", firstRefusal)
		c.refusals.record(t.Object.ID(), fmt.Sprintf("the API server refused to scale it from %d: %s", s.Current, reasonOf(err)), c.clock.Now())
		return errRefused
	default:
		return fmt.Errorf("scale target %s: %w", s.Name, err)
	}
	c.refusals.forget(t.Object.ID())
	c.watches.cacheFor(ctx, t.Object.Resource).written.Record(answer)
	klog.FromContext(ctx).V(2).Info("Scaled", "target", s.Name, "from", s.Current, "to", s.Next, "desired", s.Desired)
	c.recorder.Eventf(v.Balancer, corev1.EventTypeNormal, "Scaled", "Scaled target %s from %d to %d; desired: %d", s.Name, s.Current, s.Next, s.Desired)
	return nil
}

func (c *Controller) writeScale(ctx context.Context, t plan.Target, replicas int64) (*unstructured.Unstructured, error) {
	wish := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale",
		"metadata": map[string]any{"name": t.Object.Name, "namespace": t.Object.Namespace, "resourceVersion": t.Object.Version},
		"spec":     map[string]any{"replicas": replicas},
	}}
	return c.clients.Dynamic.Resource(t.Object.Resource).Namespace(t.Object.Namespace).Update(ctx, wish, metav1.UpdateOptions{}, "scale")
}

func direction(s plan.Share) string {
	if s.Next > s.Current {
		return "raise"
	}
	return "lower"
}

// After a write was refused, its target keeps its replicas. From time to time, with growing pauses,
// we request the replicas that it already has. Only when the API server accepts that, the plan
// counts on the target again. To count on it earlier would move the replicas of the others back and
// forth. A policy may refuse only some numbers: therefore, pauses grow until a change is accepted.
const (
	firstRefusal = time.Minute
	lastRefusal  = time.Hour
)

const reasonRefused = "WriteRefused"

// refusals contains the writes that the API server refused, by object.
type refusals struct {
	mu    sync.Mutex
	known map[string]refusal
}

type refusal struct {
	what  string
	due   time.Time
	pause time.Duration
	// tried reports whether the API server has accepted the present replicas since, so that the
	// target is not left alone.
	tried bool
}

func (r *refusals) record(id, what string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[string]refusal{}
	}
	n, again := r.known[id]
	if n.tried || !again {
		n.what = what
	}
	if again = again && now.Sub(n.due) <= lastRefusal; again {
		n.pause = min(2*n.pause, lastRefusal)
	} else {
		n.pause = firstRefusal
	}
	n.due, n.tried = now.Add(n.pause), false
	r.known[id] = n
	// A retry that is overdue for so long belongs to a Balancer or target that is gone.
	maps.DeleteFunc(r.known, func(_ string, n refusal) bool { return now.Sub(n.due) > lastRefusal })
}

// endHold ends the hold on an object, and remembers the pause for the case that the next change is
// refused.
func (r *refusals) endHold(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, ok := r.known[id]; ok {
		n.tried = true
		r.known[id] = n
	}
}

func (r *refusals) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, id)
}

// holdOff returns why an object must be left alone, and how long until the next try: 0 if that is
// due. A paused Balancer, or one that must not scale its targets, does not try.
func (r *refusals) holdOff(id string, now time.Time) (what string, left time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, ok := r.known[id]
	if !ok || n.tried {
		return "", 0
	}
	return n.what, max(0, n.due.Sub(now))
}

func (r *refusals) isDue(id string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, ok := r.known[id]
	return ok && !n.tried && !n.due.After(now)
}

// retryRefused repeats writes that were refused, for targets that are due.
func (c *Controller) retryRefused(ctx context.Context, v plan.View, p plan.Plan) error {
	var errs []error
	for i, t := range v.Targets {
		if p.Shares[i].Hold.Reason != reasonRefused || !c.refusals.isDue(t.Object.ID(), c.clock.Now()) {
			continue
		}
		_, err := c.writeScale(ctx, t, t.Current)
		c.metrics.countWrite("retry", err)
		switch {
		case err == nil:
			c.refusals.endHold(t.Object.ID())
		case refused(err):
			c.refusals.record(t.Object.ID(), "", c.clock.Now())
		default:
			errs = append(errs, err)
			continue
		}
		c.loop.Add(v.Balancer.Namespace + "/" + v.Balancer.Name)
	}
	return errors.Join(errs...)
}

// refused reports whether the API server rejects a write, and would do so again. A missing target
// is not a refusal: the cache will show that it is gone.
func refused(err error) bool {
	return written.Outcome(err) == written.Refused && !apierrors.IsNotFound(err)
}

// reasonOf describes an error in words that stay the same from one attempt to the next.
func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return "unknown reason"
}

// report writes the status if it has changed, and records events for what has begun or ended.
func (c *Controller) report(ctx context.Context, v plan.View, p plan.Plan, o plan.Outcome) error {
	status := plan.NewStatus(v, p, o)
	if equality.Semantic.DeepEqual(v.Balancer.Status, status) {
		return nil
	}
	wish := v.Balancer.DeepCopy()
	wish.Status = status
	stored, err := c.clients.Balancers.Balancers(wish.Namespace).UpdateStatus(ctx, wish, metav1.UpdateOptions{})
	c.metrics.countWrite("status", err)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
	case apierrors.IsConflict(err):
		return fmt.Errorf("write status: %w", err)
	default:
		c.recorder.Eventf(v.Balancer, corev1.EventTypeWarning, "StatusNotUpdated", "Cannot write the status: %s", reasonOf(err))
		return fmt.Errorf("write status: %w", err)
	}
	c.written.Record(stored)
	for _, n := range newsOf(v.Balancer.Status.Conditions, status.Conditions) {
		c.recorder.Event(v.Balancer, n.kind, n.reason, n.message)
	}
	return nil
}

// news is an event to record.
type news struct{ kind, reason, message string }

// newsOf returns the differences between two sets of conditions, once each.
func newsOf(was, is []metav1.Condition) []news {
	var all []news
	for _, c := range is {
		before := meta.FindStatusCondition(was, c.Type)
		if before != nil && before.Status == c.Status && before.Reason == c.Reason {
			continue
		}
		if c.Type == v1alpha1.ConditionTargetsResolved && meta.IsStatusConditionFalse(is, v1alpha1.ConditionBalancing) {
			continue // which has the same message
		}
		if n, ok := newsAbout(before, c); ok {
			all = append(all, n)
		}
	}
	return all
}

func newsAbout(before *metav1.Condition, is metav1.Condition) (news, bool) {
	bad := func(t string) metav1.ConditionStatus { return worst[t] }
	wasBad := before != nil && before.Status == bad(is.Type)
	switch {
	case worst[is.Type] == "":
		return news{}, false
	case is.Status == bad(is.Type):
		return news{corev1.EventTypeWarning, eventReasons[is.Type], is.Message}, true
	case wasBad && is.Type == v1alpha1.ConditionFallbackActive && is.Status == metav1.ConditionFalse:
		return news{corev1.EventTypeNormal, "FallbackEnded", "All targets start their replicas again"}, true
	}
	return news{}, false
}

// worst contains the status of each condition that needs attention. Other conditions summarize
// these, or pass by themselves.
var worst = map[string]metav1.ConditionStatus{
	v1alpha1.ConditionBalancing:       metav1.ConditionFalse,
	v1alpha1.ConditionWithinLimits:    metav1.ConditionFalse,
	v1alpha1.ConditionFallbackActive:  metav1.ConditionTrue,
	v1alpha1.ConditionTargetsResolved: metav1.ConditionFalse,
}

var eventReasons = map[string]string{
	v1alpha1.ConditionBalancing:       "UnableToBalance",
	v1alpha1.ConditionWithinLimits:    "OutsideLimits",
	v1alpha1.ConditionFallbackActive:  "FallbackStarted",
	v1alpha1.ConditionTargetsResolved: "TargetsUnclear",
}
