// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// maxNominating is how many nominations are written at the same time.
const maxNominating = 16

// Nomination is a pod that is to run on a node that is dedicated to its owner.
type Nomination struct {
	Pod  *fit.Pod
	Node string
}

// nominate writes status.nominatedNodeName of the pods that dedicated machines are claimed for, so
// that the scheduler keeps the room for them when it opens: pods of the same priority, or a lower
// one, are not placed there. Without a nomination, which of the waiting pods is first is open.
func (c *Controller) nominate(ctx context.Context, r Raise) error {
	if c.pods == nil {
		return nil
	}
	errs := make([]error, len(r.Nominations))
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), maxNominating, len(errs), func(i int) { errs[i] = c.nominateOne(ctx, r.Nominations[i]) })
	return c.acceptMissingRights(ctx, r.Nominations, errs)
}

func (c *Controller) nominateOne(ctx context.Context, n Nomination) error {
	pod := n.Pod.Object
	_, err := c.pods.Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, n.mergePatch(), metav1.PatchOptions{}, "status")
	switch {
	case err == nil:
		klog.FromContext(ctx).V(2).Info("Nominated a node for a pod", "pod", n.Pod.Name(), "node", n.Node)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("nominate node %s for pod %s: %w", n.Node, n.Pod.Name(), err)
	}
	return nil
}

// acceptMissingRights joins the errors of nominations, without the refusals in namespaces where the
// right is missing: the pods still get machines, but others may be first.
func (c *Controller) acceptMissingRights(ctx context.Context, all []Nomination, errs []error) error {
	refused := map[string]error{}
	for i, n := range all {
		if namespace := n.Pod.Object.Namespace; refused[namespace] == nil {
			refused[namespace] = forbidden(errs[i])
		}
	}
	for namespace, err := range refused {
		if c.refusals.record(namespace, err != nil, c.clock.Now()) {
			klog.FromContext(ctx).Info("Pods cannot be nominated for dedicated machines, so that other pods may take these first. Grant patch on pods/status in the target cluster",
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

// forbidden returns an error only if it is a refusal for lack of a right.
func forbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

func (n Nomination) mergePatch() []byte {
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": n.Pod.Object.UID}, "status": map[string]any{"nominatedNodeName": n.Node},
	})
	if err != nil {
		panic(fmt.Sprintf("encode a patch: %v", err)) // texts always encode
	}
	return raw
}

// nominatedPods returns the pods that wait for a node that they are nominated for.
func (c *Controller) nominatedPods() []*corev1.Pod {
	return stores.Indexed[*corev1.Pod](c.stores.pods, target.ByPlacement, target.Nominated)
}

// withoutVoid returns a pod without a nomination that means nothing: its node is gone, or in
// reserve. A machine that was to leave the reserve for it may stay there, because replicas have
// changed.
func (c *Controller) withoutVoid(pod *corev1.Pod) *corev1.Pod {
	name := pod.Status.NominatedNodeName
	if name == "" || pod.Spec.NodeName != "" {
		return pod
	}
	node := stores.Find[corev1.Node](c.stores.nodes, name)
	if node != nil && !slices.ContainsFunc(node.Spec.Taints, pool.IsReserveTaint) {
		return pod
	}
	free := *pod
	free.Status.NominatedNodeName = ""
	return &free
}
