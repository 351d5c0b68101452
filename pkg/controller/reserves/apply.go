// SPDX-License-Identifier: Apache-2.0

package reserves

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/still"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// Withdraw removes what Reserves requested of MachineDeployments, if there can be no Reserves any
// more.
func Withdraw(ctx context.Context, client machineclient.MachineDeploymentsGetter, deployments cache.Indexer) error {
	c := Controller{clients: Clients{Machines: client}, metrics: newMetrics(nil, nil), written: written.NewCache[*machine.MachineDeployment](deployments, nil)}
	var v plan.View
	for _, d := range stores.List[*machine.MachineDeployment](deployments) {
		v.Pools = append(v.Pools, plan.Pool{Deployment: d})
	}
	return c.apply(ctx, plan.New(v))
}

// apply writes what is requested of MachineDeployments. One that cannot be written does not delay
// the others.
func (c *Controller) apply(ctx context.Context, p plan.Plan) error {
	var errs []error
	for _, r := range p.Requests {
		errs = append(errs, c.request(ctx, r))
	}
	return errors.Join(errs...)
}

func (c *Controller) request(ctx context.Context, r plan.Request) error {
	d := r.Deployment
	answer, err := c.clients.Machines.MachineDeployments(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, patchOf(r), metav1.PatchOptions{})
	c.metrics.countWrite("request", err)
	if err != nil {
		return written.IgnoreNotFound(fmt.Errorf("annotate machine deployment %s: %w", d.Name, err))
	}
	c.written.Record(answer)
	klog.FromContext(ctx).V(2).Info("Requested spare machines", "machineDeployment", d.Name, "was", d.Annotations[machine.RequestedExcessAnnotation], "is", r.Text, "dedicated", r.Dedicated)
	return nil
}

// patchOf returns a merge patch on the version that a request was decided on.
func patchOf(r plan.Request) []byte {
	annotations := map[string]any{}
	for key, text := range r.Annotations() {
		if annotations[key] = text; text == "" {
			annotations[key] = nil
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": r.Deployment.ResourceVersion, "annotations": annotations,
	}})
	if err != nil {
		panic(fmt.Sprintf("encode patch: %v", err)) // strings always encode
	}
	return patch
}

// After returns the MachineDeployment of a request as the controller would leave it.
func After(r plan.Request) (*machine.MachineDeployment, error) {
	d := &machine.MachineDeployment{}
	if err := still.Merge(r.Deployment, patchOf(r), d); err != nil {
		return nil, fmt.Errorf("change machine deployment %s: %w", r.Deployment.Name, err)
	}
	return d, nil
}

// report writes the statuses that have changed, and records events.
func (c *Controller) report(ctx context.Context, p plan.Plan) error {
	var errs []error
	for _, d := range p.Decisions {
		errs = append(errs, c.reportOne(ctx, d))
	}
	return errors.Join(errs...)
}

func (c *Controller) reportOne(ctx context.Context, d plan.Decision) error {
	was, after := d.Reserve.Status, d.After(c.clock.Now())
	if equality.Semantic.DeepEqual(was, after.Status) {
		return nil
	}
	answer, err := c.clients.Reserves.Reserves(after.Namespace).UpdateStatus(ctx, after, metav1.UpdateOptions{})
	c.metrics.countWrite("status", err)
	if err != nil {
		return written.IgnoreNotFound(fmt.Errorf("write status of reserve %s: %w", after.Name, err))
	}
	c.statuses.Record(answer)
	for _, n := range conditionEvent(was, after.Status) {
		c.recorder.Event(d.Reserve, n.kind, n.reason, n.message)
	}
	return nil
}

// event is an event to record.
type event struct{ kind, reason, message string }

// conditionEvent returns the event for a change of the condition, if any.
func conditionEvent(was, is v1alpha1.ReserveStatus) (all []event) {
	if was.DesiredReplicas != is.DesiredReplicas {
		all = append(all, event{corev1.EventTypeNormal, "DesiredReplicasChanged",
			fmt.Sprintf("Desired machines changed from %d to %d", was.DesiredReplicas, is.DesiredReplicas)})
	}
	before, now := meta.FindStatusCondition(was.Conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(is.Conditions, v1alpha1.ConditionReady)
	if before != nil && before.Reason == now.Reason {
		return all
	}
	known, kind := reason.Reserve[v1alpha1.ConditionReady].Find(now.Reason), corev1.EventTypeWarning
	if known.Status == reason.True {
		kind = corev1.EventTypeNormal
	}
	if known.Event != "" {
		all = append(all, event{kind, known.Event, now.Message})
	}
	return all
}
