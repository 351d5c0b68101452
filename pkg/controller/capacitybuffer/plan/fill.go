// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/requeue"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
)

// maxCompared is how many pods are compared with buffers that fill once.
const maxCompared = 5_000_000

// Fill is how far a buffer that fills once has been used (law 13).
type Fill struct {
	// Consumed is how many chunks pods have used. It never falls.
	Consumed int
	// Ended is why the buffer holds nothing any longer: BufferFilled or FillDeadlineExceeded; empty
	// until then.
	Ended string
}

// refillProblem returns why the refill strategy of a buffer is not served; nil if it is.
func (r *round) refillProblem(b *v1beta1.CapacityBuffer) *Problem {
	switch s := &b.Spec; ptr.Deref(s.RefillStrategy, v1beta1.RefillRecreate) {
	case v1beta1.RefillRecreate:
		return nil
	case v1beta1.RefillNone:
		switch {
		case !r.FillOnce:
			return problem(reason.RefillNotEnabled, "the manager does not serve buffers with refillStrategy none: start it with --capacity-buffer-fill-once")
		case s.Replicas == nil || s.Percentage != nil || s.Limits != nil:
			return problem(reason.RefillInvalid, "refillStrategy none needs a fixed number of chunks: set replicas, and neither percentage nor limits")
		}
		return nil
	}
	return problem(reason.RefillInvalid, "refillStrategy %.80q is invalid: use %q or %q", *b.Spec.RefillStrategy, v1beta1.RefillRecreate, v1beta1.RefillNone)
}

// fill decides how far a buffer has been used, and returns why it cannot be served, if it cannot.
// What its status shows stays true, whatever happens to pods or to the buffer.
func (r *round) fill(d *Decision, b Buffer, why *Problem) *Problem {
	d.Fill = &Fill{Consumed: b.Object.Consumed(), Ended: endOf(b.Object)}
	if why != nil {
		return why
	}
	uses, why := b.uses(d.Owner)
	if why != nil {
		return why
	}
	if d.Fill.Ended != "" {
		r.fills.take(uses, b.Object, d.Fill.Consumed)
		return nil
	}
	count, known := r.fills.take(uses, b.Object, d.Asked)
	if !known {
		return problem(reason.TooManyBuffers, "there are too many buffers that fill once, or too many pods that could use them: delete buffers")
	}
	d.Fill.Consumed = max(d.Fill.Consumed, count)
	if d.Asked > 0 && d.Fill.Consumed >= d.Asked {
		d.Fill.Ended = reason.BufferFilled
	} else if left, limited := r.timeLeft(b.Object); limited && left <= 0 {
		d.Fill.Ended = reason.FillDeadlineExceeded
	} else if limited {
		r.again = requeue.Sooner(r.again, left)
	}
	d.Asked = max(0, d.Asked-d.Fill.Consumed)
	return nil
}

// endOf returns why a buffer has ended, by its status; empty if it has not.
func endOf(b *v1beta1.CapacityBuffer) string {
	switch {
	case meta.IsStatusConditionTrue(b.Status.Conditions, v1beta1.ConditionFulfilled):
		return reason.BufferFilled
	case meta.IsStatusConditionTrue(b.Status.Conditions, v1beta1.ConditionExpired):
		return reason.FillDeadlineExceeded
	}
	return ""
}

// timeLeft returns the time until the deadline of a buffer, if it has one.
func (r *round) timeLeft(b *v1beta1.CapacityBuffer) (left time.Duration, limited bool) {
	if b.Spec.FillDeadlineSeconds == nil {
		return 0, false
	}
	since := r.Now
	if c := meta.FindStatusCondition(b.Status.Conditions, v1beta1.ConditionReadyForProvisioning); c != nil && c.Status == metav1.ConditionTrue {
		since = c.LastTransitionTime.Time
	}
	seconds := min(max(1, *b.Spec.FillDeadlineSeconds), math.MaxInt32)
	return since.Add(time.Duration(seconds) * time.Second).Sub(r.Now), true
}

