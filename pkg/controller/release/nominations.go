// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
)

// maxNominating is how many nominations are written at the same time.
const maxNominating = 16

// nominate writes status.nominatedNodeName of the pods that dedicated machines are claimed for, so
// that the scheduler keeps the room for them when it opens: pods of the same priority, or a lower
// one, are not placed there. Without a nomination, which of the waiting pods is first is open.
func (c *Controller) nominate(ctx context.Context, all []plan.Nomination) error {
	if c.pods == nil {
		return nil
	}
	errs := make([]error, len(all))
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), maxNominating, len(errs), func(i int) { errs[i] = c.nominateOne(ctx, all[i]) })
	return c.acceptMissingRights(ctx, all, errs)
}

// withdrawNominations removes the nominations of pods that are crowded out. If two pods are
// nominated for a node that has room for one of them, kube-scheduler keeps the room of each from
// the other. This happens if a pod is nominated for a machine that then stays in reserve, because
// the pod is to get another one, and the machine is claimed for a second pod.
func (c *Controller) withdrawNominations(ctx context.Context) error {
	return c.nominate(ctx, c.crowdedOut())
}

// crowdedOut returns a withdrawal for each pod that counts and is crowded out.
func (c *Controller) crowdedOut() (all []plan.Nomination) {
	for _, pod := range c.nominatedPods() {
		counts, _ := c.settings.Evaluate(withoutNomination(pod))
		if node := c.openNode(pod); counts && node != nil && c.isCrowdedOut(pod, node) {
			all = append(all, plan.Nomination{Pod: c.podCache.podFor(pod)})
		}
	}
	return all
}

func (c *Controller) nominateOne(ctx context.Context, n plan.Nomination) error {
	pod := n.Pod.Object
	_, err := c.pods.Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, n.Patch(), metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsNotFound(err), n.Withdraws() && apierrors.IsConflict(err): // the event of what the pod is now starts another decision
		return nil
	case err != nil && n.Withdraws():
		return fmt.Errorf("withdraw the nomination of pod %s: %w", n.Pod.Name(), err)
	case err != nil:
		return fmt.Errorf("nominate node %s for pod %s: %w", n.Node, n.Pod.Name(), err)
	case n.Withdraws():
		klog.FromContext(ctx).V(2).Info("Withdrew the nomination of a pod that does not fit beside others", "pod", n.Pod.Name(), "node", pod.Status.NominatedNodeName)
	default:
		klog.FromContext(ctx).V(2).Info("Nominated a node for a pod", "pod", n.Pod.Name(), "node", n.Node)
	}
	return nil
}

// acceptMissingRights joins the errors of nominations, without the refusals in namespaces where the
// right is missing: the pods still get machines, but others may be first.
func (c *Controller) acceptMissingRights(ctx context.Context, all []plan.Nomination, errs []error) error {
	refused := map[string]error{}
	for i, n := range all {
		if namespace := n.Pod.Object.Namespace; refused[namespace] == nil {
			refused[namespace] = forbidden(errs[i])
		}
	}
	for namespace, err := range refused {
		if c.refusals.record(namespace, err != nil, c.clock.Now()) {
			klog.FromContext(ctx).Info("Pods cannot be nominated for dedicated machines, so other pods may take these machines first. Grant patch on pods/status in the target cluster, and allow it in admission policies",
				"namespace", namespace, "err", err)
		}
	}
	var left []error
	for i, n := range all {
		if forbidden(errs[i]) == nil || !c.refusals[n.Pod.Object.Namespace].lasting() {
			left = append(left, errs[i])
		}
	}
	return errors.Join(left...)
}

// forbidden returns an error only if it is a refusal for lack of a right, or by an admission policy,
// which mostly answers that the pod is invalid.
func forbidden(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return err
	}
	return nil
}

const (
	// lastingRefusals is how many attempts in a row are refused, in at least lastingTime, until a
	// right counts as missing. An API server that has just started may refuse what it allows later,
	// and a machine that opens without a nomination is lost to the owner.
	lastingRefusals = 5
	lastingTime     = 5 * time.Second
)

// refusals are the nominations that were refused last, by namespace: a Role may grant the right in
// some namespaces alone.
type refusals map[string]refusal

// refusal is how many attempts in a row were refused, and when the first and the last one were.
type refusal struct {
	count       int
	first, last time.Time
}

// record notes an attempt. It reports whether the right counts as missing from now on.
func (r refusals) record(namespace string, refused bool, now time.Time) (missing bool) {
	if !refused {
		delete(r, namespace)
		return false
	}
	was := r[namespace]
	is := refusal{count: was.count + 1, first: was.first, last: now}
	if was.count == 0 {
		is.first = now
	}
	r[namespace] = is
	return is.lasting() && !was.lasting()
}

func (r refusal) lasting() bool {
	return r.count >= lastingRefusals && r.last.Sub(r.first) >= lastingTime
}
