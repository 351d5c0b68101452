// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/controller/balancer/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

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