// users are the pods that a buffer is for.
type users struct {
	namespaces []string
	has        func(*corev1.Pod) bool
}

// uses returns the pods that a buffer is for, or why they are not known: those of its owner, those of
// its workload, or those with the labels of its PodTemplate.
func (b *Buffer) uses(owner machine.Owner) (users, *Problem) {
	s, own := &b.Object.Spec, []string{b.Object.Namespace}
	selected := func(selector labels.Selector) func(*corev1.Pod) bool {
		return func(p *corev1.Pod) bool { return selector.Matches(labels.Set(p.Labels)) }
	}
	switch {
	case owner != "":
		return users{namespacesOf(owner), owner.Owns}, nil
	case s.ScalableRef != nil && Watched(s.ScalableRef):
		return users{own, machine.Owner(strings.Join([]string{own[0], s.ScalableRef.Kind, s.ScalableRef.Name}, "/")).Owns}, nil
	case s.ScalableRef != nil:
		return users{own, selected(b.Scale.Selector)}, nil
	case len(b.Template.Template.Labels) == 0:
		return users{}, problem(reason.RefillInvalid, "refillStrategy none needs labels in the PodTemplate, which show which pods have used the buffer")
	}
	return users{own, selected(labels.SelectorFromSet(b.Template.Template.Labels))}, nil
}

func namespacesOf(owner machine.Owner) (all []string) {
	for part := range strings.SplitSeq(string(owner), ",") {
		namespace, _, _ := strings.Cut(part, "/")
		all = append(all, namespace)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fills are the pods that can have used buffers that fill once, by namespace, the first ones that
// were bound first. Each pod uses one buffer.
type fills struct {
	byNamespace map[string][]*corev1.Pod
	sorted      map[string]bool
	used        map[*corev1.Pod]bool
	compared    int
}

// newFills leaves out pods that are replaced: those that are being deleted, and those that have
// failed.
func newFills(bound []*corev1.Pod) fills {
	f := fills{byNamespace: map[string][]*corev1.Pod{}, sorted: map[string]bool{}, used: map[*corev1.Pod]bool{}}
	for _, p := range bound {
		if p.Spec.NodeName != "" && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed {
			f.byNamespace[p.Namespace] = append(f.byNamespace[p.Namespace], p)
		}
	}
	return f
}

// in returns the pods of a namespace.
func (f *fills) in(namespace string) []*corev1.Pod {
	pods := f.byNamespace[namespace]
	if !f.sorted[namespace] {
		f.sorted[namespace] = true
		slices.SortFunc(pods, func(a, b *corev1.Pod) int {
			return cmp.Or(boundSince(a).Compare(boundSince(b)), cmp.Compare(a.Name, b.Name))
		})
	}
	return pods
}

// boundSince returns when a pod was bound. The cache keeps that time only of pods that have waited.
func boundSince(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	return p.CreationTimestamp.Time
}

// take takes pods that have used a buffer, and returns how many there are, at most the given number.
// known is false if there are too many to compare.
func (f *fills) take(uses users, b *v1beta1.CapacityBuffer, most int) (count int, known bool) {
	for _, namespace := range uses.namespaces {
		for _, p := range f.in(namespace) {
			if count == most {
				return count, true
			}
			if f.compared++; f.compared > maxCompared {
				return count, false
			}
			if !f.used[p] && isDuring(b, boundSince(p)) && uses.has(p) {
				f.used[p] = true
				count++
			}
		}
	}
	return count, true
}

// isDuring reports whether a time is in the life of a buffer: after it was created, and not after it
// ended. Times have whole seconds; a pod that was bound in the second in which the buffer was created
// did not wait for it.
func isDuring(b *v1beta1.CapacityBuffer, at time.Time) bool {
	for _, kind := range []string{v1beta1.ConditionFulfilled, v1beta1.ConditionExpired} {
		if c := meta.FindStatusCondition(b.Status.Conditions, kind); c != nil && at.After(c.LastTransitionTime.Time) {
			return false
		}
	}
	return at.After(b.CreationTimestamp.Time)
}
